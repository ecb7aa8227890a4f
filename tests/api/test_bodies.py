"""How large and how slow a request may be, on a real server, spoken to through a socket."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from api.service import wait_until
from askbook.api.bodies import HEADER_BYTES, HEADERS_MAX, BoundedRequests

LIMIT = 10_000
SECONDS = 0.6


async def count(request: Request) -> JSONResponse:
    return JSONResponse({"bytes": len(await request.body())})


@pytest.fixture(scope="module", params=["httptools", "h11"])
def port(request: pytest.FixtureRequest) -> Iterator[int]:
    """A server that tells how much it was sent, on either of uvicorn's readers of HTTP."""
    app = Starlette(routes=[Route(path, count, methods=["GET", "POST"]) for path in ("/", "/larger")])
    bounded = BoundedRequests(app, LIMIT, SECONDS, {"/larger": 10 * LIMIT})
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(bounded, http=request.param, lifespan="off", log_config=None, ws="none"))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([listener])), daemon=True)
    thread.start()
    wait_until(lambda: server.started)
    yield listener.getsockname()[1]
    server.should_exit = True
    thread.join(20)


def exchange(port: int, *parts: bytes, pause: float = 0.0) -> tuple[int, Any, float]:
    """What is answered to these bytes: the status, the body, and how long it took until the server hung up."""
    started = time.monotonic()
    answer = b""
    with socket.create_connection(("127.0.0.1", port), 10) as client:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            for part in parts:
                client.sendall(part)
                time.sleep(pause)
        while more := client.recv(65_536):
            answer += more
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body), time.monotonic() - started


def post(length: int, *headers: bytes, path: bytes = b"/") -> bytes:
    lines = (b"POST " + path + b" HTTP/1.1", b"Host: a", b"Content-Length: %d" % length, b"Connection: close", *headers)
    return b"\r\n".join(lines) + b"\r\n\r\n"


CHUNKED = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"


def chunk(size: int) -> bytes:
    return b"%x\r\n%s\r\n" % (size, b"x" * size)


def test_what_fits_comes_whole(port: int) -> None:
    assert exchange(port, post(LIMIT), b"x" * LIMIT)[:2] == (200, {"bytes": LIMIT})
    assert exchange(port, CHUNKED, *[chunk(1000)] * 10, b"0\r\n\r\n")[:2] == (200, {"bytes": LIMIT})
    assert exchange(port, post(0))[:2] == (200, {"bytes": 0})
    assert exchange(port, b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")[:2] == (200, {"bytes": 0})
    assert exchange(port, post(LIMIT * 10, path=b"/larger"), b"x" * LIMIT * 10)[0] == 200


@pytest.mark.parametrize("size", [LIMIT + 1, 2_000_000])
def test_what_is_too_large_is_refused_and_says_so(port: int, size: int) -> None:
    status, body, took = exchange(port, post(size), b"x" * size)
    assert (status, body["error"], body["status_code"]) == (413, "payload_too_large", 413)
    assert str(LIMIT) in body["message"] and took < 5


@pytest.mark.parametrize("chunks", [11, 500])
def test_also_when_nobody_says_how_large_it_is(port: int, chunks: int) -> None:
    status, body, took = exchange(port, CHUNKED, *[chunk(1000)] * chunks, b"0\r\n\r\n")
    assert (status, body["error"]) == (413, "payload_too_large") and took < 5


def test_a_body_without_an_end_is_ended(port: int) -> None:
    """Some of it is read and thrown away, so that the client may learn why; then the line is cut."""
    started = time.monotonic()
    with socket.create_connection(("127.0.0.1", port), 10) as client:
        client.sendall(CHUNKED)
        with pytest.raises(OSError):
            while time.monotonic() - started < 10:
                client.sendall(chunk(60_000))
    assert time.monotonic() - started < 8


def test_who_asks_before_sending_is_told_before_sending(port: int) -> None:
    status, _, took = exchange(port, post(2_000_000, b"Expect: 100-continue"))
    assert status == 413 and took < 1


@pytest.mark.parametrize("start", [post(100), CHUNKED])
def test_a_body_that_does_not_come_is_not_waited_for(port: int, start: bytes) -> None:
    status, body, took = exchange(port, start)
    assert (status, body["error"]) == (408, "timeout")
    assert SECONDS <= took < SECONDS + 2


def test_nor_one_that_drips(port: int) -> None:
    """Each byte comes in time, the whole does not."""
    started = time.monotonic()
    with socket.create_connection(("127.0.0.1", port), 10) as client, contextlib.suppress(OSError):
        client.sendall(post(100))
        client.settimeout(0.1)
        answer = b""
        while not answer and time.monotonic() - started < 5:
            client.sendall(b"x")
            with contextlib.suppress(TimeoutError):
                answer = client.recv(65_536)
        assert answer.split()[1] == b"408"
    assert time.monotonic() - started < SECONDS + 2


def test_too_many_headers_or_too_long_ones(port: int) -> None:
    many = [b"X-%d: y" % number for number in range(HEADERS_MAX)]
    long = b"X-Long: " + b"y" * HEADER_BYTES
    for refused in (post(0, *many), post(0, long), post(0, path=b"/?" + b"q" * 9000)):
        status, body, _ = exchange(port, refused)
        assert (status, body["error"]) == (431, "payload_too_large")
    assert exchange(port, post(0, *many[:90]))[0] == 200
    body = b" " * 100_000
    assert exchange(port, post(len(body), long) + body)[0] == 431, "read to its end, and then told why"


def test_a_length_that_is_none_is_no_way_in(port: int) -> None:
    for length in (b"-1", b"1e9", b"0x10", b"99999999999999999999999999"):
        head = b"POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: " + length + b"\r\n\r\n"
        answer = b""
        with socket.create_connection(("127.0.0.1", port), 10) as client, contextlib.suppress(ConnectionResetError):
            client.sendall(head)
            client.shutdown(socket.SHUT_WR)
            while more := client.recv(65_536):
                answer += more
        assert answer == b"" or answer.split()[1] in (b"400", b"413"), (length, answer)
