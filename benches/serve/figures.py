#!/usr/bin/env python3
"""Figures of `alluvium serve`, beside Postgres where it does the same: one run, one table a part.

    cargo build --release --bin alluvium
    benches/serve/figures.py                     all parts
    benches/serve/figures.py pgbench rows        some of them

- ``start``: from the start of the process to the first connection that is accepted, without state and over a directory
- ``pgbench``: `select-only` and TPC-B at scale 10, both programs with fsync on one file system, in turn; here with a view of the
  balance of each branch
- ``rows``: ``SELECT *`` of a table in binary values, beside ``COPY … (FORMAT binary)`` of Postgres
- ``idle``: the memory of idle connections, in the clear and with TLS
- ``subscribers``: from a commit to the subscribers of a view over HTTP, which changes 20 times a second

Needs Postgres 15 (``--postgres`` names the folder of its programs), and openssl for ``idle``. Everything listens on loopback or on a
socket in a temporary folder, and ends with this program. An idle machine and a release build count.
"""

import argparse
import asyncio
import os
import pathlib
import re
import resource
import shutil
import signal
import socket
import ssl
import statistics
import struct
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
PARTS = ["start", "pgbench", "rows", "idle", "subscribers"]
PATIENCE = 60.0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measures alluvium serve.")
    parser.add_argument("parts", nargs="*", default=PARTS, help=", ".join(PARTS))
    parser.add_argument("--binary", type=pathlib.Path, default=TARGET / "release" / "alluvium")
    parser.add_argument("--postgres", type=pathlib.Path, default=pathlib.Path("/usr/lib/postgresql/15/bin"))
    parser.add_argument("--folder", help="a folder of the file system to measure on")
    parser.add_argument("--seconds", type=int, default=10, help="of each run of pgbench")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each program; medians count")
    parser.add_argument("--scale", type=int, default=10, help="of pgbench")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--connections", type=int, default=10_000)
    parser.add_argument("--subscribers", type=int, default=1_000)
    return parser.parse_args()


def table(title: str, head: list[str], rows: list[list[str]]) -> None:
    print(f"\n## {title}\n\n| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for row in rows:
        print(f"| {' | '.join(row)} |")
    sys.stdout.flush()


# Programs


class Server:
    """`alluvium serve` in a folder of its own."""

    def __init__(self, options, folder: pathlib.Path, *more: str, state: pathlib.Path | None = None):
        self.folder = folder
        self.socket = folder / "socket"
        self.socket.mkdir(exist_ok=True)
        command = [options.binary, "serve", "--socket", self.socket, "--log", "warn", *more]
        if state is not None:
            command += ["--state", state]
        self.log = open(folder / "serve.log", "w+")
        self.begun = time.monotonic()
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.log, stderr=subprocess.STDOUT)
        self.path = self.socket / ".s.PGSQL.5432"
        while True:
            try:
                Connection(self.path, "alluvium").close()
                break
            except (FileNotFoundError, ConnectionRefusedError):
                if self.process.poll() is not None or time.monotonic() - self.begun > PATIENCE:
                    raise SystemExit("the server does not start: " + self.said())
                time.sleep(0.001)
        self.seconds = time.monotonic() - self.begun

    def said(self) -> str:
        self.log.flush()
        return (self.folder / "serve.log").read_text()

    def printed(self, pattern: str) -> str:
        """What the server prints at its start."""
        for _ in range(1000):
            if found := re.search(pattern, self.said()):
                return found.group(1)
            time.sleep(0.01)
        raise SystemExit(f"{pattern} is not printed: {self.said()}")

    def memory(self) -> int:
        """Its resident memory without the pages of files, in bytes."""
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"RssAnon:\s+(\d+) kB", status).group(1)) * 1024

    def environment(self) -> dict:
        return os.environ | {"PGHOST": str(self.socket), "PGPORT": "5432", "PGUSER": "alluvium", "PGDATABASE": "alluvium"}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(PATIENCE)
        self.log.close()


class Postgres:
    """Postgres in a folder of its own, with the settings that it comes with, and room for the connections."""

    def __init__(self, options, folder: pathlib.Path):
        self.socket = folder
        self.programs = options.postgres
        # Postgres refuses to be run by root.
        self.user = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"] if os.geteuid() == 0 else []
        if self.user:
            shutil.chown(folder, "nobody", "nogroup")
        data = folder / "data"
        self._run("initdb", "-D", data, "-U", "alluvium", "-A", "trust", "-E", "UTF8", "--locale=C")
        command = [*self.user, self.programs / "postgres", "-D", data, "-k", folder, "-h", "", "-c", "max_connections=200"]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.path = folder / ".s.PGSQL.5432"
        while subprocess.run([self.programs / "pg_isready", "-q", "-h", folder]).returncode != 0:
            time.sleep(0.05)
        self._run("createdb", "-h", folder, "-U", "alluvium", "alluvium")

    def _run(self, program: str, *rest) -> None:
        subprocess.run([*self.user, self.programs / program, *rest], check=True, stdout=subprocess.DEVNULL)

    environment = Server.environment

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGINT)
        self.process.wait(PATIENCE)


class Connection:
    """A connection of Postgres's protocol that reads as fast as it can."""

    def __init__(self, address, user: str, context: ssl.SSLContext | None = None):
        if isinstance(address, tuple):
            self.socket = socket.create_connection(address)
        else:
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.connect(str(address))
        if context is not None:
            self.socket.sendall(struct.pack("!II", 8, 80877103))
            assert self.socket.recv(1) == b"S", "no TLS"
            self.socket = context.wrap_socket(self.socket, server_hostname="localhost")
        body = struct.pack("!I", 196608) + b"user\0%b\0database\0alluvium\0\0" % user.encode()
        self.socket.sendall(struct.pack("!I", len(body) + 4) + body)
        self.wait()

    @staticmethod
    def message(kind: bytes, body: bytes) -> bytes:
        return kind + struct.pack("!I", len(body) + 4) + body

    def wait(self) -> int:
        """Reads up to the next ReadyForQuery, and returns how many bytes came."""
        end = b"Z\0\0\0\5"
        total, last = 0, b""
        buffer = bytearray(1 << 20)
        while True:
            count = self.socket.recv_into(buffer)
            if count == 0:
                raise ConnectionRefusedError(last.decode(errors="replace"))
            total += count
            last = (last + bytes(buffer[max(0, count - 6) : count]))[-6:]
            if last[:5] == end:
                return total
            if count < 4096 and buffer[0:1] == b"E":
                raise SystemExit(bytes(buffer[:count]).decode(errors="replace"))

    def simple(self, sql: str) -> int:
        self.socket.sendall(self.message(b"Q", sql.encode() + b"\0"))
        return self.wait()

    def binary(self, sql: str) -> int:
        """Runs a query whose values come in binary."""
        parse = self.message(b"P", b"\0" + sql.encode() + b"\0\0\0")
        bind = self.message(b"B", b"\0\0" + struct.pack("!HHHH", 0, 0, 1, 1))
        execute = self.message(b"E", b"\0" + struct.pack("!I", 0))
        self.socket.sendall(parse + bind + execute + self.message(b"S", b""))
        return self.wait()

    def close(self) -> None:
        self.socket.close()


# Parts


def start(options, folder: pathlib.Path) -> None:
    def seconds(name: str, **more) -> float:
        place = folder / name
        place.mkdir(exist_ok=True)
        with Server(options, place, **more) as server:
            return server.seconds

    empty = statistics.median(seconds("start") for _ in range(10))
    state = folder / "state"
    with Server(options, folder, state=state) as server:
        connection = Connection(server.path, "alluvium")
        connection.simple("CREATE TABLE t (a BIGINT PRIMARY KEY, b VARCHAR)")
        for begin in range(0, options.rows, 1_000_000):
            rows = f"generate_series({begin}, {min(options.rows, begin + 1_000_000) - 1})"
            connection.simple(f"INSERT INTO t SELECT g, md5(g::VARCHAR) FROM {rows} AS x(g)")
        connection.simple("CREATE MATERIALIZED VIEW v AS SELECT a % 1000 AS g, COUNT(*) AS n FROM t GROUP BY 1")
    size = sum(file.stat().st_size for file in state.rglob("*") if file.is_file())
    full = statistics.median(seconds("again", state=state) for _ in range(5))
    rows = [["nothing", f"{empty * 1000:.0f} ms"], [f"a directory of {size / 1e9:.1f} GB", f"{full * 1000:.0f} ms"]]
    table("Start", ["over", "to the first connection"], rows)


def pgbench(options, folder: pathlib.Path) -> None:
    place = folder / "postgres"
    place.mkdir()
    with Postgres(options, place) as postgres, Server(options, folder, state=folder / "bank") as server:
        programs = {"Alluvium": server, "Postgres": postgres}

        def bench(program, *more) -> str:
            command = [options.postgres / "pgbench", *map(str, more)]
            done = subprocess.run(command, env=program.environment(), capture_output=True, text=True)
            return done.stdout + done.stderr

        for program in programs.values():
            bench(program, "-i", "-s", options.scale, "-q", "-I", "dtgp")
        view = "CREATE MATERIALIZED VIEW branches AS SELECT bid, SUM(abalance) AS balance, COUNT(*) AS n FROM pgbench_accounts GROUP BY bid"
        Connection(server.path, "alluvium").simple(view)
        rows = []
        for name, flag in [("select-only", ["-S"]), ("TPC-B", [])]:
            for mode in ["simple", "extended", "prepared"]:
                for clients in [1, 16, 64]:
                    rates: dict = {name: [] for name in programs}
                    failed = 0
                    for _ in range(options.rounds):
                        for label, program in programs.items():
                            said = bench(
                                program, "-n", "-M", mode, "-c", clients, "-j", 1, "-T", options.seconds, *flag
                            )
                            rate = re.search(r"tps = ([\d.]+)", said)
                            if rate is None:
                                raise SystemExit(f"{label}: {said}")
                            rates[label].append(float(rate.group(1)))
                            if label == "Alluvium":
                                lost = re.search(r"failed transactions: (\d+)", said)
                                failed += int(lost.group(1)) if lost else 0
                    ours, theirs = (statistics.median(rates[label]) for label in programs)
                    rows.append(
                        [name, mode, str(clients), f"{ours:,.0f}", f"{theirs:,.0f}", f"{ours / theirs:.2f}", str(failed)]
                    )
        head = ["", "protocol", "clients", "Alluvium", "Postgres", "ratio", "failed"]
        table(f"pgbench at scale {options.scale}, transactions a second", head, rows)


def rows(options, folder: pathlib.Path) -> None:
    place = folder / "postgres_rows"
    place.mkdir()
    columns = "g AS a, g * 7 AS b, 'text ' || (g % 1000000) AS c, TIMESTAMP '2026-01-01' + g * INTERVAL '1' SECOND AS d"
    with Postgres(options, place) as postgres, Server(options, folder) as server:
        ours, theirs = Connection(server.path, "alluvium"), Connection(postgres.path, "alluvium")
        for connection in [ours, theirs]:
            connection.simple("CREATE TABLE r (a BIGINT, b BIGINT, c VARCHAR, d TIMESTAMP)")
            for begin in range(0, options.rows, 1_000_000):
                series = f"generate_series({begin}, {min(options.rows, begin + 1_000_000) - 1})"
                connection.simple(f"INSERT INTO r SELECT {columns} FROM {series} AS x(g)")
        kinds = {
            "Alluvium, SELECT": lambda: ours.binary("SELECT * FROM r"),
            "Alluvium, COPY": lambda: ours.simple("COPY r TO STDOUT (FORMAT binary)"),
            "Postgres, SELECT": lambda: theirs.binary("SELECT * FROM r"),
            "Postgres, COPY": lambda: theirs.simple("COPY r TO STDOUT (FORMAT binary)"),
        }
        times: dict = {kind: [] for kind in kinds}
        sizes = {}
        for _ in range(options.rounds):
            for kind, run in kinds.items():
                begun = time.monotonic()
                sizes[kind] = run()
                times[kind].append(time.monotonic() - begun)
        base = statistics.median(times["Postgres, COPY"])
        lines = [
            [kind, f"{statistics.median(all):.2f} s", f"{sizes[kind] / 1e6:,.0f} MB", f"{base / statistics.median(all):.2f}"]
            for kind, all in times.items()
        ]
        table(f"{options.rows:,} rows in binary", ["", "time", "bytes", "beside COPY of Postgres"], lines)


def idle(options, folder: pathlib.Path) -> None:
    count = options.connections
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    command += ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate]
    subprocess.run(command, check=True, capture_output=True)
    key.chmod(0o600)
    context = ssl.create_default_context(cafile=str(certificate))
    lines = []
    more = ["--pg", "127.0.0.1:0", "--connections", str(count + 10), "--tls-certificate", certificate, "--tls-key", key]
    for name, kind in [("in the clear", None), ("TLS", context)]:
        with Server(options, folder, *more) as server:
            port = int(server.printed(r"127\.0\.0\.1 -p (\d+)"))
            address = server.path if kind is None else ("127.0.0.1", port)
            before = server.memory()
            begun = time.monotonic()
            all = [Connection(address, "alluvium", kind) for _ in range(count)]
            seconds = time.monotonic() - begun
            grown = server.memory() - before
            all[count // 2].simple("SELECT 1")
            lines.append([name, f"{grown / 1e6:.0f} MB", f"{grown / count / 1000:.1f} kB", f"{seconds:.1f} s"])
            for connection in all:
                connection.close()
    table(f"{count:,} idle connections", ["", "memory", "each", "to open them"], lines)


class Subscriber(asyncio.Protocol):
    """Follows a view, and notes when each epoch comes."""

    def __init__(self, arrived: dict):
        self.arrived = arrived

    def data_received(self, data: bytes) -> None:
        now = time.monotonic()
        for found in re.finditer(rb"\nid: ?(\d+)", data):
            self.arrived.setdefault(int(found.group(1)), []).append(now)


async def follow(options, host: str, port: int, token: str, writer: Connection) -> list[float]:
    arrived: dict = {}
    loop = asyncio.get_running_loop()
    request = (
        f"GET /v1/relations/v/changes HTTP/1.1\r\nHost: {host}:{port}\r\nAuthorization: Bearer {token}\r\n"
        "Accept: text/event-stream\r\n\r\n"
    ).encode()
    for begin in range(options.subscribers):
        transport, _ = await loop.create_connection(lambda: Subscriber(arrived), host, port)
        transport.write(request)
        if begin % 100 == 0:
            await asyncio.sleep(0.05)
    await asyncio.sleep(2)
    sent: list[float] = []
    for number in range(200):
        # The time at which the statement is sent, so that the commit itself is in the figure.
        sent.append(time.monotonic())
        await loop.run_in_executor(None, writer.simple, f"INSERT INTO t VALUES ({number}, {number % 7})")
        await asyncio.sleep(max(0.0, 0.05 - (time.monotonic() - sent[-1])))
    await asyncio.sleep(2)
    epochs = sorted(arrived)[-len(sent) :]
    missing = sum(options.subscribers - len(arrived[epoch]) for epoch in epochs)
    if missing or len(epochs) != len(sent):
        raise SystemExit(f"{missing} events of {len(epochs)} epochs are missing")
    return [time_ - begun for epoch, begun in zip(epochs, sent) for time_ in arrived[epoch]]


def subscribers(options, folder: pathlib.Path) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    with Server(options, folder, "--http", "127.0.0.1:0", "--connections", "5000", "--strangers-of-address", "2000",
                "--strangers", "2000", state=folder / "followed") as server:
        port = int(server.printed(r"http://127\.0\.0\.1:(\d+)"))
        token = (server.socket / "http.token").read_text().strip()
        writer = Connection(server.path, "alluvium")
        writer.simple("CREATE TABLE t (a BIGINT, g BIGINT)")
        writer.simple("CREATE MATERIALIZED VIEW v AS SELECT g, COUNT(*) AS n FROM t GROUP BY g")
        delays = sorted(asyncio.run(follow(options, "127.0.0.1", port, token, writer)))
        at = lambda share: f"{delays[min(len(delays) - 1, int(len(delays) * share))] * 1000:.1f} ms"
        lines = [[f"{options.subscribers:,}", f"{len(delays):,}", at(0.5), at(0.99), at(0.999), at(1)]]
        table("Subscribers over HTTP", ["subscribers", "events", "median", "99 %", "99.9 %", "longest"], lines)


def main() -> None:
    options = arguments()
    if wrong := set(options.parts) - set(PARTS):
        raise SystemExit(f"no part {', '.join(sorted(wrong))}: there are {', '.join(PARTS)}")
    for part in options.parts:
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            os.chmod(folder, 0o755)
            globals()[part](options, pathlib.Path(folder))


if __name__ == "__main__":
    main()
