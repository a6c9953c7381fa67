"""The real service's Python client, unmodified: `client.py PLAIN GENERATOR KEY`."""

import sys
import time

import runpod

plain, generator, runpod.api_key = sys.argv[1:]


def check(name, found, expected):
    if found != expected:
        raise SystemExit(f"{name}: {found!r} is not {expected!r}")
    print("ok", name, flush=True)


def until(job, wanted, seconds=30):
    for _ in range(seconds * 5):
        if job.status() == wanted:
            return
        time.sleep(0.2)
    raise SystemExit(f"the job is {job.status()}, not {wanted}")


endpoint = runpod.Endpoint(plain)
job = endpoint.run({"input": {"kind": "echo", "n": 1}, "s3Config": {"bucketName": "b"}})
echoed = {"echo": {"kind": "echo", "n": 1}, "s3": {"bucketName": "b"}}
check("submit and wait", job.output(timeout=60), echoed)
check("status", job.status(), "COMPLETED")
check("run_sync", endpoint.run_sync({"kind": "echo"}, timeout=60)["echo"], {"kind": "echo"})

job = endpoint.run({"kind": "fail"})
until(job, "FAILED")
job = endpoint.run({"kind": "error"})
until(job, "FAILED")
print("ok a failing handler", flush=True)

job = endpoint.run({"kind": "progress"})
for _ in range(50):
    state = job._fetch_job()
    if state.get("output") == "half way":
        break
    time.sleep(0.1)
check("progress", (state["status"], state.get("output")), ("IN_PROGRESS", "half way"))

started = time.time()
jobs = [endpoint.run({"kind": "sleep", "seconds": 3}) for _ in range(4)]
for job in jobs:
    job.output(timeout=60)
check("four at once in one worker", time.time() - started < 9, True)

job = endpoint.run({"kind": "sleep", "seconds": 120})
until(job, "IN_PROGRESS")
check("cancel", job.cancel()["status"], "CANCELLED")
check("cancelled", job.status(), "CANCELLED")

check("refresh", endpoint.run_sync({"kind": "refresh"}, timeout=60), {"value": 1})
check("after a refresh", endpoint.run_sync({"kind": "echo"}, timeout=90)["echo"], {"kind": "echo"})

check("purge", endpoint.purge_queue()["status"], "completed")
health = endpoint.health()
check("health", (health["jobs"]["failed"], health["jobs"]["inQueue"]), (2, 0))

streaming = runpod.Endpoint(generator).run({"count": 3})
chunks = list(streaming.stream())
check("stream", chunks, [{"number": number} for number in range(3)])
check("aggregate", streaming.output(timeout=60), chunks)
