"""The fifth contract, field by field, over HTTP: chat, threads, what was found, and how sure it makes us."""

from __future__ import annotations

import asyncio
import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path
from statistics import fmean
from typing import Any

import httpx2
import pytest

from api.service import Service, build_settings, ingest, read_events, serve
from builders import copy_home
from contracts.kinds import (
    Kind,
    address,
    flag,
    many,
    maybe,
    one_of,
    sha256,
    share,
    table,
    text,
    utc_time,
    uuid4,
    whole,
)
from contracts.textbook import QUESTION, REFUSAL, RIGHT, SHORT, UNKNOWN
from databases import fresh_postgres

LEVEL = one_of("high", "medium", "low", "insufficient")


def ask(client: httpx2.Client, message: str = QUESTION, **more: Any) -> dict[str, Any]:
    response = client.post("/chat/run", json={"message": message, **more})
    assert response.status_code == 200, response.text
    return response.json()


def stream(client: httpx2.Client, path: str = "/chat/stream", **body: Any) -> list[tuple[str, Any]]:
    with client.stream("POST", path, json={"message": QUESTION, **body}) as response:
        assert response.headers["content-type"].startswith("text/event-stream"), response.read()
        return [(one.event, one.data) for one in read_events(response.iter_lines())]


@pytest.fixture(scope="module")
def answered(client: httpx2.Client) -> dict[str, Any]:
    return ask(client)


@pytest.fixture(scope="module")
def refused(client: httpx2.Client) -> dict[str, Any]:
    return ask(client, UNKNOWN)


@pytest.fixture(scope="module")
def found(client: httpx2.Client) -> dict[str, Any]:
    return dict(stream(client, include_embedding=True))["retrieval"]


@pytest.fixture(scope="module")
def thread(client: httpx2.Client) -> dict[str, Any]:
    """Five exchanges of one reader."""
    session = str(uuid.uuid4())
    for topic in ("gripper", "lidar", "battery", "camera", "planner"):
        ask(client, f"What does the {topic} do?", session_id=session, reader={"user_id": "user-7"})
    return client.get(f"/session/{session}/history").json()


# --- the request ----------------------------------------------------------------------------------

LIMITS: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]]]] = {
    "message": ([{"message": "?"}, {"message": "gripper " * 125}], [{"message": "gripper " * 125 + "!"}]),
    "message required": ([{"message": QUESTION}], [{"message": None}, {"message": 7}, {"message": "", "stream": True}]),
    "message trimmed": ([{"message": f" {QUESTION} "}], [{"message": ""}, {"message": " \n "}]),
    "session_id": (
        [{}, {"session_id": "550e8400-e29b-41d4-a716-446655440000"}],
        [{"session_id": one} for one in ("", "7", "6ba7b810-9dad-11d1-80b4-00c04fd430c8", "550e8400e29b41d4a716")],
    ),
    "stream": ([{"stream": True}, {"stream": False}], [{"stream": "true"}, {"stream": 1}]),
    "top_k": ([{"top_k": 1}, {"top_k": 10}], [{"top_k": 0}, {"top_k": 11}, {"top_k": 1.5}]),
    "similarity_threshold": (
        [{"similarity_threshold": 0.0}, {"similarity_threshold": 1.0}],
        [{"similarity_threshold": one} for one in (-0.01, 1.01, "0.7")],
    ),
}


@pytest.mark.parametrize("rule", LIMITS)
def test_request(client: httpx2.Client, rule: str) -> None:
    good, bad = LIMITS[rule]
    for body in good:
        assert client.post("/chat/run", json={"message": QUESTION} | body).status_code == 200, body
    for body in bad:
        for path in ("/chat/run", "/chat/stream"):
            response = client.post(path, json={"message": QUESTION} | body)
            assert (response.status_code, response.json()["error"]) == (400, "validation_error"), body


def test_a_session_is_begun_where_none_is_named(client: httpx2.Client, answered: dict[str, Any]) -> None:
    other = ask(client)
    assert uuid4(answered["session_id"]) and answered["session_id"] != other["session_id"]


def test_no_stream_unless_asked_for(client: httpx2.Client) -> None:
    whole_reply = client.post("/chat/run", json={"message": QUESTION})
    assert whole_reply.headers["content-type"] == "application/json"
    assert [name for name, _ in stream(client, "/chat/run", stream=True)][-1] == "done"


def test_five_passages_unless_asked_otherwise(client: httpx2.Client) -> None:
    def count(**body: Any) -> int:
        return len(dict(stream(client, **body))["retrieval"]["chunks"])

    assert (count(), count(top_k=1), count(top_k=10)) == (5, 1, 10)


# --- the answer -----------------------------------------------------------------------------------

ANSWER: dict[str, Kind] = {
    "response": text,
    "confidence": share,
    "sources": lambda value: isinstance(value, list),
    "session_id": uuid4,
    "timestamp": utc_time,
    "confidence_level": LEVEL,
    "should_answer": flag,
}
SOURCE: dict[str, Kind] = {
    "chunk_text": lambda value: text(value) and len(value) <= 500,
    "similarity_score": share,
    "chapter": text,
    "section": text,
    "url": address,
    "chunk_index": whole,
}


@pytest.mark.parametrize("field", ANSWER)
def test_answer(answered: dict[str, Any], refused: dict[str, Any], field: str) -> None:
    assert ANSWER[field](answered[field]) and ANSWER[field](refused[field])


@pytest.mark.parametrize("field", SOURCE)
def test_source(client: httpx2.Client, answered: dict[str, Any], field: str) -> None:
    long = ask(client, "In which step is the elbow of the arm checked, and where is it written?")
    sources = [*answered["sources"], *long["sources"]]
    assert len(sources) >= 2
    assert [one[field] for one in sources if not SOURCE[field](one[field])] == []


def test_a_source_names_its_chapter_and_section(answered: dict[str, Any]) -> None:
    [source] = answered["sources"]
    assert (source["chapter"], source["section"]) == ("Chapter 1: Hands", "What a gripper does")
    assert (source["chunk_index"], RIGHT in source["chunk_text"]) == (0, True)


def test_a_long_chunk_is_shown_to_five_hundred_characters(client: httpx2.Client) -> None:
    [source, *_] = ask(client, "In which step is the elbow of the arm checked?")["sources"]
    [chunk] = client.get(f"/context/{source['chunk_id']}", params={"reach": 0}).json()["chunks"]
    assert len(chunk["text"]) > len(source["chunk_text"]) == 500
    assert source["chunk_text"] in chunk["text"]


def test_sources_where_it_answers_and_none_where_it_does_not(answered: dict[str, Any], refused: dict[str, Any]) -> None:
    assert answered["should_answer"] and answered["sources"]
    assert (refused["should_answer"], refused["sources"], refused["response"]) == (False, [], REFUSAL)


def test_the_answer_says_what_its_metrics_say(client: httpx2.Client) -> None:
    for message in (QUESTION, "How far does the lidar see?", UNKNOWN):
        events = dict(stream(client, message=message))
        metrics, done = events["retrieval"]["confidence"], events["done"]
        assert done["confidence_level"] == metrics["confidence_level"]
        assert done["should_answer"] is metrics["should_answer"]
        assert done["confidence"] == metrics["average_similarity"]


# --- what was found -------------------------------------------------------------------------------

FOUND: dict[str, Kind] = {
    "chunks": many(text),
    "scores": many(share),
    "metadata": many(table),
    "average_score": share,
    "has_sufficient_context": flag,
    "query_embedding": many(lambda value: isinstance(value, float)),
}
CHUNK: dict[str, Kind] = {
    "chapter": text,
    "section": text,
    "url": address,
    "chunk_index": whole,
    "content_hash": sha256,
}


@pytest.mark.parametrize("field", FOUND)
def test_retrieval(found: dict[str, Any], field: str) -> None:
    assert FOUND[field](found[field])


@pytest.mark.parametrize("field", CHUNK)
def test_chunk_metadata(found: dict[str, Any], field: str) -> None:
    assert all(CHUNK[field](one[field]) for one in found["metadata"])


def test_the_three_lists_go_together(client: httpx2.Client, found: dict[str, Any]) -> None:
    assert len(found["chunks"]) == len(found["scores"]) == len(found["metadata"]) == 5
    hashes = [one["content_hash"] for one in found["metadata"]]
    results = client.post("/search", json={"text": QUESTION, "limit": 20, "hardware_tier_filter": 4}).json()["results"]
    texts = {one["content_hash"]: one["text"] for one in results}
    assert [texts[one] for one in hashes] == found["chunks"]
    assert len(set(hashes)) == 5


def test_the_average_is_the_mean(found: dict[str, Any]) -> None:
    assert found["average_score"] == pytest.approx(fmean(found["scores"]))


def test_enough_is_three_chunks_with_a_mean_of_three_quarters(client: httpx2.Client) -> None:
    for top_k, enough in ((2, False), (3, True)):
        told = dict(stream(client, top_k=top_k))["retrieval"]
        assert (told["average_score"] >= 0.75, told["has_sufficient_context"]) == (True, enough)
    assert dict(stream(client, message=UNKNOWN))["retrieval"]["has_sufficient_context"] is False


def test_the_same_text_twice_is_found_once(textbook: Path, tmp_path: Path) -> None:
    """Two lessons with one and the same section: the better one stays."""
    folder = tmp_path / "twins"
    folder.mkdir()
    for name in ("01-one.md", "02-two.md"):
        (folder / name).write_text((textbook / SHORT).read_text())
    settings = build_settings(tmp_path / "home", askbook_embedder="none", askbook_reader="none")
    asyncio.run(ingest(settings, folder))
    with serve(settings) as service, service.open_client() as client:
        told = dict(stream(client))["retrieval"]
    assert len(told["chunks"]) == len({one["content_hash"] for one in told["metadata"]}) == 1


# --- how sure it makes us -------------------------------------------------------------------------

METRICS: dict[str, Kind] = {
    "average_similarity": share,
    "min_similarity": share,
    "max_similarity": share,
    "num_chunks": whole,
    "chunk_diversity": share,
    "confidence_level": LEVEL,
    "should_answer": flag,
}


@pytest.mark.parametrize("field", METRICS)
def test_metrics(found: dict[str, Any], field: str) -> None:
    assert METRICS[field](found["confidence"][field])


def test_metrics_are_those_of_what_was_found(found: dict[str, Any]) -> None:
    metrics, scores = found["confidence"], found["scores"]
    assert (metrics["min_similarity"], metrics["max_similarity"]) == (min(scores), max(scores))
    assert metrics["average_similarity"] == pytest.approx(fmean(scores))
    assert metrics["min_similarity"] <= metrics["average_similarity"] <= metrics["max_similarity"]
    assert (metrics["num_chunks"], metrics["chunk_diversity"] > 0) == (5, True)


LEVELS = {
    "high": ("ros2", QUESTION),
    "medium": ("gazebo", "How far does the lidar see?"),
    "low": ("vla", "How often does the planner replan?"),
    "insufficient": ("isaac", "How many pictures does the camera take?"),
}
"""Modules of seven, four, two and one chunk: five, three and two are the least of each level."""


@pytest.mark.parametrize("level", LEVELS)
def test_level(client: httpx2.Client, level: str) -> None:
    module, question = LEVELS[level]
    told = ask(client, question, module_filter=module, top_k=10)
    assert (told["confidence_level"], told["should_answer"]) == (level, level != "insufficient")
    assert any("not sure" in notice for notice in told["notices"]) is (level == "low")


# --- threads --------------------------------------------------------------------------------------

THREAD: dict[str, Kind] = {
    "thread_id": uuid4,
    "messages": many(table),
    "created_at": utc_time,
    "updated_at": utc_time,
    "topic_summary": lambda value: text(value) and len(value) <= 200,
    "metadata": table,
}
MESSAGE: dict[str, Kind] = {
    "role": one_of("user", "assistant"),
    "content": text,
    "timestamp": utc_time,
    "confidence": maybe(share),
}


@pytest.mark.parametrize("field", THREAD)
def test_thread(thread: dict[str, Any], field: str) -> None:
    assert THREAD[field](thread[field])


@pytest.mark.parametrize("field", MESSAGE)
def test_message(thread: dict[str, Any], field: str) -> None:
    assert all(MESSAGE[field](one[field]) for one in thread["messages"])


def test_messages_alternate_in_the_order_of_time(thread: dict[str, Any]) -> None:
    assert [one["role"] for one in thread["messages"]] == ["user", "assistant"] * 5
    times = [datetime.fromisoformat(one["timestamp"]) for one in thread["messages"]]
    assert times == sorted(times) and thread["updated_at"] == thread["messages"][-1]["timestamp"]
    assert all(question < answer for question, answer in zip(times[::2], times[1::2], strict=True)), (
        "asked before answered"
    )


def test_only_answers_have_a_confidence(thread: dict[str, Any]) -> None:
    assert [one["confidence"] is None for one in thread["messages"]] == [True, False] * 5


def test_a_new_thread_has_no_summary_and_no_metadata(client: httpx2.Client, answered: dict[str, Any]) -> None:
    thread = client.get(f"/session/{answered['session_id']}/history").json()
    assert (thread["topic_summary"], thread["metadata"], len(thread["messages"])) == (None, {}, 2)


def test_who_asks_is_in_the_metadata(thread: dict[str, Any]) -> None:
    assert thread["metadata"]["user_id"] == "user-7"


def test_a_message_is_appended_and_the_time_moves_on(client: httpx2.Client) -> None:
    session = ask(client)["session_id"]
    before = client.get(f"/session/{session}/history").json()
    ask(client, "Tell me more", session_id=session)
    after = client.get(f"/session/{session}/history").json()
    assert after["messages"][:2] == before["messages"] and len(after["messages"]) == 4
    assert (after["created_at"], after["updated_at"] > before["updated_at"]) == (before["created_at"], True)


@pytest.fixture(scope="module")
def long_ago(ingested_textbook: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Service, Path]]:
    """A server whose threads can be made older behind its back."""
    home = copy_home(ingested_textbook, tmp_path_factory.mktemp("long-ago"))
    with serve(build_settings(home, askbook_embedder="none", askbook_reader="none")) as service:
        yield service, home / "askbook.db"


@pytest.mark.parametrize(("minutes", "archived"), [(59, False), (61, True)])
def test_an_hour_of_silence_archives_and_a_message_resumes(
    long_ago: tuple[Service, Path], minutes: int, archived: bool
) -> None:
    service, database = long_ago
    with service.open_client() as client:
        session = ask(client)["session_id"]
        with closing(sqlite3.connect(database)) as connection, connection:
            connection.execute(
                "UPDATE threads SET updated_at = datetime('now', ?) || '.000000' WHERE thread_id = ?",
                (f"-{minutes} minutes", session),
            )
        silent = client.get(f"/session/{session}/history").json()
        assert (silent["archived_at"] is not None, len(silent["messages"])) == (archived, 2)
        ask(client, "Tell me more", session_id=session)
        resumed = client.get(f"/session/{session}/history").json()
        assert (resumed["archived_at"], len(resumed["messages"])) == (None, 4)


def test_a_deleted_thread_is_gone(client: httpx2.Client) -> None:
    session = ask(client)["session_id"]
    assert client.delete(f"/session/{session}").status_code == 204
    assert client.get(f"/session/{session}/history").status_code == 404
    assert client.delete(f"/session/{session}").status_code == 404


def test_fifty_messages_are_live_and_older_ones_archived(long_ago: tuple[Service, Path]) -> None:
    service, _ = long_ago
    with service.open_client() as client:
        session = str(uuid.uuid4())
        for _ in range(25):
            ask(client, session_id=session)
        full = client.get(f"/session/{session}/history").json()
        assert (len(full["messages"]), full["archived_messages"], full["earlier_messages"]) == (50, 0, [])
        ask(client, session_id=session)
        over = client.get(f"/session/{session}/history").json()
    assert (len(over["messages"]), over["archived_messages"], len(over["earlier_messages"])) == (50, 2, 2)
    assert over["earlier_messages"] == full["messages"][:2]


# --- the tables -----------------------------------------------------------------------------------


async def test_threads_in_postgresql(postgres_url: str) -> None:
    from sqlalchemy import text as sql

    from askbook.store.database import open_database

    database = await open_database(await fresh_postgres(postgres_url))
    async with database.reading() as connection:
        columns = await connection.execute(
            sql("SELECT column_name, data_type, is_nullable FROM information_schema.columns WHERE table_name='threads'")
        )
        kinds = {name: (kind, nullable) for name, kind, nullable in columns}
        indexes = list(await connection.scalars(sql("SELECT indexdef FROM pg_indexes WHERE tablename='threads'")))
    await database.close()
    zoned = ("timestamp with time zone", "NO")
    assert (kinds["created_at"], kinds["updated_at"], kinds["metadata"]) == (zoned, zoned, ("jsonb", "NO"))
    assert kinds["topic_summary"] == ("text", "YES")
    assert any("UNIQUE" in one and "(thread_id)" in one for one in indexes)
    assert any("(updated_at DESC)" in one for one in indexes) and any("(created_at DESC)" in one for one in indexes)


# --- both ways ------------------------------------------------------------------------------------


def test_streamed_and_whole_are_the_same_answer(client: httpx2.Client, answered: dict[str, Any]) -> None:
    events = stream(client)
    done = events[-1][1]
    assert "".join(data["delta"] for name, data in events if name == "content") == done["response"]
    for field in ("response", "confidence", "sources", "confidence_level", "should_answer"):
        assert done[field] == answered[field]
    assert done.keys() == answered.keys()
