#!/usr/bin/env python3
"""The same faults for Plumb and, where it is on PATH, for terraform: what is lost, doubled, or stuck after them.

    cargo build --release --features postgres && python3 benches/faults.py [--trials 50] [--only kill-remote,torn]
                                            [--rows FILE] [--markdown FILE]

kill-remote  kill -9 at a random moment of an apply of 60 creates, state in a remote store; apply again
kill-local   the same with the state in files
torn         kill -9 at a random moment of an apply of 500 resources that need no API; plan again
paused       a run stands still in the middle, another one takes over its state, the first goes on
stale        a plan is saved, the world changes behind it, the plan is applied

Both tools make the same things at the same slow API (benches/slow_api.py, 0.2 s for each mutating
call), ten calls at once. Terraform's things are made by `terraform_data` with a `local-exec` that
calls curl: it stands for the create of a provider, and what is measured is terraform's own order of
calls and records. Whole process groups are killed. Remote state is terraform's backend `http` with
locking, and PostgreSQL for both where its programs are installed; the seed decides the moments.
"""

import argparse
import json
import os
import random
import shutil
import signal
import statistics
import sys
import time

from fault_states import Files, Http, Postgres
from fault_tools import PLUMB, Plumb, Terraform
from slow_api import Api

DELAY = 0.2


def names(prefix, n):
    return [f"{prefix}{i:03}" for i in range(n)]


def kill(process):
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def begin(tool, write, command, begun):
    """A folder, and an apply in it that has come so far that it counts as alive."""
    tool.api.reset()
    folder = tool.folder()
    write(folder)
    tool.prepare(folder)
    process = tool.start(folder, command)
    while not begun(folder) and process.poll() is None:
        time.sleep(0.002)
    return folder, process


def life(tool, write, command, begun=lambda _: True, runs=3):
    """How long an apply lives that nobody kills: the median."""
    lives = []
    for _ in range(runs):
        folder, process = begin(tool, write, command, begun)
        since = time.perf_counter()
        assert process.wait() == 0, tool.said(folder)
        lives.append(time.perf_counter() - since)
        tool.clean()
    return statistics.median(lives)


def killed(tool, write, command, dice, alive, begun=lambda _: True):
    """A folder whose apply was killed at a random moment of its life."""
    while True:
        folder, process = begin(tool, write, command, begun)
        time.sleep(dice.uniform(0, alive))
        if process.poll() is None:
            kill(process)
            tool.api.quiet()
            return folder
        process.wait()
        tool.clean()


def kill_trials(tool, trials, dice):
    """kill -9 in an apply of 60 creates, and the same command again."""
    wanted = names("t", 60)

    def write(folder):
        tool.write(folder, things=wanted)

    alive = life(tool, write, tool.APPLY)
    count = dict.fromkeys(["stuck", "doubled trials", "made before", "made again", "unnamed", "restless"], 0)
    for _ in range(trials):
        folder = killed(tool, write, tool.APPLY, dice, alive)
        count["made before"] += len(tool.api.names())
        status, said = tool.apply(folder)
        if status != 0:
            count["stuck"] += 1
            assert tool.force(folder, said), said
            status, said = tool.apply(folder)
        assert status == 0, said
        tool.api.quiet()
        there = tool.api.names()
        count["doubled trials"] += len(there) > len(wanted)
        count["made again"] += len(there) - len(wanted)
        assert set(wanted) <= set(there), "a thing is missing"
        count["unnamed"] += len(there) - len(tool.recorded(folder))
        count["restless"] += tool.plan(folder)[2] > 0
        tool.clean()
    return [
        ("the next apply needs a person to unlock first", count["stuck"], trials),
        ("trials that end with things made twice", count["doubled trials"], trials),
        ("things made twice, of those made before the kill", count["made again"], count["made before"]),
        ("things at the end that no state names", count["unnamed"], count["made before"]),
        ("the plan after that is not empty", count["restless"], trials),
    ]


def torn_trials(tool, trials, dice):
    """kill -9 in an apply of 500 resources without an API."""
    n = 500

    def write(folder):
        tool.write(folder, values=n)

    # From the first resource that is reported as made: before it there is nothing to lose.
    alive = life(tool, write, tool.REPORTING, tool.reported, runs=1)
    count = dict.fromkeys(["empty", "all", "unreadable", "reported", "lost"], 0)
    for _ in range(trials):
        folder = killed(tool, write, tool.REPORTING, dice, alive, tool.reported)
        reported = tool.reported(folder)
        path = tool.state_file(folder)
        count["empty"] += os.path.exists(path) and os.path.getsize(path) == 0
        status, creates, _ = tool.plan(folder)
        count["unreadable"] += status != 0
        count["all"] += status == 0 and creates == n
        count["reported"] += len(reported)
        count["lost"] += len(reported - (tool.recorded(folder) or set()))
        tool.clean()
    return [
        ("the state file has zero bytes", count["empty"], trials),
        ("the next plan fails: the state cannot be read", count["unreadable"], trials),
        ("the next plan wants to create all 500", count["all"], trials),
        ("resources reported as made that the state has not", count["lost"], count["reported"]),
    ]


def paused_trials(tool, trials, _dice):
    """A run is stopped in the middle, another one takes its place, and the first is woken."""
    base, first, second = names("base", 10), names("a", 20), names("b", 5)
    count = dict.fromkeys(["refused", "both", "lost", "twice", "dropped trials", "twice in the end"], 0)
    for _ in range(trials):
        tool.api.reset()
        one = tool.folder()
        tool.write(one, things=base)
        tool.prepare(one)
        status, said = tool.apply(one)
        assert status == 0, said
        two = one
        if tool.where.remote:
            two = tool.folder()
            tool.write(two, things=base)
            tool.prepare(two, first=False)
        tool.write(one, things=base + first)
        holder = tool.start(one, tool.APPLY)
        while len(tool.api.names()) < len(base) + 5:
            time.sleep(0.005)
        os.killpg(holder.pid, signal.SIGSTOP)
        tool.write(two, things=base + first + second)
        said_before = os.path.join(one, "first.txt")
        shutil.move(os.path.join(one, "out.txt"), said_before)
        if not tool.where.drop_connections():
            status, said = tool.apply(two)
            assert status != 0, "the lock kept nobody out"
            tool.force(two, said)
        status, _ = tool.apply(two)
        count["refused"] += status != 0
        os.killpg(holder.pid, signal.SIGCONT)
        both = holder.wait(timeout=120) == 0 and status == 0
        count["both"] += both
        tool.api.quiet()
        wanted = base + first + (second if status == 0 else [])
        recorded = tool.recorded(two) or set()
        there = tool.api.names()
        lost = len(set(wanted) - recorded)
        count["lost"] += lost
        count["dropped trials"] += lost > 0
        count["twice"] += len(there) - len(set(there))
        # Whoever comes next only wants what the spec says.
        status, said = tool.apply(two)
        if status != 0 and tool.force(two, said):
            tool.apply(two)
        tool.api.quiet()
        count["twice in the end"] += len(tool.api.names()) - len(base + first + second)
        tool.clean()
    return [
        ("the second run does not get the state while the first stands still", count["refused"], trials),
        ("both runs say that all went well, after a takeover", count["both"], trials - count["refused"]),
        ("trials in which the state has lost things that exist", count["dropped trials"], trials),
        ("things that the state has lost", count["lost"], 35 * trials),
        ("things too many once one more apply has ended", count["twice in the end"], 35 * trials),
    ]


def stale_trials(tool, trials, dice):
    """A plan is saved; then another apply, or somebody at the API, changes what it is about."""
    base = names("base", 5)
    count = dict.fromkeys(["state", "called", "object", "written over"], 0)
    for _ in range(trials):
        for behind in ("state", "object"):
            if behind == "object" and tool.name == "terraform":
                continue
            tool.api.reset(0.01)
            folder = tool.folder()
            tool.write(folder, things=base)
            tool.prepare(folder)
            assert tool.apply(folder)[0] == 0
            tool.write(folder, things=base + ["planned"] if behind == "state" else base[:-1] + ["renamed"])
            assert tool.save(folder)[0] == 0
            if behind == "state":
                assert tool.apply(folder)[0] == 0
            else:
                with tool.api.lock:
                    for thing in tool.api.things.values():
                        if thing["name"] == base[-1]:
                            thing["name"] = "changed by somebody"
            before = tool.api.names()
            refused = tool.apply_saved(folder)[0] != 0
            tool.api.quiet()
            changed = tool.api.names() != before
            count[behind] += not refused
            count["called" if behind == "state" else "written over"] += changed
            tool.clean()
    rows = [
        ("a plan is applied although another apply came between", count["state"], trials),
        ("that changed something", count["called"], trials),
    ]
    if tool.name == "plumb":
        rows.append(("a plan is applied although somebody changed its object at the API", count["object"], trials))
    return rows


SCENARIOS = {
    "kill-remote": (kill_trials, True, "`kill -9` in 60 creates, remote state, apply again"),
    "kill-local": (kill_trials, False, "`kill -9` in 60 creates, state in files, apply again"),
    "torn": (torn_trials, False, "`kill -9` in 500 resources without an API, state in files"),
    "paused": (paused_trials, None, "a run stands still, another takes over, the first goes on"),
    "stale": (stale_trials, False, "a saved plan, and the world moved on"),
}


# A `terraform_data` is written to a state in files before its provisioner is run, and then is there
# though its thing is not. A provider's create is not like that: it would be no comparison.
PLUMB_ONLY = ["kill-local"]


STATES = [Files.label, Http.label, Postgres.label]


def places(api, remote, wanted):
    """Where state can be, of those that are wanted."""
    if remote is not True and Files.label in wanted:
        yield Files()
    if remote is not False and Http.label in wanted:
        yield Http(api)
    if remote is not False and Postgres.label in wanted:
        try:
            yield Postgres()
        except FileNotFoundError as error:
            print(f"left out: {error}", file=sys.stderr)


def tools(api, where, key, wanted):
    if "plumb" in wanted and not isinstance(where, Http):
        plumb = Plumb(api, where)
        reason = plumb_refuses(plumb)
        if reason:
            print(f"left out: plumb with state in {where.label}: {reason}", file=sys.stderr)
        else:
            yield plumb
    if "terraform" in wanted and key not in PLUMB_ONLY and shutil.which("terraform"):
        yield Terraform(api, where)


def plumb_refuses(plumb):
    """Why this build of plumb has no such backend, if so."""
    folder = plumb.folder()
    plumb.write(folder, values=1)
    command = [PLUMB, "state", "init"] if plumb.where.remote else [PLUMB, "validate"]
    status, said = plumb.run(folder, command)
    plumb.clean()
    return None if status == 0 else said.strip().splitlines()[0]


def measure(api, options):
    """Yields rows: fault, tool, where, what, how often, of how many."""
    for key in [key for key in options.only.split(",") if key]:
        scenario, remote, title = SCENARIOS[key]
        for where in places(api, remote, options.states.split(",")):
            try:
                for tool in tools(api, where, key, options.tools.split(",")):
                    api.reset(DELAY)
                    begin = time.time()
                    for what, n, of in scenario(tool, options.trials, random.Random(options.seed)):
                        yield title, tool.name, where.label, what, n, of
                    print(f"{key}, {tool.name}, {where.label}: {time.time() - begin:.0f} s", file=sys.stderr)
            finally:
                where.close()


def table(rows):
    """A table for each fault: what was seen, in a column for each tool and place of its state."""
    texts = []
    for title in dict.fromkeys(row[0] for row in rows):
        cells = {(row[3], row[1], row[2]): f"{row[4]:,} of {row[5]:,}" for row in rows if row[0] == title and row[5]}
        columns = list(dict.fromkeys((tool, where) for _, tool, where in cells))
        lines = [f"| {title} | " + " | ".join(f"{tool}, {where}" for tool, where in columns) + " |", "|---" * (len(columns) + 1) + "|"]
        for what in dict.fromkeys(row[3] for row in rows if row[0] == title):
            lines.append(f"| {what} | " + " | ".join(cells.get((what, *column), "-") for column in columns) + " |")
        texts.append("\n".join(lines))
    return "\n\n".join(texts)


def earlier(path):
    """The rows of earlier runs, by what they are about."""
    if not path or not os.path.exists(path):
        return {}
    with open(path) as file:
        return {tuple(row[:4]): tuple(row) for row in json.load(file)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=50)
    parser.add_argument("--only", default=",".join(SCENARIOS))
    parser.add_argument("--tools", default="plumb,terraform")
    parser.add_argument("--states", default=",".join(STATES), help="where the state is: %(default)s")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rows", help="a file of rows: those of earlier runs are kept, and the new ones added")
    parser.add_argument("--markdown", help="write the table into this file too, between its `<!-- faults -->` lines")
    options = parser.parse_args()
    if not shutil.which("terraform"):
        print("terraform is not on PATH: measured without it", file=sys.stderr)
    api = Api(DELAY)
    rows = earlier(options.rows)
    for row in measure(api, options):
        rows[row[:4]] = row
        if options.rows:
            with open(options.rows, "w") as file:
                json.dump(list(rows.values()), file)
    api.close()
    rows = sorted(rows.values(), key=lambda row: [title for _, _, title in SCENARIOS.values()].index(row[0]))
    text = table(rows)
    print(text)
    if options.markdown:
        with open(options.markdown) as file:
            head, _, tail = file.read().split("<!-- faults -->")
        with open(options.markdown, "w") as file:
            file.write(f"{head}<!-- faults -->\n\n{text}\n\n<!-- faults -->{tail}")


if __name__ == "__main__":
    main()
