"""OpenAI's and Cohere's wire, on a stand-in server that fails in every way a real one has."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from scripted_server import HANG, IN_TIME, Received, Reply, stand_in

from askbook.errors import EmbedderUnavailable
from askbook.index.embedders.cohere import CohereEmbedder
from askbook.index.embedders.openai import OpenAIEmbedder
from askbook.index.embedders.remote import RemoteEmbedder
from askbook.index.remote import Patience

KEY = "sk-secret-canary"
QUICK = Patience(tries=3, first_wait=0.01, deadline=2.0)


def numbered(texts: list[str], dimension: int) -> list[list[float]]:
    """Vectors that tell which text they belong to: its last character, on that axis."""
    return [[3.0 if at == int(text[-1]) else 0.0 for at in range(dimension)] for text in texts]


def openai_reply(request: Received, dimension: int = 1536) -> Reply:
    rows = numbered([text if text[-1].isdigit() else "0" for text in request.body["input"]], dimension)
    data = [{"index": at, "embedding": row} for at, row in enumerate(rows)]
    return Reply(body={"data": data[::-1], "model": request.body["model"]})


def cohere_reply(request: Received, dimension: int = 1024) -> Reply:
    rows = numbered([text if text[-1].isdigit() else "0" for text in request.body["texts"]], dimension)
    return Reply(body={"embeddings": {"float": rows}})


async def test_openai_sends_batches_and_keeps_the_order() -> None:
    with stand_in(lambda _, request: openai_reply(request)) as server:
        embedder = OpenAIEmbedder(KEY, base_url=f"{server.url}/v1")
        vectors = await embedder.embed_passages([f"text {n}" for n in range(300)])
        assert (embedder.name, embedder.dimension) == ("openai/text-embedding-3-small", 1536)
        assert [int(vector.argmax()) for vector in vectors] == [n % 10 for n in range(300)]
        assert all(np.linalg.norm(vector) == pytest.approx(1.0) and vector.dtype == np.float32 for vector in vectors)
        await embedder.close()
    assert [len(request.body["input"]) for request in server.received] == [128, 128, 44]
    first = server.received[0]
    assert (first.method, first.path) == ("POST", "/v1/embeddings")
    assert first.headers["authorization"] == f"Bearer {KEY}"
    assert first.body["model"] == "text-embedding-3-small"


async def test_cohere_tells_passages_from_questions() -> None:
    with stand_in(lambda _, request: cohere_reply(request)) as server:
        embedder = CohereEmbedder(KEY, base_url=server.url)
        await embedder.embed_passages([f"text {n}" for n in range(100)])
        assert int((await embedder.embed_query("question 7")).argmax()) == 7
        assert (embedder.name, embedder.dimension) == ("cohere/embed-english-v3.0", 1024)
        await embedder.close()
    sent = [(len(request.body["texts"]), request.body["input_type"]) for request in server.received]
    assert sent == [(96, "search_document"), (4, "search_document"), (1, "search_query")]
    assert {request.path for request in server.received} == {"/v2/embed"}


async def test_an_unknown_model_tells_its_dimension_with_its_first_vectors() -> None:
    measured: list[int] = []

    async def note(dimension: int) -> None:
        measured.append(dimension)

    with stand_in(lambda number, request: openai_reply(request, dimension=12 + number // 2)) as server:
        embedder = OpenAIEmbedder(KEY, "nomic-embed", server.url, QUICK, when_measured=note)
        assert embedder.dimension == 0 and not server.received
        for _ in range(2):
            await embedder.embed_query("question 7")
            assert (embedder.dimension, measured) == (12, [12])
        with pytest.raises(EmbedderUnavailable, match="do not have 12 dimensions"):
            await embedder.embed_query("question 7")
        await embedder.close()


async def test_an_empty_text_and_half_a_character_are_sendable() -> None:
    with stand_in(lambda _, request: openai_reply(request)) as server:
        embedder = OpenAIEmbedder(KEY, base_url=server.url)
        assert len(await embedder.embed_passages(["", "\ud800"])) == 2
        assert await embedder.embed_passages([]) == []
        await embedder.close()
    assert server.received[0].body["input"] == [" ", "?"]


@pytest.mark.row("F2")
@pytest.mark.parametrize("failure", [Reply(429), Reply(500), Reply(503, headers={"Retry-After": "0"})])
async def test_it_comes_back_after_a_failure(failure: Reply) -> None:
    with stand_in(lambda number, request: failure if number < 2 else openai_reply(request)) as server:
        embedder = OpenAIEmbedder(KEY, base_url=server.url, patience=QUICK)
        assert int((await embedder.embed_query("question 3")).argmax()) == 3
        await embedder.close()
    assert len(server.received) == 3


async def test_retry_after_is_waited_for() -> None:
    busy = Reply(429, headers={"Retry-After": "1"})
    with stand_in(lambda number, request: busy if number == 0 else openai_reply(request)) as server:
        embedder = OpenAIEmbedder(KEY, base_url=server.url, patience=QUICK)
        started = time.monotonic()
        await embedder.embed_query("question 3")
        assert time.monotonic() - started >= 1.0
        await embedder.close()


def broken_row(request: Received, change: Any) -> Reply:
    reply = openai_reply(request)
    change(reply.body["data"])
    return reply


def set_first(data: list[Any], value: Any) -> None:
    data[0]["embedding"] = value


FAILURES: dict[str, tuple[Any, str, int]] = {
    "500 three times": (lambda request: Reply(500), "answered 500 3 times", 3),
    "429 three times": (lambda request: Reply(429), "answered 429 3 times", 3),
    "a wrong key": (lambda request: Reply(401, {"error": {"message": f"bad key {KEY}"}}), "refused the key", 1),
    "an unknown model": (lambda request: Reply(404, {"error": "no such model"}), "answered 404", 1),
    "a redirect": (lambda request: Reply(302, headers={"Location": "http://127.0.0.1:9/"}), "answered 302", 1),
    "no JSON": (lambda request: Reply(raw=b"<html>"), "not JSON", 1),
    "no data": (lambda request: Reply(body={"object": "list"}), "did not answer with 1 vectors", 1),
    "a list": (lambda request: Reply(body=[1]), "did not answer with 1 vectors", 1),
    "too few": (lambda request: broken_row(request, lambda data: data.clear()), "did not answer with 1 vectors", 1),
    "NaN": (lambda r: broken_row(r, lambda d: set_first(d, [float("nan")] * 1536)), "not finite", 1),
    "zeros": (lambda r: broken_row(r, lambda d: set_first(d, [0.0] * 1536)), "all zeros", 1),
    "too short": (lambda r: broken_row(r, lambda d: set_first(d, [1.0] * 3)), "do not have 1536 dimensions", 1),
    "words": (lambda r: broken_row(r, lambda d: set_first(d, ["a"])), "not a vector", 1),
    "a hang": (lambda request: Reply(delay=HANG), "no answer within 0.5 s", 1),
}


@pytest.mark.row("S6")
@pytest.mark.parametrize("name", FAILURES)
async def test_failures_are_typed_in_time_and_keep_the_key(name: str) -> None:
    answer, message, tries = FAILURES[name]
    patience = Patience(tries=3, first_wait=0.01, deadline=0.5)
    with stand_in(lambda _, request: answer(request)) as server:
        embedder = OpenAIEmbedder(KEY, base_url=server.url, patience=patience)
        started = time.monotonic()
        with pytest.raises(EmbedderUnavailable, match=message) as raised:
            await embedder.embed_query("question 1")
        assert time.monotonic() - started < IN_TIME
        await embedder.close()
    assert len(server.received) == tries
    assert KEY not in f"{raised.value!r} {raised.value.hint}"


@pytest.mark.parametrize(("kind", "setting"), [(OpenAIEmbedder, "OPENAI_API_KEY"), (CohereEmbedder, "COHERE_API_KEY")])
async def test_a_refused_key_names_its_setting(kind: Any, setting: str) -> None:
    with stand_in(lambda number, request: Reply(401)) as server:
        embedder: RemoteEmbedder = kind(KEY, base_url=server.url, patience=QUICK)
        with pytest.raises(EmbedderUnavailable) as raised:
            await embedder.embed_query("question 1")
        await embedder.close()
    assert raised.value.hint == f"Check {setting}."


async def test_nobody_listening_is_typed() -> None:
    with stand_in(lambda number, request: Reply()) as server:
        pass
    embedder = OpenAIEmbedder(KEY, base_url=server.url, patience=QUICK)
    with pytest.raises(EmbedderUnavailable, match="cannot be reached"):
        await embedder.embed_query("question 1")
    await embedder.close()
