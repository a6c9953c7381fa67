#!/usr/bin/env python3
"""Jobs per second and times from submit to result: the service on this machine, beside what one would take instead.

    cargo build --release -p service --example load
    python3 -m venv venv && venv/bin/pip install redis rq runpod     # and redis-server from packages
    venv/bin/python benches/jobs.py [--seconds 10] [--clients 1,8] [--markdown FILE]

Every contestant has eight workers that answer with their input, and the same clients: processes that
submit a job, wait for its result, and submit the next.

plumb, echo     the service with its built-in worker; every job durable before it is accepted
plumb, python   the same service, with a plain Python worker of two calls, like that of redis
plumb, runpod   the same service, with workers of the Python SDK (`runpod.serverless.start`); its loop
                sleeps for a second whenever it has as many jobs as it may have
redis           a list for jobs and one for each result, workers in Python with BLPOP; as it comes
                (in memory, saved now and then), and with every write synced (`appendfsync always`)
rq              the queue of that name over redis: forking for each job, and not (SimpleWorker)
runpod serve    the SDK's own local server, `python handler.py --rp_serve_api`: one process, in memory

What is not installed is left out, with a word.
"""

import argparse
import contextlib
import http.client
import importlib.util
import json
import multiprocessing
import os
import platform
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LOAD = os.path.join(os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target")), "release", "examples", "load")
WORKERS = 8
HANDLER = 'import runpod\n\nrunpod.serverless.start({"handler": lambda job: job["input"]})\n'
PLUMB_WORKER = """
import http.client, json, os
from urllib.parse import urlsplit
me, key = os.environ["RUNPOD_POD_ID"], os.environ["RUNPOD_AI_API_KEY"]
take = os.environ["RUNPOD_WEBHOOK_GET_JOB"].replace("$ID", me)
done = os.environ["RUNPOD_WEBHOOK_POST_OUTPUT"].replace("$RUNPOD_POD_ID", me)
connection = http.client.HTTPConnection(urlsplit(take).netloc)
def call(method, url, body=None):
    parts = urlsplit(url)
    connection.request(method, parts.path + "?" + parts.query, body, {"Authorization": key})
    answer = connection.getresponse()
    return answer.status, answer.read()
while True:
    status, body = call("GET", take + "&job_in_progress=0")
    if status == 200:
        job = json.loads(body)
        call("POST", done.replace("$ID", job["id"]) + "&isStream=false", json.dumps({"output": job["input"]}))
"""
REDIS_WORKER = """
import json, sys, redis
r = redis.Redis(unix_socket_path=sys.argv[1])
while True:
    job = json.loads(r.blpop("jobs")[1])
    r.rpush("result:" + job["id"], json.dumps(job["input"]))
"""


class Missing(Exception):
    """What a contestant needs and this machine has not."""


def need(*modules):
    for module in modules:
        if importlib.util.find_spec(module) is None:
            raise Missing(f"the Python package {module} is not installed")


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Contestant:
    """Starts processes in a folder, and ends them all."""

    def __init__(self, folder):
        self.folder, self.processes = folder, []
        self.start()

    def spawn(self, *command, **more):
        log = open(os.path.join(self.folder, f"log{len(self.processes)}.txt"), "wb")
        self.processes.append(subprocess.Popen(command, cwd=self.folder, stdout=log, stderr=log, **more))

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w") as file:
            file.write(text)
        return path

    def stop(self):
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            try:
                process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


class Http(Contestant):
    """One POST that answers with the result."""

    headers = {"Content-Type": "application/json"}

    def client(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        connection.connect()
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

        def run(number):
            connection.request("POST", self.path, json.dumps({"input": {"n": number}}), self.headers)
            answer = connection.getresponse()
            body = json.loads(answer.read())
            assert answer.status == 200 and body["output"] == {"n": number}, body

        return run


class Plumb(Http):
    name = "plumb, echo"
    headers = {"Content-Type": "application/json", "Authorization": "Bearer load"}
    command = []

    def start(self):
        if not os.path.exists(LOAD):
            raise Missing("the example `load` of the crate service is not built")
        self.spawn(LOAD, "serve", os.path.join(self.folder, "data"))
        told = None
        while told is None:
            time.sleep(0.05)
            with contextlib.suppress(OSError, ValueError), open(os.path.join(self.folder, "data", "serve.json")) as file:
                told = json.load(file)
        self.port = int(told["queue_url"].split(":")[2].split("/")[0])
        template = self.call("POST", "/v1/templates", {"name": "t", "imageName": "any", "isServerless": True, "dockerStartCmd": self.command})
        endpoint = {"name": "e", "templateId": template["id"], "gpuTypeIds": ["NVIDIA L4"], "workersMin": WORKERS, "workersMax": WORKERS}
        made = self.call("POST", "/v1/endpoints", endpoint)
        self.path = f"/v2/{made['id']}/runsync"
        while self.call("GET", f"/v2/{made['id']}/health")["workers"]["idle"] < WORKERS:
            time.sleep(0.1)

    def call(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        connection.request(method, path, None if body is None else json.dumps(body), self.headers)
        answer = connection.getresponse()
        text = answer.read()
        assert answer.status < 300, text
        return json.loads(text)


class PlumbPython(Plumb):
    name = "plumb, python"

    def start(self):
        self.command = [sys.executable, self.write("worker.py", PLUMB_WORKER)]
        super().start()


class PlumbSdk(Plumb):
    name = "plumb, runpod"

    def start(self):
        need("runpod")
        self.command = [sys.executable, self.write("handler.py", HANDLER)]
        super().start()


class Redis(Contestant):
    name = "redis, in memory"
    durable = []

    def start(self):
        need("redis")
        if not shutil.which("redis-server"):
            raise Missing("redis-server is not installed")
        self.socket = os.path.join(self.folder, "redis.sock")
        self.spawn("redis-server", "--port", "0", "--unixsocket", self.socket, *self.durable)
        while not os.path.exists(self.socket):
            time.sleep(0.05)
        self.workers()

    def workers(self):
        for _ in range(WORKERS):
            self.spawn(sys.executable, self.write("worker.py", REDIS_WORKER), self.socket)

    def client(self):
        import redis

        store = redis.Redis(unix_socket_path=self.socket)

        def run(number):
            name = f"{os.getpid()}-{number}"
            store.rpush("jobs", json.dumps({"id": name, "input": {"n": number}}))
            assert json.loads(store.blpop(f"result:{name}")[1]) == {"n": number}

        return run


class RedisSynced(Redis):
    name = "redis, synced"
    durable = ["--appendonly", "yes", "--appendfsync", "always"]


class Rq(Redis):
    name = "rq, forking"
    kind = "rq.Worker"

    def workers(self):
        need("rq")
        self.write("work.py", "def echo(n):\n    return {'n': n}\n")
        rq = os.path.join(os.path.dirname(sys.executable), "rq")
        environment = {**os.environ, "PYTHONPATH": self.folder}
        for _ in range(WORKERS):
            self.spawn(rq, "worker", "-q", "-w", self.kind, "-u", f"unix://{self.socket}", env=environment)

    def client(self):
        import redis
        import rq

        queue = rq.Queue(connection=redis.Redis(unix_socket_path=self.socket))

        def run(number):
            job = queue.enqueue("work.echo", number)
            result = job.latest_result(timeout=60)
            assert result is not None and result.return_value == {"n": number}

        return run


class RqSimple(Rq):
    name = "rq, SimpleWorker"
    kind = "rq.SimpleWorker"


class SdkServer(Http):
    name = "runpod serve"
    path = "/runsync"

    def start(self):
        need("runpod")
        self.port = free_port()
        handler = self.write("handler.py", HANDLER)
        self.spawn(sys.executable, handler, "--rp_serve_api", "--rp_api_port", str(self.port))


CONTESTANTS = [Plumb, PlumbPython, PlumbSdk, Redis, RedisSynced, Rq, RqSimple, SdkServer]


def ready(contestant):
    """Waits for the first result."""
    end = time.time() + 60
    while True:
        try:
            return contestant.client()(0)
        except OSError:
            if time.time() > end:
                raise
            time.sleep(0.2)


def client(contestant, seconds, times):
    run = contestant.client()
    run(0)
    taken, number, end = [], 0, time.perf_counter() + seconds
    while (begin := time.perf_counter()) < end:
        number += 1
        run(number)
        taken.append(time.perf_counter() - begin)
    times.put(taken)


def measure(contestant, clients, seconds):
    times = multiprocessing.Queue()
    processes = [multiprocessing.Process(target=client, args=(contestant, seconds, times)) for _ in range(clients)]
    for process in processes:
        process.start()
    taken = sorted(time for _ in processes for time in times.get())
    for process in processes:
        process.join()
    return {"jobs": len(taken) / seconds, "p50": statistics.median(taken) * 1000, "p99": taken[int(len(taken) * 0.99)] * 1000}


def table(rows):
    lines = ["| | clients | jobs/s | p50 ms | p99 ms |", "|---|---|---|---|---|"]
    for name, clients, found in rows:
        lines.append(f"| {name} | {clients} | {found['jobs']:,.0f} | {found['p50']:.2f} | {found['p99']:.2f} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--clients", default="1,8")
    parser.add_argument("--only", help="names, separated by semicolons")
    parser.add_argument("--markdown", help="write the table into this file too, between its `<!-- jobs -->` lines")
    options = parser.parse_args()
    rows = []
    for kind in CONTESTANTS:
        if options.only and kind.name not in options.only.split(";"):
            continue
        folder = tempfile.mkdtemp(prefix="plumb-jobs-")
        contestant = kind.__new__(kind)
        try:
            contestant.__init__(folder)
            ready(contestant)
            for clients in [int(text) for text in options.clients.split(",")]:
                rows.append((kind.name, clients, measure(contestant, clients, options.seconds)))
                print(table(rows[-1:]).splitlines()[-1], file=sys.stderr)
        except Missing as missing:
            print(f"left out: {kind.name}: {missing}", file=sys.stderr)
        finally:
            contestant.stop()
            shutil.rmtree(folder, ignore_errors=True)
    text = f"{platform.machine()}, {os.cpu_count()} cores, {options.seconds:g} s each\n\n" + table(rows)
    print(text)
    if options.markdown:
        with open(options.markdown) as file:
            head, _, tail = file.read().split("<!-- jobs -->")
        with open(options.markdown, "w") as file:
            file.write(f"{head}<!-- jobs -->\n\n{text}\n\n<!-- jobs -->{tail}")


if __name__ == "__main__":
    multiprocessing.set_start_method("fork")
    main()
