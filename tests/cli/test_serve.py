"""`askbook serve` as it is run: it refuses what it must not do, and it ends well."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import processes
from answer.robots import BOOK, LESSONS, ingest_books, write_lessons
from answer.scripted_model import Turn, scripted_model, search
from api.service import KEY, QUESTION, RIGHT, build_settings, read_events, wait_until
from askbook.settings import Settings
from askbook.wiring import open_askbook, open_store
from cli.serving import ASKBOOK, Server, build_environment, serve
from figures import Figure

STREAMS = 20


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return ingest_books(tmp_path / "home", {BOOK: write_lessons(tmp_path / "robots", LESSONS)})


def _refused(home: Path, *arguments: str, **environment: str) -> str:
    done = processes.run([*ASKBOOK, "serve", "--port", "0", *arguments], env=build_environment(home, **environment))
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_no_listening_elsewhere_without_a_key(home: Path, host: str) -> None:
    assert f"does not listen on {host} without a key" in _refused(home, "--host", host)


def test_listening_elsewhere_with_a_key(home: Path) -> None:
    async def make_key() -> str:
        async with open_store(build_settings(home)) as store:
            return (await store.keys.create("ann"))[1]

    key = asyncio.run(make_key())
    with serve(home, "--host", "0.0.0.0") as server, server.client() as client:
        assert client.get("/info", headers={"Host": "books.example.org"}).status_code == 401
        assert client.get("/info", headers={"Host": "books.example.org", "X-API-Key": key}).status_code == 200


def test_one_process_for_an_index_of_its_own(home: Path) -> None:
    assert "2 processes cannot share the data" in _refused(home, "--workers", "2")


def test_a_taken_port_is_said(home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        said = _refused(home, "--port", str(taken.getsockname()[1]))
    assert "cannot listen on 127.0.0.1" in said


def test_data_in_use_is_said(home: Path) -> None:
    with serve(home):
        assert "is in use by" in _refused(home)


def test_ctrl_c_is_a_good_end(home: Path) -> None:
    with serve(home) as server:
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(10) == 0
    lines = [json.loads(line) for line in server.log]
    assert lines, "every line of the log is JSON"
    assert all("timestamp" in line and "level" in line for line in lines)
    request = next(line for line in lines if line["event"] == "request")
    assert (request["route"], request["status"]) == ("/health", 200) and request["request_id"]


@pytest.mark.row("S6")
def test_the_log_has_no_secret_and_no_question(home: Path) -> None:
    canary = "sk-canary-0123456789-0123456789-0123456789-zzzz"
    with serve(home, OPENAI_API_KEY=canary, ASKBOOK_ANSWERER="extractive", ASKBOOK_LOG_LEVEL="debug") as server:
        with server.client() as client:
            client.post("/ask", json={"query": f"{QUESTION} {canary}"}, headers={"X-API-Key": "askbook_wrong"})
            client.get(f"/sessions?x={canary}")
        server.process.send_signal(signal.SIGTERM)
        server.process.wait(10)
    log = "".join(server.log)
    assert log and canary not in log and "gripper" not in log


def test_sigterm_during_streams_and_an_ingestion(home: Path, demo_folder: Path, figure: Figure) -> None:
    """Must show 6: no torn answer is stored, the job goes on after the restart, and it takes less than ten seconds."""
    look, slow = search("force of the gripper"), Turn(f"{RIGHT} [1]. " + "It cannot see glass [2]. " * 200, pace=0.1)
    quick = Turn(f"{RIGHT} [1].", pace=0.1)
    replies = (slow, quick)

    def script(number: int, request: object) -> Turn:
        return replies[number % 2] if request.tool_outputs else look  # type: ignore[attr-defined]

    with scripted_model(script) as model:
        environment = {"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": KEY, "OPENAI_MODEL": "scripted"}
        with serve(home, str(demo_folder), **environment) as server:
            ends, took, code = _end_during_streams(server)
        figure(f"SIGTERM: {STREAMS} streams ended as {Counter(ends.values())}; the server within {took:.1f} s")
        assert took < 10
        assert set(ends.values()) <= {"done", "error"}
    _assert_whole(build_settings(home), ends)
    with serve(home) as server, server.client() as client:
        jobs = client.get("/ingestion/status").json()["jobs"]
        assert jobs[0]["status"] in ("queued", "running", "completed")
        wait_until(lambda: client.get(f"/ingestion/status/{jobs[0]['job_id']}").json()["status"] == "completed", 120)
    assert code in (0, -signal.SIGTERM)


def _end_during_streams(server: Server) -> tuple[dict[str, str], float, int]:
    """How each session's stream ended, how long the server took, and its exit code."""
    begun = threading.Barrier(STREAMS + 1)

    def follow(_number: int) -> tuple[str, str]:
        with server.client() as client:
            body = {"message": QUESTION, "book_id": BOOK}
            with client.stream("POST", "/chat/stream", json=body) as response:
                events = read_events(response.iter_lines())
                first = next(events)
                begun.wait(30)
                *_, last = (first, *events)
                return response.headers["x-session-id"], last.event

    with ThreadPoolExecutor(STREAMS) as pool:
        streams = [pool.submit(follow, number) for number in range(STREAMS)]
        begun.wait(30)
        with server.client() as client:
            status = client.get("/ingestion/status").json()["jobs"][0]["status"]
        assert status == "running"
        told = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        code = server.process.wait(20)
        took = time.monotonic() - told
        ends = dict(stream.result() for stream in streams)
    return ends, took, code


def _assert_whole(settings: Settings, ends: dict[str, str]) -> None:
    async def load() -> None:
        async with open_askbook(settings) as askbook:
            kept = {thread.thread_id for thread in await askbook.threads.load_all()}
            assert kept == {session for session, end in ends.items() if end == "done"}
            for session in kept:
                history = await askbook.threads.load_history(session)
                assert [message.role for message in history] == ["user", "assistant"]
                assert history[1].content.startswith(RIGHT)
            [job, *_] = await askbook.jobs.load_all()
            assert job.status == "queued", "the job was handed back"

    asyncio.run(load())
