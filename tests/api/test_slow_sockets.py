"""L4 in a quick form: sockets that never say what they want are closed, and nobody else notices them."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import statistics
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from api.service import wait_until
from askbook.api.sockets import HEAD_BYTES, HEAD_SECONDS, PromptRequests
from cli.serving import serve
from figures import Figure

pytestmark = pytest.mark.row("L4")

SECONDS = 0.5
GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"


class Hasty(PromptRequests):
    head_seconds = SECONDS


async def hello(request: Request) -> PlainTextResponse:
    await asyncio.sleep(float(request.query_params.get("wait", 0)))
    return PlainTextResponse("hello")


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    listener = socket.create_server(("127.0.0.1", 0), backlog=512)
    app = Starlette(routes=[Route("/", hello, methods=["GET", "POST"])])
    server = uvicorn.Server(uvicorn.Config(app, http=Hasty, lifespan="off", log_config=None, ws="none"))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([listener])), daemon=True)
    thread.start()
    wait_until(lambda: server.started)
    yield listener.getsockname()[1]
    server.should_exit = True
    thread.join(20)


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), 10)


def read_hello(client: socket.socket) -> None:
    answer = b""
    while not answer.endswith(b"hello"):
        more = client.recv(65_536)
        assert more, answer
        answer += more


def wait_for_end(client: socket.socket) -> float:
    started = time.monotonic()
    with contextlib.suppress(ConnectionResetError):
        while client.recv(65_536):
            pass
    return time.monotonic() - started


@pytest.mark.parametrize("begun", [b"", b"G", b"GET / HTTP/1.1\r\nHost: a\r\nX-Slow: "])
def test_a_request_that_does_not_come_to_its_point_is_cut_off(port: int, begun: bytes) -> None:
    assert HEAD_SECONDS < 15
    with connect(port) as client:
        client.sendall(begun)
        assert SECONDS - 0.1 < wait_for_end(client) < SECONDS + 2


def test_also_one_that_drips_and_one_after_a_good_one(port: int) -> None:
    with connect(port) as client:
        client.sendall(GET)
        read_hello(client)
        started = time.monotonic()
        client.settimeout(0.05)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            while time.monotonic() - started < 5:
                client.sendall(b"G" if time.monotonic() - started < 0.04 else b"E")
                with contextlib.suppress(TimeoutError):
                    if not client.recv(1):
                        break
        assert time.monotonic() - started < SECONDS + 2


def test_a_head_without_end_is_cut_off(port: int) -> None:
    with connect(port) as client, contextlib.suppress(BrokenPipeError, ConnectionResetError):
        client.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nX-Long: " + b"y" * (HEAD_BYTES + 1))
        assert wait_for_end(client) < SECONDS - 0.1


def test_a_long_answer_and_a_large_body_are_not(port: int) -> None:
    with connect(port) as client:
        client.sendall(b"GET /?wait=1.2 HTTP/1.1\r\nHost: a\r\n\r\n")
        read_hello(client)
        body = b"x" * (3 * HEAD_BYTES)
        client.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        read_hello(client)


@pytest.mark.torture
def test_ten_readers_of_a_whole_server_notice_little(home: Path, figure: Figure) -> None:
    """By turns, alone and beside two hundred slow sockets, so that what else the machine does falls on both."""

    def read(url: str, seconds: float) -> list[float]:
        times: list[float] = []
        until = time.monotonic() + seconds
        with httpx2.Client(base_url=url) as client:
            while time.monotonic() < until:
                started = time.perf_counter()
                client.post("/search", json={"text": "force of the gripper"}).raise_for_status()
                times.append(time.perf_counter() - started)
                time.sleep(0.05)
        return times

    with serve(home, ASKBOOK_RATE_LIMIT="0") as server, ThreadPoolExecutor(10) as pool:
        measured: dict[bool, list[float]] = {False: [], True: []}
        longest = 0.0
        for slowly in [False, True] * 4:
            slow = [connect(int(server.url.rpartition(":")[2])) for _ in range(200 if slowly else 0)]
            for client in slow:
                client.settimeout(20)
                client.sendall(b"GET / HTTP/1.1\r\n")
            began = time.monotonic()
            for times in pool.map(lambda _: read(server.url, 8.0), range(10)):
                measured[slowly] += times
            for client in slow:
                wait_for_end(client)
                client.close()
            longest = max(longest, time.monotonic() - began if slow else 0.0)
    alone, beside = (statistics.quantiles(measured[slowly], n=20)[-1] * 1000 for slowly in (False, True))
    figure(f"L4: p95 {alone:.1f} ms alone, {beside:.1f} ms beside; the last socket closed after {longest:.1f} s", 200)
    assert longest < 15
    assert beside <= 1.2 * alone


def test_nobody_notices_two_hundred_of_them(port: int, figure: Figure) -> None:
    def median_ms() -> float:
        times: list[float] = []
        for _ in range(50):
            started = time.perf_counter()
            with connect(port) as client:
                client.sendall(GET)
                read_hello(client)
            times.append((time.perf_counter() - started) * 1000)
        return statistics.median(times)

    alone = median_ms()
    slow = [connect(port) for _ in range(200)]
    for client in slow:
        client.sendall(b"GET / HTTP/1.1\r\n")
    beside = median_ms()
    ends = [wait_for_end(client) for client in slow]
    figure(f"L4: {alone:.1f} ms alone, {beside:.1f} ms beside 200 slow sockets, all closed within {max(ends):.1f} s")
    for client in slow:
        client.close()
    assert max(ends) < SECONDS + 2
    assert beside < 5 * alone + 20
