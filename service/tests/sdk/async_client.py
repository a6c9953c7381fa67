"""The asynchronous half of the real service's Python client: `async_client.py PLAIN GENERATOR KEY`."""

import asyncio
import sys

import runpod
from checked import check
from runpod import AsyncioEndpoint
from runpod.http_client import AsyncClientSession

plain, generator, runpod.api_key = sys.argv[1:]


async def main():
    async with AsyncClientSession() as session:
        endpoint = AsyncioEndpoint(plain, session)
        job = await endpoint.run({"kind": "echo", "n": 1})
        check("output", (await job.output(timeout=60))["echo"], {"kind": "echo", "n": 1})
        check("status", await job.status(), "COMPLETED")
        long = await endpoint.run({"kind": "sleep", "seconds": 120})
        check("cancel", (await long.cancel())["status"], "CANCELLED")
        check("cancelled", await long.status(), "CANCELLED")
        check("health", (await endpoint.health())["jobs"]["inQueue"], 0)
        check("purge", (await endpoint.purge_queue())["status"], "completed")
        streaming = await AsyncioEndpoint(generator, session).run({"count": 3})
        chunks = [chunk async for chunk in streaming.stream()]
        check("stream", chunks, [{"number": number} for number in range(3)])


asyncio.run(main())
