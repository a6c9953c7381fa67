#!/usr/bin/env python3
"""Makes the pictures of the README from real runs of `plumb`.

    cargo build --release && python3 docs/img/capture.py [PATH-OF-PLUMB]

Each picture is what a terminal shows of the commands in it, colours included: this script runs them
in a fresh folder, against the service that Plumb brings along, and turns the output into SVG. What
lies between the pictures (edits of the spec, a change behind Plumb's back) stands in `main`.
"""

import html
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PLUMB = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "target", "release", "plumb"))
COLOURS = {"31": "#ff7b72", "32": "#7ee787", "33": "#e3b341", "34": "#79c0ff", "35": "#d2a8ff", "36": "#76e3ea"}
SGR = re.compile(r"\x1b\[([0-9;]*)m")


def run(folder, *arguments, env=None, shown=None, streams="both"):
    """Runs plumb, and returns the prompt line and what it printed."""
    wanted = subprocess.STDOUT if streams == "both" else subprocess.PIPE
    done = subprocess.run(
        [PLUMB, "--color", "always", *arguments],
        cwd=folder, env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=wanted, text=True, check=False,
    )
    text = done.stdout if streams == "both" else done.stderr
    status = f"\n(exit status {done.returncode})" if done.returncode else ""
    return f"\x1b[1m$ {shown or 'plumb ' + ' '.join(arguments)}\x1b[0m\n{text.rstrip()}{status}"


def spans(line):
    """The line as SVG: one tspan for each stretch of one style."""
    style, parts, at = set(), [], 0
    for match in [*SGR.finditer(line), None]:
        text = line[at : match.start() if match else len(line)]
        if text:
            colour = next((COLOURS[code] for code in style if code in COLOURS), None)
            attributes = f' fill="{colour}"' if colour else ""
            attributes += ' font-weight="bold"' if "1" in style else ""
            attributes += ' opacity="0.6"' if "2" in style else ""
            parts.append(f"<tspan{attributes}>{html.escape(text)}</tspan>")
        if match:
            at = match.end()
            for code in (match.group(1) or "0").split(";"):
                code = str(int(code) - 60) if code in {str(n) for n in range(90, 98)} else code
                if code in {"0", "39", "22"}:
                    style = set() if code == "0" else style - (set(COLOURS) if code == "39" else {"1", "2"})
                else:
                    style -= set(COLOURS) if code in COLOURS else set()
                    style.add(code)
    return "".join(parts)


def picture(name, *outputs):
    """Writes docs/img/NAME.svg."""
    lines = "\n\n".join(outputs).expandtabs().split("\n")
    width = max(len(SGR.sub("", line)) for line in lines) * 8.0 + 40
    height = len(lines) * 19 + 36
    rows = "\n".join(
        f'<text x="20" y="{index * 19 + 30}" xml:space="preserve">{spans(line)}</text>' for index, line in enumerate(lines)
    )
    with open(os.path.join(HERE, name + ".svg"), "w") as file:
        file.write(
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" height="{height}">\n'
            f'<rect width="100%" height="100%" rx="8" fill="#0d1117"/>\n'
            f'<g font-family="ui-monospace, Menlo, Consolas, monospace" font-size="13" fill="#e6edf3">\n{rows}\n</g>\n</svg>\n'
        )


def edit(folder, *replacements):
    path = os.path.join(folder, "plumb.toml")
    with open(path) as file:
        text = file.read()
    for old, new in replacements:
        assert old in text, old
        text = text.replace(old, new)
    with open(path, "w") as file:
        file.write(text)


class Service:
    """A `plumb serve` with faults, and requests to it as a stranger sends them."""

    def __init__(self, data, *faults):
        command = [PLUMB, "serve", "--print-env", "--listen", "127.0.0.1:0", "--data", data]
        for fault in faults:
            command += ["--fault", fault]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.env = dict(self.process.stdout.readline().strip().split("=", 1) for _ in range(4))

    def request(self, method, path, body=None):
        request = urllib.request.Request(
            self.env["PLUMB_SERVERLESS_REST_URL"] + path,
            data=json.dumps(body).encode() if body else None, method=method,
            headers={"Authorization": "Bearer " + self.env["PLUMB_SERVERLESS_API_KEY"], "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    def end(self):
        self.process.terminate()
        self.process.wait()


def main():
    work = tempfile.mkdtemp()
    spec = os.path.join(ROOT, "examples", "quickstart", "plumb.toml")
    try:
        folder = os.path.join(work, "quickstart")
        os.mkdir(folder)
        shutil.copy(spec, folder)
        service = Service(os.path.join(folder, ".plumb", "service"))
        run(folder, "apply", "--yes")
        edit(folder, ("size = 20", "size = 30"), ("workers_max = 1", "workers_max = 3"))
        picture("plan", run(folder, "plan", "--steps"))
        run(folder, "apply", "--yes")
        edit(folder, ("size = 30", "size = 10"))
        picture("refused", run(folder, "plan"))
        edit(folder, ("size = 10", "size = 30"))
        volume = service.request("GET", "/networkvolumes")[0]["id"]
        service.request("PATCH", f"/networkvolumes/{volume}", {"size": 50})
        picture("drift", run(folder, "drift"))
        service.end()

        folder = os.path.join(work, "doubt")
        os.mkdir(folder)
        shutil.copy(spec, folder)
        data = os.path.join(folder, ".plumb", "service")
        lost = [f"op=GET /networkvolumes,nth={nth},kind=error500-before" for nth in range(2, 40)]
        service = Service(data, "op=POST /networkvolumes,nth=1,kind=lost", *lost)
        first = run(folder, "apply", "--yes", shown="plumb apply --yes > plan.txt", streams="stderr")
        service.end()
        service = Service(data)
        again = run(folder, "apply", "--yes", shown="plumb apply --yes > plan.txt", streams="stderr")
        picture("doubt", first, again)
        service.end()
    finally:
        shutil.rmtree(work)


if __name__ == "__main__":
    main()
