"""The `openai` client, unmodified, on `/openai/v1`: `openai_client.py QUEUE ENDPOINT KEY`."""

import sys

import openai
from checked import check

queue, endpoint, key = sys.argv[1:]
client = openai.OpenAI(base_url=f"{queue}/{endpoint}/openai/v1", api_key=key)
asked = [{"role": "user", "content": "good day"}]

check("models", [model.id for model in client.models.list()], ["small"])
chat = client.chat.completions.create(model="small", messages=asked)
check("chat", chat.choices[0].message.content, "you said: good day")
stream = client.chat.completions.create(model="small", messages=asked, stream=True)
words = [chunk.choices[0].delta.content or "" for chunk in stream]
check("chat stream", "".join(words), "you said: good day ")
check("chat stream, part by part", len(words), 5)
vectors = client.embeddings.create(model="small", input="x", encoding_format="float")
check("embeddings", vectors.data[0].embedding, [0.5, 0.25])
wrong = openai.OpenAI(base_url=f"{queue}/{endpoint}/openai/v1", api_key="wrong")
for name, kind, at in [
    ("a wrong key", openai.AuthenticationError, wrong),
    ("an unknown endpoint", openai.NotFoundError, client.with_options(base_url=f"{queue}/nothing/openai/v1")),
]:
    try:
        at.models.list()
        raise SystemExit(f"{name} is taken")
    except kind:
        print("ok", name, flush=True)
