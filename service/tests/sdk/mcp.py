"""The real service's MCP server, unmodified, which speaks version 2: `mcp.py SERVER BASE KEY`."""

import json
import os
import subprocess
import sys

program, base, key = sys.argv[1:]
environment = dict(os.environ, RUNPOD_API_KEY=key, RUNPOD_API_BASE_URL=base)
server = subprocess.Popen(
    ["node", program],
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
    stderr=subprocess.DEVNULL,
    env=environment,
    text=True,
)
asked = 0


def send(message):
    server.stdin.write(json.dumps(dict(message, jsonrpc="2.0")) + "\n")
    server.stdin.flush()


def ask(method, parameters):
    global asked
    asked += 1
    send({"id": asked, "method": method, "params": parameters})
    for line in server.stdout:
        answer = json.loads(line)
        if answer.get("id") == asked:
            return answer.get("result") or answer
    raise SystemExit(f"no answer to {method}")


def tool(tool_name, **arguments):
    """What a tool answers, as JSON."""
    answer = ask("tools/call", {"name": tool_name, "arguments": arguments})
    text = (answer.get("content") or [{}])[0].get("text", str(answer))
    if answer.get("isError") or "content" not in answer:
        raise SystemExit(f"{tool_name}: {text}")
    print("ok", tool_name, flush=True)
    return json.loads(text)


def check(name, found, expected):
    if found != expected:
        raise SystemExit(f"{name}: {found!r} is not {expected!r}")


client = {"name": "test", "version": "1"}
ask("initialize", {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": client})
send({"method": "notifications/initialized"})

volume = tool("create-network-volume", body={"name": "v", "size": 10, "dataCenter": "EU-RO-1"})
grown = tool("update-network-volume", id=volume["id"], body={"size": 20})
check("size", grown["size"], 20)
template = tool("create-template", body={"name": "t", "image": "echo:1", "serverless": True})
check("templates", len(tool("list-templates")["templates"]), 1)
endpoint = tool(
    "create-endpoint",
    body={
        "name": "e",
        "type": "QUEUE",
        "templateId": template["id"],
        "gpu": {"pools": ["AMPERE_24"], "count": 1},
        "scaling": {"type": "QUEUE_DELAY", "queueDelay": 4},
        "workers": {"min": 0, "max": 1},
        "networkVolumes": [volume["id"]],
    },
)["id"]
tool("update-endpoint", id=endpoint, body={"workers": {"max": 2}})
check("workers", tool("get-endpoint", id=endpoint)["workers"]["max"], 2)
check("endpoints", tool("list-endpoints")["items"][0]["id"], endpoint)
for name in ["list-endpoint-workers", "list-endpoint-releases", "list-endpoint-builds"]:
    tool(name, id=endpoint)
check("gpu", tool("get-gpu-type", id="NVIDIA L4")["pool"], "AMPERE_24")
for name in ["list-gpu-types", "list-cpu-types", "list-data-centers", "list-public-templates"]:
    tool(name)
for name in ["list-billing", "list-serverless-billing", "list-network-volume-billing"]:
    tool(name)
registry = tool("create-registry", body={"name": "r", "username": "u", "password": "p"})
check("registries", len(tool("list-registries")["registries"]), 1)
tool("delete-registry", id=registry["id"])
check("keys", tool("update-ssh-keys", body={"keys": ["ssh-rsa A me"]})["keys"], ["ssh-rsa A me"])
tool("delete-endpoint", id=endpoint)
tool("delete-network-volume", id=volume["id"])
tool("delete-template", id=template["id"])
server.kill()
