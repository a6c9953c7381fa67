"""A worker of the real service's SDK that answers as workers with a language model do."""

import json

import runpod


def said(given):
    return "you said: " + str(given["messages"][-1]["content"])


async def handler(job):
    given = job["input"]
    route, asked = given.get("openai_route"), given.get("openai_input") or {}
    if route is None:
        yield {"text": "you said: " + str(given.get("prompt") or given["messages"][-1]["content"])}
    elif route.endswith("/models"):
        yield {"object": "list", "data": [{"id": "small", "object": "model", "created": 1, "owned_by": "me"}]}
    elif route.endswith("/embeddings"):
        vector = {"object": "embedding", "index": 0, "embedding": [0.5, 0.25]}
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        yield {"object": "list", "model": "small", "data": [vector], "usage": usage}
    elif asked.get("stream"):
        for word in said(asked).split(" "):
            choice = {"index": 0, "delta": {"role": "assistant", "content": word + " "}, "finish_reason": None}
            chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "small", "choices": [choice]}
            yield f"data: {json.dumps(chunk)}\n\n"
        choice = {"index": 0, "delta": {}, "finish_reason": "stop"}
        chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "small", "choices": [choice]}
        yield f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n"
    else:
        message = {"role": "assistant", "content": said(asked)}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        yield {"id": "c", "object": "chat.completion", "created": 1, "model": "small", "choices": [choice], "usage": usage}


runpod.serverless.start(
    {"handler": handler, "concurrency_modifier": lambda current: 4, "return_aggregate_stream": True}
)
