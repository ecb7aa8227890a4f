"""F8: each service that askbook is set up with goes down, hangs and comes back: what /health says, who answers, and how soon.

The database and the index are in test_outages.py. The embedder, the model and the reranker are real HTTP servers on loopback
that answer, fail or hang as they are told; Redis is a real one.
"""

from __future__ import annotations

import asyncio
import itertools
import signal
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest

from answer.scripted_model import Broken, Status, Turn, scripted_model, search
from api.redis_server import run_redis
from api.service import KEY, Service, build_settings, ingest, serve, wait_until, with_model
from askbook.answer.ask import MODEL_DOWN, TOO_SLOW
from askbook.api.limits import REST_SECONDS as REDIS_REST
from askbook.index.search import NOT_RERANKED, WORDS_ONLY
from figures import Figure
from index.scripted_server import Received, Reply, stand_in

State = Literal["up", "down", "hung"]
GLASS, BLIND = "Does the lidar see glass?", "It cannot see glass"
DIMENSION = 1536
REST = 2.0
"""How long a service that keeps failing is left alone here."""
_words = itertools.count()


def new_question() -> str:
    """One that nobody asked before: what was embedded once is remembered."""
    return GLASS + "?" * next(_words)


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

    def answer(self, _number: int, request: Received) -> Reply:
        self.asked += 1
        if self.state == "down":
            return Reply(503)
        if self.state == "hung":
            return Reply(delay=30.0)
        if request.path.endswith("/rerank"):
            scores = [{"index": at, "relevance_score": 0.5} for at in range(len(request.body["documents"]))]
            return Reply(body={"results": scores})
        rows = [{"index": at, "embedding": _embed(text)} for at, text in enumerate(request.body["input"])]
        return Reply(body={"data": rows})


@dataclass
class Asked:
    body: dict[str, Any]
    seconds: float


def ask(service: Service, path: str = "/ask") -> Asked:
    question = new_question()
    with service.open_client() as client:
        started = time.monotonic()
        response = client.post(path, json={"text": question} if path == "/search" else {"query": question})
        assert response.status_code == 200, response.text
        return Asked(response.json(), time.monotonic() - started)


def see(service: Service, part: str) -> tuple[int, str, int, str]:
    """/health's code and word, /ready's code, and the state of the part in it."""
    with service.open_client() as client:
        health, ready = client.get("/health"), client.get("/ready")
    assert health.json()["dependencies"][part]["status"] == ready.json()["parts"][part]["state"]
    assert (part in ready.json()["down"]) is (ready.json()["parts"][part]["state"] == "down")
    return health.status_code, health.json()["status"], ready.status_code, ready.json()["parts"][part]["state"]


UP, DOWN = (200, "healthy", 200, "up"), (200, "degraded", 200, "down")


# --- the embedder ---------------------------------------------------------------------------------


@contextmanager
def serve_embedder(folder: Path, home: Path) -> Iterator[tuple[Service, Vendor]]:
    vendor = Vendor()
    with stand_in(vendor.answer) as standing:
        settings = build_settings(
            home,
            askbook_embedder="openai",
            askbook_answerer="extractive",
            openai_base_url=standing.url,
            openai_api_key=KEY,
            askbook_embedding_seconds=1.0,
            askbook_rest_seconds=REST,
        )
        asyncio.run(ingest(settings, folder))
        with serve(settings) as service:
            yield service, vendor


@pytest.mark.parametrize("how", ["down", "hung"])
def test_without_its_embedder_the_words_answer(robots_folder: Path, tmp_path: Path, how: State, figure: Figure) -> None:
    with serve_embedder(robots_folder, tmp_path / "home") as (service, vendor):
        before = ask(service)
        assert before.body["notices"] == [] and see(service, "embedder") == UP
        vendor.state = how
        first = [ask(service) for _ in range(5)]
        for one in first:
            assert WORDS_ONLY in one.body["notices"] and BLIND in one.body["answer"]
            assert one.seconds < 5
        assert see(service, "embedder") == DOWN
        tried = vendor.asked
        left_alone = [ask(service), ask(service, "/search")]
        assert vendor.asked == tried, "a service that is left alone is not asked"
        assert left_alone[1].body["mode"] == "keyword" and left_alone[1].body["notices"] == [WORDS_ONLY]
        vendor.state = "up"
        started = time.monotonic()
        wait_until(lambda: ask(service).body["notices"] == [], REST + 10)
        back = time.monotonic() - started
        assert see(service, "embedder") == UP
        slowest, later = max(one.seconds for one in first), max(one.seconds for one in left_alone)
        figure(
            f"F8: embedder {how}: health degraded, ready; words alone answer in {slowest:.2f} s, from the sixth try on in {later:.2f} s; back after {back:.2f} s"
        )


def test_by_meaning_alone_there_is_nothing_without_an_embedder(robots_folder: Path, tmp_path: Path) -> None:
    with serve_embedder(robots_folder, tmp_path / "home") as (service, vendor), service.open_client() as client:
        vendor.state = "down"
        answered = client.post("/search", json={"text": new_question(), "mode": "dense"})
        assert (answered.status_code, answered.json()["error"]) == (503, "service_unavailable")


def test_what_the_words_do_not_find_is_not_called_absent(robots_folder: Path, tmp_path: Path) -> None:
    """Half a search proves nothing of the book."""
    with serve_embedder(robots_folder, tmp_path / "home") as (service, vendor), service.open_client() as client:
        vendor.state = "down"
        answered = client.post("/ask", json={"query": "Which yeast do I need for sourdough bread?"})
        assert (answered.status_code, answered.json()["error"]) == (503, "service_unavailable")
        assert "words" in answered.json()["message"]


# --- the reranker ---------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["down", "hung"])
def test_without_its_reranker_the_search_orders(
    robots_folder: Path, tmp_path: Path, how: State, figure: Figure
) -> None:
    vendor = Vendor()
    with stand_in(vendor.answer) as standing:
        settings = build_settings(
            tmp_path / "home",
            askbook_embedder="none",
            askbook_reranker="cohere",
            cohere_base_url=standing.url,
            cohere_api_key=KEY,
            askbook_reranker_seconds=0.5,
            askbook_rest_seconds=REST,
        )
        asyncio.run(ingest(settings, robots_folder))
        with serve(settings) as service:
            assert ask(service, "/search").body["notices"] == [] and see(service, "reranker") == UP
            vendor.state = how
            first = [ask(service, "/search") for _ in range(5)]
            assert all(one.body["notices"] == [NOT_RERANKED] for one in first)
            assert see(service, "reranker") == DOWN
            tried = vendor.asked
            later = ask(service)
            assert vendor.asked == tried and NOT_RERANKED in later.body["notices"]
            vendor.state = "up"
            back = wait_until(lambda: ask(service, "/search").body["notices"] == [], REST + 10)
            assert see(service, "reranker") == UP
            slowest = max(one.seconds for one in first)
            assert slowest < 3
            figure(
                f"F8: reranker {how}: health degraded, ready; unranked after {slowest:.2f} s, then {later.seconds:.2f} s; back after {back:.2f} s"
            )


# --- the model ------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["down", "hung"])
def test_without_its_model_the_book_answers(home: Path, how: State, figure: Figure) -> None:
    state: State = "up"

    def play(_number: int, request: Any) -> Turn | Status | Broken:
        if state != "up":
            return Status(500) if state == "down" else Broken(how="hang")
        return Turn(f"{BLIND} [1].") if request.results else search("lidar and glass")

    with scripted_model(play) as model:
        settings = build_settings(home, **with_model(model.url), askbook_ask_seconds=2.0, askbook_rest_seconds=REST)
        with serve(settings) as service:
            assert ask(service).body["metadata"]["answered_by"] == "model" and see(service, "model") == UP
            state = how
            first = [ask(service) for _ in range(5)]
            for one in first:
                assert one.body["metadata"]["answered_by"] == "extractive" and BLIND in one.body["answer"]
                assert {MODEL_DOWN, TOO_SLOW} & set(one.body["notices"])
                assert one.seconds < 5
            assert see(service, "model") == DOWN
            later = ask(service)
            assert MODEL_DOWN in later.body["notices"] and later.seconds < 2
            state = "up"
            back = wait_until(lambda: ask(service).body["metadata"]["answered_by"] == "model", REST + 10)
            assert see(service, "model") == UP
            slowest = max(one.seconds for one in first)
            figure(
                f"F8: model {how}: health degraded, ready; the book's own sentences in {slowest:.2f} s, then {later.seconds:.2f} s; back after {back:.2f} s"
            )


# --- Redis ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["down", "hung"])
def test_without_redis_each_process_counts(home: Path, tmp_path: Path, how: State, figure: Figure) -> None:
    with run_redis(tmp_path) as redis, serve(build_settings(home, redis_url=redis.url)) as service:
        wait_until(lambda: see(service, "redis") == UP)
        if how == "down":
            redis.process.kill()
            redis.process.wait()
        else:
            redis.process.send_signal(signal.SIGSTOP)
        seen = wait_until(lambda: see(service, "redis") == DOWN, 5)
        answered = ask(service)
        assert answered.seconds < 3
        if how == "hung":
            redis.process.send_signal(signal.SIGCONT)
            back = wait_until(lambda: see(service, "redis") == UP, REDIS_REST + 5)
            figure(
                f"F8: Redis hung: health degraded after {seen:.2f} s, ready; answers in {answered.seconds:.2f} s; back after {back:.2f} s"
            )
        else:
            figure(f"F8: Redis down: health degraded after {seen:.2f} s, ready; answers in {answered.seconds:.2f} s")


def test_a_redis_that_is_left_alone_is_measured(home: Path, tmp_path: Path) -> None:
    with (
        run_redis(tmp_path) as redis,
        serve(build_settings(home, redis_url=redis.url)) as service,
        service.open_client() as client,
    ):
        key = {"X-API-Key": client.post("/keys", json={"name": "ann", "role": "admin"}).json()["key"]}
        assert 'askbook_breaker_open{service="redis"} 0.0' in client.get("/metrics", headers=key).text
        redis.process.kill()
        redis.process.wait()
        assert 'askbook_breaker_open{service="redis"} 1.0' in client.get("/metrics", headers=key).text
