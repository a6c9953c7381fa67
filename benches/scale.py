#!/usr/bin/env python3
"""Times whole commands over specs of `value` resources, beside terraform where it is on PATH.

    cargo build --release && python3 benches/scale.py [--sizes 10000,100000] [--terraform-sizes 1000]
                                                      [--runs 5] [--markdown FILE]

Six shapes: `separate` (each resource has two references to two plain ones), `chains` (ten
resources in a row, each refers to the one before it), `for_each` (one block for each 50,000), `entries` (a block for
the entries of a map, each with a secret, and a block for the instances of that one; at most 20,000), `modules` (100 instances of a module, each like `separate`), `groups` (the same
100 times without a module). Each figure is the
median of the runs, with the peak memory of the largest. Every run works on a fresh folder.
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

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PLUMB = os.path.join(os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target")), "release", "plumb")

# range() of Plumb ends at 65,536 items: larger specs have several blocks.
BLOCK_MAX = 50_000

# A secret that stands in each entry of a map is named in each: 100,000 parts are the most that a plan writes out for a local.
ENTRIES_MAX = 20_000


# The instances of the shape `modules`.
MODULES = 100


def separate(n, prefix=""):
    """The lines of two resources and of n - 2 others that refer to them."""
    lines = []
    for base in ("left", "right"):
        lines += [f"[resource.value.{prefix}{base}]", f'input = "{base}"', ""]
    for i in range(n - 2):
        references = f'a = "${{value.{prefix}left.id}}", b = "${{value.{prefix}right.output}}"'
        lines += [f"[resource.value.{prefix}r{i}]", f"input = {{ n = {i}, {references} }}", ""]
    return lines


def plumb_spec(shape, n):
    """The spec text of n `value` resources."""
    lines = ["[plumb]", 'name = "scale"', ""]
    if shape == "separate":
        lines += separate(n)
    elif shape == "groups":
        for group in range(MODULES):
            lines += separate(n // MODULES, f"g{group}_")
    elif shape == "modules":
        keys = ", ".join(f'"m{i}"' for i in range(MODULES))
        lines += ["[module.part]", 'source = "./part"', f"for_each = [{keys}]"]
    elif shape == "chains":
        for i in range(n):
            before = f'"${{value.r{i - 1}.output.n}}"' if i % 10 else '"start"'
            lines += [f"[resource.value.r{i}]", f"input = {{ n = {i}, before = {before} }}", ""]
    elif shape == "entries":
        lines += ["[variable.secret]", 'type = "string"', "sensitive = true", 'default = "hunter-two"', "", "[local.entries]"]
        lines += [f'k{i} = {{ name = "n{i}", size = {i} }}' for i in range(n // 2)]
        lines += ["", "[local]", "secret = '${{ for k, v in local.entries : k => { name = v.name, word = \"${var.secret}-${k}\" } }}'"]
        lines += ["", "[resource.value.r]", 'for_each = "${local.secret}"', 'input = { name = "${each.value.name}", word = "${each.value.word}" }']
        lines += ["", "[resource.value.s]", "for_each = '${{ for k, v in value.r : \"${k}-s\" => v.id }}'", 'input = "${each.value}"']
    else:
        for start in range(0, n, BLOCK_MAX):
            name, end = f"r{start // BLOCK_MAX}", min(start + BLOCK_MAX, n)
            lines += [f"[resource.value.{name}]", f'for_each = "${{[for i in range({start}, {end}) : tostring(i)]}}"', 'input = { n = "${each.key}" }', ""]
    return "\n".join(lines)


def terraform_spec(shape, n):
    """The same resources as `terraform_data`."""
    lines = []
    if shape == "separate":
        for base in ("left", "right"):
            lines.append(f'resource "terraform_data" "{base}" {{\n  input = "{base}"\n}}')
        for i in range(n - 2):
            lines.append(
                f'resource "terraform_data" "r{i}" {{\n  input = {{ n = {i}, a = terraform_data.left.id, b = terraform_data.right.output }}\n}}'
            )
    elif shape == "chains":
        for i in range(n):
            before = f"terraform_data.r{i - 1}.output.n" if i % 10 else '"start"'
            lines.append(f'resource "terraform_data" "r{i}" {{\n  input = {{ n = {i}, before = {before} }}\n}}')
    elif shape == "entries":
        lines.append('variable "secret" {\n  sensitive = true\n  default   = "hunter-two"\n}')
        lines.append("locals {\n  entries = {")
        lines += [f'    k{i} = {{ name = "n{i}", size = {i} }}' for i in range(n // 2)]
        lines.append('  }\n  secret = { for k, v in local.entries : k => { name = v.name, word = "${var.secret}-${k}" } }\n}')
        lines.append('resource "terraform_data" "r" {\n  for_each = local.secret\n  input    = { name = each.value.name, word = each.value.word }\n}')
        lines.append('resource "terraform_data" "s" {\n  for_each = { for k, v in terraform_data.r : "${k}-s" => v.id }\n  input    = each.value\n}')
    else:
        # range() of terraform ends at 1024 elements.
        lines.append(
            'locals {\n  all = toset(flatten([for a in range(%d) : [for b in range(1000) : tostring(a * 1000 + b) if a * 1000 + b < %d]]))\n}'
            % ((n + 999) // 1000, n)
        )
        lines.append('resource "terraform_data" "r" {\n  for_each = local.all\n  input    = { n = each.key }\n}')
    return "\n".join(lines)


def write(path, make, shape, n):
    """Writes a spec in a process of its own: the kernel counts what this one held towards the peak of its children."""
    child = os.fork()
    if child == 0:
        with open(path, "w") as file:
            file.write(make(shape, n))
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if status != 0:
        sys.exit(f"{path} could not be written")


def write_module(folder, n):
    """Writes a module of n resources."""
    os.mkdir(folder)
    with open(os.path.join(folder, "plumb.toml"), "w") as file:
        file.write("\n".join(separate(n)))


def run(command, folder, expect=(0,)):
    """Runs one command; returns wall seconds and peak memory in MB."""
    begin = time.perf_counter()
    with open(os.path.join(folder, "out.txt"), "wb") as out:
        process = subprocess.Popen(command, cwd=folder, stdout=out, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begin
    code = os.waitstatus_to_exitcode(status)
    if code not in expect:
        with open(os.path.join(folder, "out.txt"), errors="replace") as out:
            sys.exit(f"{' '.join(command)} ended with {code}:\n{out.read()[-2000:]}")
    return seconds, usage.ru_maxrss / 1024


PLUMB_STEPS = [
    ("plan, from nothing", [PLUMB, "plan", "."]),
    ("apply", [PLUMB, "apply", ".", "--yes"]),
    ("plan, no change", [PLUMB, "plan", "."]),
    ("destroy", [PLUMB, "destroy", ".", "--yes"]),
]
TERRAFORM_STEPS = [
    ("plan, from nothing", ["terraform", "plan", "-input=false", "-no-color"]),
    ("apply", ["terraform", "apply", "-auto-approve", "-input=false", "-no-color"]),
    ("plan, no change", ["terraform", "plan", "-input=false", "-no-color"]),
    ("destroy", ["terraform", "destroy", "-auto-approve", "-input=false", "-no-color"]),
]


def measure(tool, shape, n, runs):
    """All steps, `runs` times; yields a row for each step."""
    figures = {}
    for _ in range(runs):
        folder = tempfile.mkdtemp(prefix="plumb-scale-")
        try:
            if tool == "plumb":
                spec, make, steps = "plumb.toml", plumb_spec, PLUMB_STEPS
            else:
                spec, make, steps = "main.tf", terraform_spec, TERRAFORM_STEPS
            write(os.path.join(folder, spec), make, shape, n)
            if shape == "modules":
                write_module(os.path.join(folder, "part"), n // MODULES)
            if tool == "terraform":
                run(["terraform", "init", "-input=false", "-no-color"], folder)
            for name, command in steps:
                figures.setdefault(name, []).append(run(command, folder))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    for name, values in figures.items():
        seconds = [value[0] for value in values]
        yield {
            "tool": tool, "shape": shape, "n": n, "step": name,
            "median": statistics.median(seconds), "min": min(seconds), "max": max(seconds),
            "memory": max(value[1] for value in values),
        }


def table(rows):
    lines = ["| tool | shape | resources | command | median s | min–max s | peak MB |", "|---|---|---|---|---|---|---|"]
    for row in rows:
        lines.append(
            "| {tool} | {shape} | {n:,} | {step} | {median:.3f} | {min:.3f}–{max:.3f} | {memory:.0f} |".format(**row)
        )
    return "\n".join(lines)


# The shapes that are written for Plumb only.
PLUMB_ONLY = ("modules", "groups")


def sizes(shape, text):
    """The sizes of a comma-separated text that a shape can have."""
    asked = [int(n) for n in text.split(",") if n]
    possible = [n for n in asked if n > 0 and not (shape == "entries" and n > ENTRIES_MAX)]
    for n in sorted(set(asked) - set(possible)):
        print(f"{shape}: {n:,} is no size that it can have; left out", file=sys.stderr)
    return possible


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="10000")
    parser.add_argument("--terraform-sizes", default="1000")
    parser.add_argument("--shapes", default="separate,chains,for_each,entries,modules,groups")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--markdown", help="write the table into this file too, after its first `<!-- figures -->` line")
    options = parser.parse_args()
    rows = []
    seconds = [run([PLUMB, "version"], tempfile.gettempdir())[0] for _ in range(20)]
    rows.append({"tool": "plumb", "shape": "-", "n": 0, "step": "version", "median": statistics.median(seconds),
                 "min": min(seconds), "max": max(seconds), "memory": 0})
    for shape in options.shapes.split(","):
        for n in sizes(shape, options.sizes):
            rows += measure("plumb", shape, n, options.runs)
    if shutil.which("terraform"):
        for shape in options.shapes.split(","):
            for n in sizes(shape, options.terraform_sizes) if shape not in PLUMB_ONLY else []:
                rows += measure("plumb", shape, n, options.runs)
                rows += measure("terraform", shape, n, 1 if n > 500 else options.runs)
    else:
        print("terraform is not on PATH: measured without it", file=sys.stderr)
    text = f"{platform.machine()}, {os.cpu_count()} cores, Linux {platform.release()}\n\n" + table(rows)
    print(text)
    if options.markdown:
        with open(options.markdown) as file:
            head = file.read().split("<!-- figures -->")[0]
        with open(options.markdown, "w") as file:
            file.write(head + "<!-- figures -->\n\n" + text + "\n")


if __name__ == "__main__":
    main()
