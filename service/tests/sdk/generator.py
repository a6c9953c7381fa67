"""A worker of the real service's SDK whose handler streams."""

import runpod


def handler(job):
    for number in range(job["input"]["count"]):
        yield {"number": number}


runpod.serverless.start({"handler": handler, "return_aggregate_stream": True})
