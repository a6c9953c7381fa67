"""runpod-cli of PyPI. Its address is fixed, so it is set first: `cli_client.py QUEUE ENDPOINT KEY`."""

import sys

from checked import check
from runpod_cli.client import RunPodClient

queue, endpoint, key = sys.argv[1:]
RunPodClient.BASE_URL = queue
client = RunPodClient(key)
answer = client.run_sync(endpoint, {"prompt": "good day"})
check("run_sync", answer["status"], "COMPLETED")
job = client.run_async(endpoint, {"prompt": "good day"})["id"]
check("get_status", client.get_status(endpoint, job)["id"], job)
try:
    check("cancel_job", client.cancel_job(endpoint, job)["id"], job)
except Exception as error:
    # It was quicker.
    check("cancel_job", "400" in str(error), True)
