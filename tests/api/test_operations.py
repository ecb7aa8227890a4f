"""What operators see: metrics, logs without secrets, readiness, traces only where a collector is named."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import structlog
from fastapi.testclient import TestClient
from prometheus_client.parser import text_string_to_metric_families

from answer.scripted_model import Status, Turn, scripted_model, search
from api.service import QUESTION, RIGHT, UNKNOWN, build_settings, open_client, wait_until, with_model
from askbook.api.logs import build_formatter

SECRET, PASSWORD = "sk-canary-77", "pg-canary-77"


def _read(client: TestClient) -> dict[tuple[str, ...], float]:
    """Each sample by its name and the values of its labels, which stand in the order of their names."""
    families = text_string_to_metric_families(client.get("/metrics").text)
    return {(one.name, *one.labels.values()): one.value for family in families for one in family.samples}


def test_metrics(home: Path) -> None:
    answers = [search("force of the gripper"), Turn(f"{RIGHT} [1]. It was cut by hand in Osaka [1].")]
    with (
        scripted_model(lambda number, _: answers[number % 2]) as model,
        open_client(build_settings(home, **with_model(model.url))) as client,
    ):
        client.post("/ask", json={"query": QUESTION})
        client.post("/ask", json={"query": UNKNOWN})
        client.post("/ask", json={"query": ""})
        client.get("/no/such/place")
        job = client.post("/ingestion/trigger", json={}).json()
        wait_until(lambda: client.get(f"/ingestion/status/{job['job_id']}").json()["status"] == "completed")
        found = _read(client)

    assert found["askbook_requests_total", "POST", "/ask", "200"] == 2
    assert found["askbook_requests_total", "POST", "/ask", "400"] == 1
    assert found["askbook_requests_total", "GET", "unknown", "404"] == 1
    for stage in ("embedding", "retrieval", "generation", "whole"):
        assert found["askbook_stage_seconds_count", stage] == 2
    assert found["askbook_answers_total", "model"] == 1
    assert found["askbook_refusals_total", "not_in_book"] == 1
    assert found["askbook_confidence_total", "insufficient"] == 1
    assert found["askbook_sentences_removed_total",] == 1
    assert found["askbook_tokens_total", "scripted"] > 0
    assert found["askbook_model_calls_total", "succeeded"] == 2
    assert found["askbook_breaker_open", "model"] == 0
    assert found["askbook_part_up", "database"] == found["askbook_part_up", "index"] == 1
    assert found["askbook_jobs_total", "completed"] == 1
    assert found["askbook_job_progress",] == 1


def test_a_model_that_is_left_alone_is_seen(home: Path) -> None:
    with (
        scripted_model([Status(500)]) as model,
        open_client(build_settings(home, **with_model(model.url), askbook_generation_seconds=0.5)) as client,
    ):
        for _ in range(5):
            answered = client.post("/ask", json={"query": QUESTION}).json()
            assert answered["metadata"]["answered_by"] == "extractive", "the book's own sentences answer"
        assert _read(client)["askbook_breaker_open", "model"] == 1
        ready = client.get("/ready")
        assert (ready.status_code, ready.json()["parts"]["model"]["state"]) == (200, "down")
        health = client.get("/health")
        assert (health.status_code, health.json()["status"]) == (200, "degraded")
        assert health.json()["services"]["openai"] == "disconnected"


def test_ready_tells_of_every_part(client: TestClient) -> None:
    body = client.get("/ready").json()
    assert body["ready"] is True and body["down"] == []
    assert set(body["parts"]) == {"database", "index", "embedder", "model", "reranker", "redis", "ingestion"}
    assert body["parts"]["database"]["latency_ms"] >= 0


# --- logs -----------------------------------------------------------------------------------------


@contextmanager
def _logging(log_format: str) -> Iterator[tuple[logging.Logger, list[str]]]:
    lines: list[str] = []
    settings = build_settings(
        Path("/nowhere"),
        askbook_log_format=log_format,
        openai_api_key=SECRET,
        database_url=f"postgresql://ann:{PASSWORD}@localhost/x",
    )

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(self.format(record))

    handler = Kept()
    handler.setFormatter(build_formatter(settings))
    logger = logging.Logger("askbook.test")
    logger.addHandler(handler)
    yield logger, lines


@pytest.mark.parametrize("log_format", ["json", "console"])
def test_no_line_has_a_secret(log_format: str) -> None:
    with _logging(log_format) as (logger, lines), structlog.contextvars.bound_contextvars(request_id="mine"):
        logger.warning("the key is %s", SECRET)
        logger.warning("a request", extra={"url": f"postgresql://ann:{PASSWORD}@localhost/x"})
        try:
            raise ValueError(f"{SECRET} and {PASSWORD}")
        except ValueError:
            logger.exception("it failed")
    assert len(lines) == 3 and all("mine" in line for line in lines)
    assert not any(SECRET in line or PASSWORD in line for line in lines)
    assert "ValueError" in lines[2]


def test_json_is_one_object_a_line() -> None:
    with _logging("json") as (logger, lines):
        logger.info("two\nlines", extra={"status": 200})
    [line] = lines
    told = json.loads(line)
    assert (told["event"], told["status"], told["level"]) == ("two\nlines", 200, "info")


# --- traces ---------------------------------------------------------------------------------------


@contextmanager
def _collector() -> Iterator[tuple[str, list[tuple[str, bytes]]]]:
    """A stand-in for an OpenTelemetry collector: it keeps what it is sent."""
    received: list[tuple[str, bytes]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", received
    finally:
        server.shutdown()
        server.server_close()


def test_traces_go_where_they_are_asked_to(home: Path) -> None:
    with _collector() as (url, received):
        with open_client(build_settings(home, otel_exporter_otlp_endpoint=url)) as client:
            client.post("/ask", json={"query": f"{QUESTION} canary-77"})
        wait_until(lambda: received, 10)
    assert {path for path, _ in received} == {"/v1/traces"}
    sent = b"".join(body for _, body in received)
    assert b"/ask" in sent and b"askbook" in sent
    assert b"canary-77" not in sent, "what was asked stays here"
