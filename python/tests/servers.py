"""Servers of Spark, each in a process of its own."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path


def free_port() -> int:
    """A port on which nothing listens now."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port: int = free.getsockname()[1]
        return port


@contextmanager
def listening(
    command: Sequence[str],
    port: int,
    folder: Path,
    env: Mapping[str, str] | None = None,
    seconds: float = 120,
) -> Iterator[None]:
    """Run the command in the folder, from when it listens; `server.log` has its output."""
    log = folder / "server.log"
    with log.open("w") as said:
        process = subprocess.Popen(command, cwd=folder, env=env, stdout=said, stderr=said)
        try:
            end = time.monotonic() + seconds
            while not _listens(port):
                assert process.poll() is None and time.monotonic() < end, log.read_text()[-5000:]
                time.sleep(0.2)
            yield
        finally:
            process.terminate()
            process.wait(60)


def _listens(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("localhost", port)) == 0
