#!/usr/bin/env python3
"""Starts clients of Postgres's protocol against `alluvium serve` and prints a table of what works.

Each client has a server of its own, on loopback, with the tables of schema.sql, and a folder of its own that it is
installed into. A client whose tool is missing on this machine, or whose package its registry does not give, is skipped.

    run.py                          all clients
    run.py psql psycopg             some of them
    run.py --binary PATH            another program than the one that cargo builds
    run.py --verbose                what the clients and servers print

Ends with 1 if a step fails that expected.json says works.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field

HERE = pathlib.Path(__file__).resolve().parent
STEPS = ["connect", "list", "reflect", "read", "write", "copy", "stream", "error"]
USER = "alluvium"


class Skipped(Exception):
    """A client cannot be installed here."""


@dataclass
class Client:
    name: str
    program: str
    packages: list = field(default_factory=list)
    kind: str = "python"
    seconds: int = 90
    # A door that not every program has, beside that of Postgres's protocol.
    door: str = ""


CLIENTS = [
    Client("psql", "psql.sh", kind="shell"),
    Client("psycopg", "psycopg.py", ["psycopg[binary]>=3.3,<4"]),
    Client("psycopg2", "psycopg2.py", ["psycopg2-binary>=2.9.13"]),
    Client("sqlalchemy", "sqlalchemy.py", ["sqlalchemy>=2.1,<3", "psycopg2-binary>=2.9.13"]),
    Client("pandas", "pandas.py", ["pandas>=3,<4", "sqlalchemy>=2.1,<3", "psycopg2-binary>=2.9.13"]),
    Client("asyncpg", "asyncpg.py", ["asyncpg>=0.31"]),
    Client("pgbench", "pgbench.sh", kind="shell", seconds=240),
    Client("node", "node.js", ["pg@^8.16", "pg-cursor@^2.15", "pg-copy-streams@^7"], kind="node"),
    Client(
        "duckdb", "duckdb.py", ["duckdb==1.5.5", "duckdb-extensions==1.5.5", "duckdb-extension-postgres-scanner==1.5.5"]
    ),
    Client("polars", "polars.py", ["polars>=2,<3", "connectorx>=0.4.6", "adbc-driver-postgresql>=1.13", "pyarrow"]),
    Client("adbc", "adbc.py", ["adbc-driver-postgresql>=1.13", "pyarrow"]),
    Client("flight", "flight.py", ["adbc-driver-flightsql>=1.13", "adbc-driver-manager>=1.13", "pyarrow"], door="flight"),
    Client("pgjdbc", "Jdbc.java", ["org.postgresql:postgresql:42.7.14"], kind="java"),
    Client("pgx", "pgx.go", ["github.com/jackc/pgx/v5@v5.12.0"], kind="go", seconds=180),
    Client("pgcli", "pgcli.py", ["pgcli>=4.7"]),
    # 1.12 fetches a part of itself from elsewhere than its registry.
    Client("dbt", "dbt.py", ["dbt-core>=1.11,<1.12", "dbt-postgres>=1.10"], seconds=240),
]


def tool(*names):
    for name in names:
        if shutil.which(name) is None:
            raise Skipped(f"no {name} on this machine")


def install(command, folder, log):
    """Runs a command of a package registry's client."""
    done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=900)
    log.write(done.stdout + done.stderr)
    if done.returncode != 0:
        raise Skipped(f"{pathlib.Path(command[0]).name} failed: {(done.stderr or done.stdout).strip()[-200:]}")


def prepare(client, cache, log):
    """Installs a client, if it is not yet, and returns the command that runs its program."""
    program = HERE / client.program
    folder = cache / client.name
    folder.mkdir(parents=True, exist_ok=True)
    stamp = folder / ".installed"
    wanted = json.dumps(client.packages)
    done = stamp.is_file() and stamp.read_text() == wanted
    if client.kind == "shell":
        tool("bash", "psql", "python3", *(["pgbench"] if client.name == "pgbench" else []))
        return ["bash", program]
    if client.kind == "python":
        python = folder / "bin" / "python"
        if not done:
            install([sys.executable, "-m", "venv", folder], folder, log)
            install([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *client.packages], folder, log)
        # The programs are named after what they import: -P keeps their folder out of the path.
        command = [python, "-P", program]
    elif client.kind == "node":
        tool("node", "npm")
        if not done:
            install(["npm", "install", "--no-fund", "--no-audit", "--prefix", folder, *client.packages], folder, log)
        shutil.copy(program, folder / client.program)
        command = ["node", folder / client.program]
    elif client.kind == "go":
        tool("go")
        if not done:
            if not (folder / "go.mod").exists():
                install(["go", "mod", "init", "clients"], folder, log)
            install(["go", "get", *client.packages], folder, log)
        shutil.copy(program, folder / "main.go")
        install(["go", "build", "-o", "program", "main.go"], folder, log)
        command = [folder / "program"]
    else:
        tool("java", "javac", "mvn")
        if not done:
            for package in client.packages:
                install(["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={package}", f"-DoutputDirectory={folder}"], folder, log)
        install(["javac", "-cp", f"{folder}/*", "-d", folder, program], folder, log)
        command = ["java", "-cp", f"{folder}{os.pathsep}{folder}/*", program.stem]
    stamp.write_text(wanted)
    return command


class Server:
    """`alluvium serve` on a free port of loopback, with its state in memory."""

    def __init__(self, binary, log, door):
        self.flight = ""
        self.sockets = tempfile.TemporaryDirectory()
        command = [binary, "serve", HERE / "schema.sql", "--pg", "127.0.0.1:0", "--socket", self.sockets.name, "--grace", "2"]
        command += [f"--{door}", "127.0.0.1:0"] if door else []
        self.output = tempfile.TemporaryFile("w+")
        self.log = log
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.output, stderr=subprocess.STDOUT)
        deadline = time.monotonic() + 60
        while True:
            found = re.search(r"127\.0\.0\.1 -p (\d+)", self.printed())
            if found:
                self.port = found.group(1)
                flight = re.search(r"grpc://(\S+),", self.printed())
                if flight or not door:
                    self.flight = flight.group(1) if flight else ""
                    return
            if self.process.poll() is not None or time.monotonic() > deadline:
                text = self.printed()
                self.stop()
                raise SystemExit(f"the server does not start: {text.strip()}")
            time.sleep(0.05)

    def printed(self):
        self.output.seek(0)
        return self.output.read()

    def stop(self):
        """Ends it, and returns what is wrong with how it ended."""
        died = self.process.poll()
        if died is None:
            self.process.terminate()
        try:
            code = self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            code = "no end after SIGTERM"
        self.log.write(self.printed())
        self.output.close()
        self.sockets.cleanup()
        if died is not None:
            return f"the server ended by itself: {died}"
        return None if code == 0 else f"the server ended with: {code}"


def run(command, client, server, log):
    """Runs the program of a client and returns the outcomes of its steps: None, or what failed."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    environment.update(PGHOST="127.0.0.1", PGPORT=server.port, PGUSER=USER, PGDATABASE="alluvium", PGCONNECT_TIMEOUT="10")
    environment.update(FLIGHT=server.flight)
    environment.update(PYTHONPATH=str(HERE / "common"), PYTHONDONTWRITEBYTECODE="1", TZ="UTC", LC_ALL="C.UTF-8", NO_COLOR="1")
    # A session of its own, so that what the program starts ends with it.
    process = subprocess.Popen(
        [str(part) for part in command],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    late = None
    try:
        printed, _ = process.communicate(timeout=client.seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        printed, _ = process.communicate()
        late = f"no end after {client.seconds} s"
    log.write(printed)
    steps, other = {}, []
    for line in printed.splitlines():
        try:
            report = json.loads(line)
            steps[report["step"]] = None if report["ok"] else report["detail"] or "failed"
        except (ValueError, KeyError, TypeError):
            other.append(line)
    failure = late or (f"ended with {process.returncode}: {' '.join(other)[-300:]}" if process.returncode else None)
    if failure:
        # It belongs to the step that came next.
        following = next((step for step in STEPS if step not in steps), "error")
        steps[following] = failure
    return steps


def cell(steps, step):
    if step not in steps:
        return "–"
    detail = steps[step]
    if detail is None:
        return "ok"
    text = " ".join(detail.split()).replace("|", "\\|")
    return text if len(text) <= 80 else text[:77] + "…"


def binary():
    target = os.environ.get("CARGO_TARGET_DIR")
    if target is None:
        command = ["cargo", "metadata", "--no-deps", "--format-version", "1"]
        target = json.loads(subprocess.run(command, cwd=HERE, check=True, capture_output=True).stdout)["target_directory"]
    return pathlib.Path(target) / "debug" / "alluvium"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clients", nargs="*", metavar="CLIENT", help=", ".join(client.name for client in CLIENTS))
    parser.add_argument("--binary", type=pathlib.Path, help="the program; otherwise the one that cargo builds")
    parser.add_argument("--cache", type=pathlib.Path, help="where clients are installed; otherwise ~/.cache/alluvium/clients")
    parser.add_argument("--verbose", action="store_true", help="print all that the clients print")
    options = parser.parse_args()
    unknown = set(options.clients) - {client.name for client in CLIENTS}
    if unknown:
        parser.error(f"no client {', '.join(sorted(unknown))}")
    program = options.binary or binary()
    if not program.is_file():
        parser.error(f"there is no {program}: cargo build --bin alluvium")
    cache = options.cache or pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "alluvium" / "clients"
    expected = json.loads((HERE / "expected.json").read_text())

    table, broken = {}, []
    for client in CLIENTS:
        if options.clients and client.name not in options.clients:
            continue
        with tempfile.TemporaryFile("w+") as log:
            began = time.monotonic()
            try:
                command = prepare(client, cache, log)
            except Skipped as reason:
                table[client.name] = str(reason)
                print(f"{client.name}: skipped, {reason}", file=sys.stderr, flush=True)
                continue
            if client.door and subprocess.run([program, "serve", "--check", f"--{client.door}", "127.0.0.1:0"], capture_output=True).returncode:
                table[client.name] = f"the program has no {client.door}"
                print(f"{client.name}: skipped, {table[client.name]}", file=sys.stderr, flush=True)
                continue
            server = Server(program, log, client.door)
            try:
                steps = run(command, client, server, log)
            finally:
                failure = server.stop()
            if failure:
                steps["error"] = failure
            table[client.name] = steps
            failed = [step for step in STEPS if steps.get(step) is not None]
            print(f"{client.name}: {time.monotonic() - began:.0f} s, {', '.join(failed) or 'nothing'} failed", file=sys.stderr, flush=True)
            if options.verbose:
                log.seek(0)
                print(log.read(), file=sys.stderr, flush=True)
            for step in expected.get(client.name, []):
                if step not in steps or steps[step] is not None:
                    broken.append(f"{client.name}: {step} used to work: {steps.get(step, 'it was not reached')}")

    print("| client | " + " | ".join(STEPS) + " |")
    print("|---" * (len(STEPS) + 1) + "|")
    for name, steps in table.items():
        cells = [cell(steps, step) for step in STEPS] if isinstance(steps, dict) else ["skipped"] * len(STEPS)
        print(f"| {name} | " + " | ".join(cells) + " |")
    for line in broken:
        print(line, file=sys.stderr)
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
