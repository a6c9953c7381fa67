#!/usr/bin/env python3
"""Times answers of `plumb lsp` right after a key was typed, in a spec of many resources.

    cargo build --release && python3 benches/language_server.py [--size 10000] [--runs 50] [--plumb FILE]

Each run types one character into an expression and asks at once: for completion, or for hover. The clock runs from
before the change is sent until the answer is read. The time to diagnostics is that of one change alone, the pause in typing
that the server waits for included. The budget for completion and hover is 50 ms.
"""

import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TARGET = os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target"))


class Editor:
    """A client over stdin and stdout."""

    def __init__(self, plumb, folder):
        self.server = subprocess.Popen(
            [plumb, "lsp"], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.count = 0
        self.ask("initialize", {"capabilities": {}})
        self.tell("initialized", {})

    def send(self, message):
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.server.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.server.stdin.flush()

    def read(self):
        length = 0
        while (line := self.server.stdout.readline().strip()):
            if line.startswith(b"Content-Length: "):
                length = int(line.split()[1])
        return json.loads(self.server.stdout.read(length))

    def tell(self, method, params):
        self.send({"method": method, "params": params})

    def ask(self, method, params):
        self.count += 1
        self.send({"id": self.count, "method": method, "params": params})
        while (message := self.read()).get("id") != self.count:
            pass
        return message["result"]

    def diagnostics(self):
        while (message := self.read()).get("method") != "textDocument/publishDiagnostics":
            pass
        return message["params"]["diagnostics"]


def shown(name, times):
    times = sorted(times)
    p95 = times[int(len(times) * 0.95) - 1]
    print(f"{name:12}  median {statistics.median(times):6.1f} ms  95% {p95:6.1f} ms  most {times[-1]:6.1f} ms")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--plumb", default=os.path.join(TARGET, "release", "plumb"))
    options = parser.parse_args()
    lines = ["[resource.value.first]", 'input = "x"', ""]
    for number in range(options.size - 2):
        lines += [f"[resource.value.r{number}]", f'input = {{ n = {number}, a = "${{value.first.output}}" }}', ""]
    # The place that is typed at is the last block: nothing of the file can be left out.
    lines += ["[resource.value.last]", 'input = "${value.r1}"', ""]
    row = len(lines) - 2
    text = "\n".join(lines)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "plumb.toml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        uri = "file://" + path
        editor = Editor(options.plumb, folder)
        version = 1
        editor.tell("textDocument/didOpen", {"textDocument": {"uri": uri, "languageId": "toml", "version": 1, "text": text}})
        begin = time.perf_counter()
        # The first answer of all waits for the spec to be read.
        editor.ask("textDocument/hover", {"textDocument": {"uri": uri}, "position": {"line": row, "character": 14}})
        print(f"{options.size} resources, {len(text) / 1e6:.1f} MB; read after {1000 * (time.perf_counter() - begin):.0f} ms")
        column = len('input = "${value.r1')

        def type_and_ask(method, new, start, end, at):
            nonlocal version
            version += 1
            begin = time.perf_counter()
            change = {"range": {"start": {"line": row, "character": start}, "end": {"line": row, "character": end}}, "text": new}
            editor.tell("textDocument/didChange", {"textDocument": {"uri": uri, "version": version}, "contentChanges": [change]})
            result = editor.ask(method, {"textDocument": {"uri": uri}, "position": {"line": row, "character": at}})
            assert result, method
            return 1000 * (time.perf_counter() - begin)

        completion, hover = [], []
        for _ in range(options.runs):
            completion.append(type_and_ask("textDocument/completion", "2", column, column, column + 1))
            time.sleep(0.02)
            hover.append(type_and_ask("textDocument/hover", "", column, column + 1, column - 1))
            time.sleep(0.02)
        shown("completion", completion)
        shown("hover", hover)
        time.sleep(3)
        begin = time.perf_counter()
        change = {"range": {"start": {"line": row, "character": column}, "end": {"line": row, "character": column}}, "text": "x"}
        editor.tell("textDocument/didChange", {"textDocument": {"uri": uri, "version": version + 1}, "contentChanges": [change]})
        while not editor.diagnostics():
            pass
        print(f"diagnostics   {1000 * (time.perf_counter() - begin):6.1f} ms")
        editor.server.kill()


if __name__ == "__main__":
    main()
