"""langchain-runpod, unmodified: `langchain_client.py QUEUE ENDPOINT KEY`."""

import asyncio
import sys

from checked import check
from langchain_runpod import ChatRunPod, RunPod

queue, endpoint, key = sys.argv[1:]
settings = {"endpoint_id": endpoint, "api_key": key, "api_base": queue, "poll_interval": 0.1}
model, chat = RunPod(**settings), ChatRunPod(**settings)
check("RunPod.invoke", "good day" in model.invoke("good day"), True)
check("RunPod.ainvoke", "good day" in asyncio.run(model.ainvoke("good day")), True)
check("ChatRunPod.invoke", "good day" in chat.invoke("good day").content, True)
parts = "".join(chunk.content for chunk in chat.stream("good day"))
check("ChatRunPod.stream", "good day" in parts, True)
