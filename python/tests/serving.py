"""Servers for tests."""

import os
import re
import select
import signal
import subprocess
import tempfile
import time
from types import TracebackType

#: The program that serves; tests that need a server are left out without it.
PROGRAM = os.environ.get("ALLUVIUM_SERVER", "")

_ADDRESS = re.compile(rb"psql -h (127\.0\.0\.1) -p (\d+)")


class Server:
    """``alluvium serve`` on loopback, with its socket, until the end of a ``with`` block."""

    def __init__(self, *options: str, port: int = 0) -> None:
        # Below /tmp, as the path of a socket has at most 100 letters.
        self._folder = tempfile.TemporaryDirectory(dir="/tmp")
        self.socket = self._folder.name
        self._process = subprocess.Popen(
            [PROGRAM, "serve", "--pg", f"127.0.0.1:{port}", "--socket", self.socket, *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        self.port = self._read_port()

    @property
    def url(self) -> str:
        return f"postgresql://alluvium@127.0.0.1:{self.port}/"

    def stop(self) -> None:
        """Ends it as a service manager does."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        self._end()

    def kill(self) -> None:
        self._process.kill()
        self._end()

    def _end(self) -> None:
        self._process.communicate(timeout=60)

    def _read_port(self) -> int:
        assert self._process.stderr is not None
        descriptor = self._process.stderr.fileno()
        said = b""
        until = time.monotonic() + 60
        while (found := _ADDRESS.search(said)) is None:
            assert time.monotonic() < until and self._process.poll() is None, said.decode()
            if select.select([descriptor], [], [], 0.1)[0]:
                said += os.read(descriptor, 4096)
        return int(found[2])

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.kill()
        self._folder.cleanup()
