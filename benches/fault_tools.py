"""The two tools of benches/faults.py: how a spec is written, a command run, and what it left counted."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PLUMB = os.path.join(os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target")), "release", "plumb")

DESCRIPTOR = """
[provider]
name = "slow"
key = { env = "SLOW_KEY" }

[api.slow]
address = { env = "SLOW_URL" }
auth = { header = "Authorization", value = "Bearer ${key}" }
concurrency = 10

[type.thing]
list = "slow: GET /things"
read = "slow: GET /things/${id}"
identity = "one_time_name"
create = [
  { call = "slow: POST /things", sends = { name = "${one_time}" } },
  { name = "activate", call = "slow: PATCH /things/${id}", sends = { name = "${name}" } },
]
update = [ { call = "slow: PATCH /things/${id}", sends = "changed" } ]
delete = [ { call = "slow: DELETE /things/${id}" } ]

[type.thing.attribute]
name = { type = "string", required = true }
id = { type = "string", computed = true }
"""


class Tool:
    """One tool with one place for its state: knows how to write a spec, to run, and to count."""

    def __init__(self, api, where):
        self.api, self.where = api, where
        self.folders = []

    def folder(self):
        """A checkout of its own."""
        folder = tempfile.mkdtemp(prefix="plumb-faults-")
        self.folders.append(folder)
        return folder

    def clean(self):
        for folder in self.folders:
            shutil.rmtree(folder, ignore_errors=True)
        self.folders = []
        self.where.fresh()

    def start(self, folder, command):
        with open(os.path.join(folder, "out.txt"), "wb") as out:
            return subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                                    start_new_session=True, env=self.environment())

    def run(self, folder, command):
        """Runs a command to its end; returns its status and what it said."""
        process = self.start(folder, command)
        status = process.wait(timeout=600)
        return status, self.said(folder)

    def said(self, folder):
        with open(os.path.join(folder, "out.txt"), errors="replace") as out:
            return out.read()

    def apply(self, folder):
        return self.run(folder, self.APPLY)


class Plumb(Tool):
    name = "plumb"
    APPLY = [PLUMB, "apply", "--yes"]

    def environment(self):
        return {**os.environ, "SLOW_URL": self.api.url, "SLOW_KEY": "none", **self.where.environment()}

    def write(self, folder, things=None, values=0):
        text = self.where.plumb()
        if things is not None:
            text += '[provider.slow]\ndescriptor = "./slow.provider.toml"\n\n[resource.thing.t]\n'
            text += f'for_each = {json.dumps(things)}\nname = "${{each.key}}"\n'
        if values:
            text += f'[resource.value.r]\nfor_each = "${{[for i in range({values}) : tostring(i)]}}"\ninput = {{ n = "${{each.key}}" }}\n'
        with open(os.path.join(folder, "plumb.toml"), "w") as file:
            file.write(text)
        with open(os.path.join(folder, "slow.provider.toml"), "w") as file:
            file.write(DESCRIPTOR)

    def prepare(self, folder, first=True):
        if first and self.where.remote:
            status, said = self.run(folder, [PLUMB, "state", "init"])
            assert status == 0, said

    def save(self, folder):
        return self.run(folder, [PLUMB, "plan", "--out", "saved.plan"])

    def apply_saved(self, folder):
        return self.run(folder, [PLUMB, "apply", "saved.plan", "--yes"])

    def plan(self, folder):
        """Status of a plan, and how many creates it proposes."""
        status, said = self.run(folder, [PLUMB, "plan", "--json"])
        with contextlib.suppress(ValueError, KeyError):
            plan = json.loads(said[said.index("{"):])
            changes = sum(count for action, count in plan["summary"].items() if action != "no-op")
            return status, plan["summary"]["create"], changes
        return status, 0, 0

    def recorded(self, folder):
        """The addresses that the state names."""
        status, said = self.run(folder, [PLUMB, "state", "list"])
        return set(re.findall(r'^\w+\.\w+\["([^"]+)"\]', said, re.M)) if status == 0 else None

    REPORTING = [PLUMB, "apply", "--yes", "--json"]

    def reported(self, folder):
        return set(re.findall(r'"step_finished".*?"value\.r\[\\"(\d+)', self.said(folder)))

    def state_file(self, folder):
        return os.path.join(folder, ".plumb", "state.json")

    def force(self, folder, said):
        """What a person does about the lock of a run that hangs; true where a way exists."""
        found = re.search(r"plumb unlock (\w+)", said)
        return bool(found) and self.run(folder, [PLUMB, "unlock", found[1]])[0] == 0


class Terraform(Tool):
    name = "terraform"
    APPLY = ["terraform", "apply", "-auto-approve", "-input=false", "-no-color"]
    REPORTING = APPLY

    def environment(self):
        return {**os.environ, "CHECKPOINT_DISABLE": "1", **self.where.environment()}

    def write(self, folder, things=None, values=0):
        text = self.where.terraform()
        if things is not None:
            call = f"curl -sf -o /dev/null -H 'Content-Type: application/json' -d '{{\\\"name\\\": \\\"${{each.key}}\\\"}}' {self.api.url}/things"
            text += f'resource "terraform_data" "t" {{\n  for_each = toset({json.dumps(things)})\n  input = each.key\n'
            text += f'  provisioner "local-exec" {{\n    command = "{call}"\n  }}\n}}\n'
        if values:
            text += f'resource "terraform_data" "r" {{\n  for_each = toset([for i in range({values}) : tostring(i)])\n  input = {{ n = each.key }}\n}}\n'
        with open(os.path.join(folder, "main.tf"), "w") as file:
            file.write(text)

    def prepare(self, folder, first=True):
        status, said = self.run(folder, ["terraform", "init", "-input=false", "-no-color"])
        assert status == 0, said

    def save(self, folder):
        return self.run(folder, ["terraform", "plan", "-input=false", "-no-color", "-out=saved.plan"])

    def apply_saved(self, folder):
        return self.run(folder, ["terraform", "apply", "-input=false", "-no-color", "saved.plan"])

    def plan(self, folder):
        status, said = self.run(folder, ["terraform", "plan", "-input=false", "-no-color"])
        found = re.search(r"Plan: (\d+) to add, (\d+) to change, (\d+) to destroy", said)
        numbers = [int(text) for text in found.groups()] if found else [0, 0, 0]
        return status, numbers[0], sum(numbers)

    def recorded(self, folder):
        status, said = self.run(folder, ["terraform", "state", "list"])
        if status != 0 and "No state file was found" in said:
            return set()
        return set(re.findall(r'terraform_data\.\w+\["([^"]+)"\]', said)) if status == 0 else None

    def reported(self, folder):
        return set(re.findall(r'terraform_data\.r\["(\d+)"\]: Creation complete', self.said(folder)))

    def state_file(self, folder):
        return os.path.join(folder, "terraform.tfstate")

    def force(self, folder, said):
        found = re.search(r"ID:\s+([0-9a-f-]{36})", said)
        return bool(found) and self.run(folder, ["terraform", "force-unlock", "-force", found[1]])[0] == 0
