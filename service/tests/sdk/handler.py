"""A worker of the real service's SDK, unmodified: plain results, failures, progress, refresh."""

import asyncio

import runpod


async def handler(job):
    given = job["input"]
    kind = given.get("kind")
    if kind == "fail":
        raise ValueError("no luck")
    if kind == "error":
        return {"error": "said so"}
    if kind == "progress":
        runpod.serverless.progress_update(job, "half way")
        await asyncio.sleep(3)
    if kind == "sleep":
        await asyncio.sleep(given["seconds"])
    if kind == "refresh":
        return {"refresh_worker": True, "value": 1}
    return {"echo": given, "s3": job.get("s3Config")}


runpod.serverless.start({"handler": handler, "concurrency_modifier": lambda current: 4})
