"""What the scripts of servers share: a server on loopback that ends with its script."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

# Where servers are fetched to.
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "alluvium" / "servers"
CACHE.mkdir(parents=True, exist_ok=True)


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    except OSError:
        return False


def start(command: list[str], port: int, folder: Path) -> subprocess.Popen:
    """Starts a server, and waits for it. Its log is in the folder."""
    log = open(folder / "log", "ab")
    # The server ends with the script, also if that is killed.
    end = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []
    server = subprocess.Popen(end + command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=folder)
    begun = time.monotonic()
    while not answers(port):
        if server.poll() is not None or time.monotonic() - begun > 120:
            server.kill()
            sys.exit(f"the server does not start; see {folder / 'log'}")
        time.sleep(0.05)
    return server


def main(usage: str, begin: Callable[[Path, int | None], tuple[subprocess.Popen, int]]) -> None:
    """Runs a server until the script's input ends, or it is interrupted."""
    if len(sys.argv) not in (2, 3):
        sys.exit(usage)
    folder = Path(sys.argv[1]).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    server, port = begin(folder, int(sys.argv[2]) if len(sys.argv) == 3 else None)
    print(f"127.0.0.1:{port} {server.pid}", flush=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    try:
        while sys.stdin.buffer.read1(1 << 16):
            pass
    except KeyboardInterrupt:
        pass
    finally:
        server.kill()
        server.wait()
