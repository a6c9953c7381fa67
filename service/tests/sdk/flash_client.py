"""runpod-flash, unmodified: `flash_client.py ENDPOINT`, the addresses in the environment."""

import asyncio
import sys

from checked import check
from runpod_flash import Endpoint
from runpod_flash.core.api.runpod import RunpodGraphQLClient, RunpodRestClient

plain = sys.argv[1]


def changed_to(made):
    """What names an endpoint in a change of it."""
    return {"id": made["id"], "name": "flashed", "gpuIds": "AMPERE_24", "templateId": made["templateId"]}


async def jobs():
    endpoint = Endpoint(id=plain)
    job = await endpoint.run({"prompt": "good day"})
    await job.wait(timeout=60)
    check("run and wait", (await job.status(), "good day" in str(job.output)), ("COMPLETED", True))
    job = await endpoint.runsync({"prompt": "good day"}, timeout=60)
    check("runsync", "good day" in str(job.output), True)


async def management():
    async with RunpodRestClient() as rest:
        volume = await rest.create_network_volume({"name": "v", "size": 10, "dataCenterId": "EU-RO-1"})
    async with RunpodGraphQLClient() as api:
        made = await api.save_endpoint(
            {
                "name": "flashed",
                "gpuIds": "AMPERE_24",
                "gpuCount": 1,
                "idleTimeout": 5,
                "scalerType": "QUEUE_DELAY",
                "scalerValue": 4,
                "workersMin": 0,
                "workersMax": 1,
                "networkVolumeId": volume["id"],
                "template": {
                    "name": "flashed__template",
                    "imageName": "echo:1",
                    "containerDiskInGb": 10,
                    "dockerArgs": "",
                    "env": [{"key": "A", "value": "b"}],
                    "readme": "",
                },
            }
        )
        check("save_endpoint", (made["name"], made["workersMax"], made["aiKey"]), ("flashed", 1, None))
        changed = await api.save_endpoint(dict(changed_to(made), workersMax=2))
        check("save_endpoint again", changed["workersMax"], 2)
        template = await api.get_template(made["templateId"])
        check("get_template", template["env"], [{"key": "A", "value": "b"}])
        stock = await api.get_gpu_lowest_price_stock_status("NVIDIA L4", 1)
        check("stock of GPUs", stock, "High")
        stock = await api.get_cpu_specific_stock_status("cpu3c", "cpu3c-2-4", "EU-RO-1")
        check("stock of CPUs", stock, "High")
        check("list_flash_apps", await api.list_flash_apps(), [])
        check("endpoint_exists", await api.endpoint_exists(made["id"]), True)
        # The service deletes no endpoint by GraphQL that may still have workers.
        await api.save_endpoint(dict(changed_to(made), workersMin=0, workersMax=0))
        check("delete_endpoint", await api.delete_endpoint(made["id"]), {"success": True})


asyncio.run(jobs())
asyncio.run(management())
