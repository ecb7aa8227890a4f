"""askbook as a client meets it: over HTTP, on a small book whose every fact is known."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import uvicorn
from fastapi import FastAPI
from fastapi.testclient import TestClient

from askbook.api.app import create_app
from askbook.api.running import Patience
from askbook.settings import Settings
from askbook.wiring import open_askbook

BOOK = "robots"
QUESTION = "With what force does the gripper close?"
RIGHT = "The gripper closes with a force of 40 newtons"
UNKNOWN = "Which yeast do I need for sourdough bread?"
KEY = "sk-canary-0123456789-0123456789-0123456789-abcdef"


def build_settings(home: Path, **changes: object) -> Settings:
    return Settings.model_validate({"askbook_home": home, **changes})


def with_model(url: str) -> dict[str, object]:
    """Settings for a scripted model at this address."""
    return {"openai_base_url": url, "openai_api_key": KEY, "openai_model": "scripted"}


async def ingest(settings: Settings, folder: Path) -> None:
    async with open_askbook(settings) as askbook:
        job = await askbook.jobs.submit(BOOK, str(folder), "incremental")
        job = await askbook.worker.run_job(job.job_id)
        assert job.status == "completed", job.error_message


@contextlib.contextmanager
def open_client(settings: Settings) -> Iterator[TestClient]:
    """As from this very machine; what fails unexpectedly is an answer too, not an exception."""
    app = create_app(settings)
    with TestClient(
        app, base_url="http://127.0.0.1:8000", client=("127.0.0.1", 50_000), raise_server_exceptions=False
    ) as client:
        yield client


@dataclass
class Service:
    url: str
    app: FastAPI
    server: uvicorn.Server

    def open_client(self, **changes: Any) -> httpx2.Client:
        return httpx2.Client(base_url=self.url, timeout=30, **changes)


@contextlib.contextmanager
def serve(settings: Settings, patience: Patience | None = None) -> Iterator[Service]:
    """A real server on loopback, in a thread of its own."""
    listener = socket.create_server(("127.0.0.1", 0))
    app = create_app(settings, patience)
    config = uvicorn.Config(
        app, lifespan="on", ws="none", log_config=None, access_log=False, timeout_graceful_shutdown=5
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([listener])), daemon=True)
    thread.start()
    wait_until(lambda: server.started or not thread.is_alive())
    assert server.started, "the server did not start"
    try:
        yield Service(f"http://127.0.0.1:{listener.getsockname()[1]}", app, server)
    finally:
        server.should_exit = True
        thread.join(20)
        assert not thread.is_alive()


def wait_until(is_so: Any, seconds: float = 20.0) -> float:
    """How long it took."""
    started = time.monotonic()
    while not is_so():
        assert time.monotonic() - started < seconds, "it did not come about"
        time.sleep(0.01)
    return time.monotonic() - started


@dataclass(frozen=True)
class Sent:
    event: str
    data: Any


def read_events(lines: Iterator[str]) -> Iterator[Sent]:
    """The events of a stream; comments, which keep it alive, are passed over."""
    event = "message"
    for line in lines:
        name, _, value = line.partition(": ")
        if name == "event":
            event = value
        elif name == "data":
            yield Sent(event, json.loads(value))
        elif not line:
            event = "message"
