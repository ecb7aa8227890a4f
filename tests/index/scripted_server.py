"""A stand-in for a service: a real HTTP server on loopback that answers from a script and keeps what it is sent."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

HANG = 30.0
"""Seconds. Who is told within IN_TIME has not waited for it, however busy the machine is."""
IN_TIME = HANG / 3


@dataclass(frozen=True)
class Received:
    method: str
    path: str
    headers: dict[str, str]
    body: Any


@dataclass(frozen=True)
class Reply:
    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    delay: float = 0.0


@dataclass
class StandIn:
    url: str
    received: list[Received]


@contextlib.contextmanager
def stand_in(answer: Callable[[int, Received], Reply]) -> Iterator[StandIn]:
    """`answer` is given the number of the request, from 0, and the request."""
    received: list[Received] = []
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:
            pass

        def _answer(self) -> None:
            sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            request = Received(self.command, self.path, headers, json.loads(sent) if sent else None)
            with lock:
                received.append(request)
                number = len(received) - 1
            reply = answer(number, request)
            time.sleep(reply.delay)
            body = json.dumps(reply.body).encode() if reply.raw is None else reply.raw
            with contextlib.suppress(OSError):
                self.send_response(reply.status)
                for name, value in {"Content-Type": "application/json", **reply.headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = _answer

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.block_on_close = False
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield StandIn(f"http://127.0.0.1:{server.server_port}", received)
    finally:
        server.shutdown()
        server.server_close()
