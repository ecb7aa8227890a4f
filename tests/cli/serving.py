"""`askbook serve` in a process of its own."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx2

from api.service import wait_until
from canaries import SECRET
from processes import Process

ASKBOOK = [sys.executable, "-c", "from askbook.cli.main import run; run()"]


def build_environment(home: Path, **more: str) -> dict[str, str]:
    return {**os.environ, "ASKBOOK_HOME": str(home), "ASKBOOK_LOG_FORMAT": "json", **more}


@dataclass
class Server:
    process: Process
    url: str
    log: list[str] = field(default_factory=list)

    def client(self) -> httpx2.Client:
        return httpx2.Client(base_url=self.url, timeout=30)


@contextlib.contextmanager
def serve(home: Path, *arguments: str, **environment: str) -> Iterator[Server]:
    command = [*ASKBOOK, "serve", "--port", "0", *arguments]
    reading, writing = os.pipe()
    process = Process(command, None, build_environment(home, **environment), (0, 1, writing))
    os.close(writing)
    said = os.fdopen(reading, encoding="utf-8")
    found = re.search(r"serves on (http://\S+)", said.readline())
    assert found, said.read()
    server = Server(process, found[1].replace("0.0.0.0", "127.0.0.1").replace("[::]", "[::1]"))
    reader = threading.Thread(target=lambda: server.log.extend(said), daemon=True)
    reader.start()
    try:
        wait_until(lambda: _answers(server.url))
        yield server
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        reader.join(5)
        said.close()
    assert not [line for line in server.log if SECRET.search(line)]


def _answers(url: str) -> bool:
    with contextlib.suppress(httpx2.TransportError):
        return httpx2.get(f"{url}/health").status_code == 200
    return False
