#!/usr/bin/env python3
"""What Plumb adds to the time that an API takes: whole applies against an API with 50 ms per call.

    cargo build --release && python3 benches/calls.py [--things 400] [--runs 5] [--markdown FILE]

Two shapes of things that take two calls each: `wide` (none refers to another: the bound is calls ÷ the
descriptor's concurrency of ten) and `chain` (each refers to the one before: the bound is the critical
path). The bound is made from how long the calls took as the API saw them, so its own slowness is not
Plumb's. Each shape runs with its state on the disk and in memory: the difference is what the journal's
syncs cost. Last, the questions that a plan without a change asks, by the number of objects.
"""

import argparse
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from fault_tools import DESCRIPTOR, PLUMB
from slow_api import Answers, Api

DELAY = 0.05
CONCURRENCY = 10
MARK = "<!-- calls -->"


class Timed(Api):
    """The slow API, with a note of each call: how long it took here, and what it was."""

    def __init__(self, delay):
        super().__init__(delay)
        self.took, self.asked = [], 0
        api = self

        class Handler(Noting):
            pass

        Handler.api = api
        self.server.RequestHandlerClass = Handler

    def forget(self):
        with self.lock:
            self.took, self.asked = [], 0


class Noting(Answers):
    """One connection, noted."""

    def slowly(self, effect):
        begin = time.perf_counter()
        super().slowly(effect)
        with self.api.lock:
            self.api.took.append(time.perf_counter() - begin)

    def do_GET(self):
        with self.api.lock:
            self.api.asked += 1
        super().do_GET()


def spec(shape, things):
    """`things` things, apart or in a row."""
    lines = ['[plumb]', 'name = "calls"', '', '[provider.slow]', 'descriptor = "./slow.provider.toml"', '']
    for i in range(things):
        chained = shape == "chain" and i > 0
        lines += [f"[resource.thing.t{i}]", f'name = "t{i}-${{thing.t{i - 1}.id}}"' if chained else f'name = "t{i}"', ""]
    return "\n".join(lines)


def run(api, folder, *command):
    environment = {**os.environ, "SLOW_URL": api.url, "SLOW_KEY": "none"}
    begin = time.perf_counter()
    done = subprocess.run([PLUMB, *command], cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"plumb {' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return time.perf_counter() - begin


def apply(api, shape, things, base):
    """One apply of a fresh folder below `base`: its seconds, and the least they could have been."""
    folder = tempfile.mkdtemp(prefix="plumb-calls-", dir=base)
    try:
        for name, text in (("plumb.toml", spec(shape, things)), ("slow.provider.toml", DESCRIPTOR)):
            with open(os.path.join(folder, name), "w") as file:
                file.write(text)
        api.reset()
        api.forget()
        seconds = run(api, folder, "apply", "--yes")
        assert len(api.took) == 2 * things, f"{len(api.took)} calls"
        at_once = 1 if shape == "chain" else CONCURRENCY
        least = sum(api.took) / at_once
        api.forget()
        run(api, folder, "plan")
        return seconds, least, api.asked
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--things", type=int, default=400)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--markdown", help=f"write the table into this file too, between its two `{MARK}` lines")
    options = parser.parse_args()
    api = Timed(DELAY)
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    lines = ["| shape | things | calls | state | apply, median s | least possible s | ratio | questions of a plan |",
             "|---|---|---|---|---|---|---|---|"]
    for shape, things in (("wide", options.things // 4), ("wide", options.things), ("chain", options.things // 10)):
        for where, base in (("disk", None), ("memory", memory)):
            if where == "memory" and not base:
                print("there is no /dev/shm: measured on the disk alone", file=sys.stderr)
                continue
            rows = [apply(api, shape, things, base) for _ in range(options.runs)]
            ratio = statistics.median(seconds / least for seconds, least, _ in rows)
            lines.append(f"| {shape} | {things} | {2 * things} | {where} | {statistics.median(r[0] for r in rows):.2f} | "
                         f"{statistics.median(r[1] for r in rows):.2f} | {ratio:.3f} | {rows[0][2]} |")
    api.close()
    text = f"{platform.machine()}, {os.cpu_count()} cores, medians of {options.runs}\n\n" + "\n".join(lines)
    print(text)
    if options.markdown:
        with open(options.markdown) as file:
            before, _, after = file.read().split(MARK)
        with open(options.markdown, "w") as file:
            file.write(f"{before}{MARK}\n\n{text}\n\n{MARK}{after}")


if __name__ == "__main__":
    main()
