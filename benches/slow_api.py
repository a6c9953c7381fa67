"""A slow API in memory, for benches/faults.py: things that it counts, and states that others keep in it.

POST /things {"name": …} makes a thing, whatever its name; PATCH, GET and DELETE /things/ID and GET
/things do what they say. A mutating call takes `delay` seconds: the effect is in the middle, and
comes also when the caller is gone by then. /state/NAME is a store of the kind that terraform's
backend `http` wants, with LOCK and UNLOCK.
"""

import itertools
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Api:
    """The server and what it holds."""

    def __init__(self, delay):
        self.delay = delay
        self.lock = threading.Lock()
        self.busy = 0
        self.things = {}
        self.states = {}
        self.holders = {}
        self.ids = itertools.count(1)
        api = self

        class Handler(Answers):
            pass

        Handler.api = api
        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def reset(self, delay=None):
        """Everything is gone, once nothing is under way."""
        self.quiet()
        with self.lock:
            self.things, self.states, self.holders = {}, {}, {}
            self.delay = self.delay if delay is None else delay

    def quiet(self):
        """Waits until no mutating call is under way."""
        still = 0
        while still < 5:
            time.sleep(0.02)
            with self.lock:
                still = still + 1 if self.busy == 0 else 0

    def names(self):
        with self.lock:
            return sorted(thing["name"] for thing in self.things.values())

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


class Answers(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def handle_one_request(self):
        try:
            super().handle_one_request()
        except OSError:  # The caller was killed.
            self.close_connection = True

    def answer(self, status, body=b""):
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def body(self):
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def slowly(self, effect):
        """Half the delay, the effect, and the other half."""
        api = self.api
        with api.lock:
            api.busy += 1
        try:
            time.sleep(api.delay / 2)
            with api.lock:
                answer = effect()
            time.sleep(api.delay / 2)
        finally:
            with api.lock:
                api.busy -= 1
        self.answer(*answer)

    def route(self):
        """What the path names, and its id."""
        parts = self.path.split("?")[0].strip("/").split("/")
        return parts[0], parts[1] if len(parts) > 1 else None

    def do_GET(self):
        kind, which = self.route()
        api = self.api
        with api.lock:
            if kind == "state":
                state = api.states.get(which)
                found = (204, b"") if state is None else (200, state)
            elif which is None:
                found = (200, list(api.things.values()))
            elif which in api.things:
                found = (200, api.things[which])
            else:
                found = (404, {"message": "there is no such thing"})
        self.answer(*found)

    def do_POST(self):
        kind, which = self.route()
        body = self.body()
        api = self.api
        if kind == "state":
            with api.lock:
                holder = api.holders.get(which)
                mine = f"ID={holder}" in self.path or holder is None
                if mine:
                    api.states[which] = body
            return self.answer(200 if mine else 409)
        name = json.loads(body)["name"]

        def effect():
            thing = {"id": f"thing-{next(api.ids)}", "name": name}
            api.things[thing["id"]] = thing
            return 201, thing

        return self.slowly(effect)

    def do_PATCH(self):
        _, which = self.route()
        change = json.loads(self.body())

        def effect():
            thing = self.api.things.get(which)
            if thing is None:
                return 404, {"message": "there is no such thing"}
            thing.update(name=change["name"])
            return 200, thing

        self.slowly(effect)

    def do_DELETE(self):
        _, which = self.route()
        self.slowly(lambda: (204, b"") if self.api.things.pop(which, None) else (404, {"message": "there is no such thing"}))

    def do_LOCK(self):
        _, which = self.route()
        wanted = self.body()
        with self.api.lock:
            held = self.api.states.get(f"lock of {which}")
            if held is None:
                self.api.states[f"lock of {which}"] = wanted
                self.api.holders[which] = json.loads(wanted)["ID"]
        self.answer(200 if held is None else 423, held or b"")

    def do_UNLOCK(self):
        _, which = self.route()
        self.body()
        with self.api.lock:
            self.api.states.pop(f"lock of {which}", None)
            self.api.holders.pop(which, None)
        self.answer(200)
