"""The management half of the real service's Python client, unmodified: `management.py KEY`."""

import sys
import time

import runpod

runpod.api_key = sys.argv[1]


def check(name, found, expected):
    if found != expected:
        raise SystemExit(f"{name}: {found!r} is not {expected!r}")
    print("ok", name, flush=True)


user = runpod.get_user()
check("get_user", (user["pubKey"], user["networkVolumes"]), ("", []))
changed = runpod.update_user_settings("ssh-ed25519 AAAA me")
check("update_user_settings", changed["pubKey"], "ssh-ed25519 AAAA me")
check("get_gpus", len(runpod.get_gpus()), 49)
gpu = runpod.get_gpu("NVIDIA L4", 2)
check("get_gpu", (gpu["memoryInGb"], gpu["lowestPrice"]["uninterruptablePrice"]), (24, 0.68))
check("get_pods", runpod.get_pods(), [])
check("get_pod", runpod.get_pod("none"), None)

auth = runpod.create_container_registry_auth("hub", "user", "password")
runpod.update_container_registry_auth(auth["id"], "user", "another")
template = runpod.create_template(
    "made by the client", "echo:1", is_serverless=True, registry_auth_id=auth["id"]
)
other = runpod.create_template("another", "echo:2", is_serverless=True)
endpoint = runpod.create_endpoint("made", template["id"], gpu_ids="AMPERE_24", workers_max=1)
check("get_endpoints", [one["id"] for one in runpod.get_endpoints()], [endpoint["id"]])
check("aiKey", runpod.get_endpoints()[0]["aiKey"], None)
runpod.update_endpoint_template(endpoint["id"], other["id"])
check("template", runpod.get_endpoints()[0]["templateId"], other["id"])
runpod.delete_container_registry_auth(auth["id"])

made = runpod.create_pod(
    "trainer", "any:1", "NVIDIA L4", gpu_count=2, ports="9400/http,22/tcp", env={"A": "one"}
)
check("create_pod", (made["imageName"], made["env"]), ("any:1", ["A=one"]))
check("get_pods", [pod["id"] for pod in runpod.get_pods()], [made["id"]])
for _ in range(200):
    pod = runpod.get_pod(made["id"])
    if pod["runtime"]:
        break
    time.sleep(0.05)
check("runtime", [port["privatePort"] for port in pod["runtime"]["ports"]], [9400, 22])
check("stop_pod", runpod.stop_pod(made["id"])["desiredStatus"], "EXITED")
check("resume_pod", runpod.resume_pod(made["id"], 1)["desiredStatus"], "RUNNING")
runpod.terminate_pod(made["id"])
cpu = runpod.create_pod("cpu", "any:1", instance_id="cpu3c-2-4")
check("create_pod without GPUs", runpod.get_pod(cpu["id"])["vcpuCount"], 2)
