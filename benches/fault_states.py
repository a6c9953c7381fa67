"""Where state can be, for benches/faults.py: in files, behind terraform's backend `http`, in PostgreSQL."""

import glob
import os
import random
import shutil
import subprocess
import tempfile


class Files:
    """State in files of the folder."""

    remote, label = False, "files"

    def environment(self):
        return {}

    def plumb(self):
        return ""

    def terraform(self):
        return ""

    def fresh(self):
        pass

    def drop_connections(self):
        return False

    def close(self):
        pass


class Http(Files):
    """State in the slow API, by terraform's backend `http`. Plumb has no such backend."""

    remote, label = True, "http"

    def __init__(self, api):
        self.api = api

    def terraform(self):
        address = f"{self.api.url}/state/main"
        return (f'terraform {{\n  backend "http" {{\n    address = "{address}"\n    lock_address = "{address}"\n'
                f'    unlock_address = "{address}"\n    retry_max = 0\n  }}\n}}\n')


class Postgres(Files):
    """State in a PostgreSQL of its own, on a socket in a folder of its own."""

    remote, label = True, "PostgreSQL"

    def __init__(self):
        programs = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))
        found = programs[-1] if programs else shutil.which("initdb")
        if not found:
            raise FileNotFoundError("no programs of PostgreSQL are installed")
        self.programs = os.path.dirname(found)
        self.folder = tempfile.mkdtemp(prefix="plumb-faults-pg-")
        self.number = 0
        self.user = {}
        if os.geteuid() == 0:
            shutil.chown(self.folder, "postgres")
            self.user = {"user": "postgres"}
        self.port = random.SystemRandom().randrange(20000, 30000)
        self.command("initdb", "-D", f"{self.folder}/data", "-U", "plumb", "-A", "trust")
        options = f"-c listen_addresses=127.0.0.1 -p {self.port} -k {self.folder}"
        self.command("pg_ctl", "-D", f"{self.folder}/data", "-w", "-l", f"{self.folder}/log", "-o", options, "start")
        self.fresh()

    def command(self, program, *arguments):
        subprocess.run([os.path.join(self.programs, program), *arguments], check=True, cwd=self.folder,
                       stdout=subprocess.DEVNULL, **self.user)

    def sql(self, database, text):
        self.command("psql", "-h", self.folder, "-p", str(self.port), "-U", "plumb", "-d", database, "-qc", text)

    def url(self):
        return f"postgres://plumb@127.0.0.1:{self.port}/state{self.number}?sslmode=disable"

    def fresh(self):
        self.number += 1
        self.sql("postgres", f"create database state{self.number}")

    def environment(self):
        return {"PLUMB_STATE_URL": self.url()}

    def drop_connections(self):
        """What a failing network, a proxy or a restart does: every session ends, with its locks."""
        self.sql("postgres", f"select pg_terminate_backend(pid) from pg_stat_activity where datname = 'state{self.number}'")
        return True

    def plumb(self):
        return '[state]\nbackend = "postgres"\nname = "faults"\n\n'

    def terraform(self):
        return f'terraform {{\n  backend "pg" {{\n    conn_str = "{self.url()}"\n  }}\n}}\n'

    def close(self):
        self.command("pg_ctl", "-D", f"{self.folder}/data", "-m", "immediate", "stop")
        shutil.rmtree(self.folder, ignore_errors=True)
