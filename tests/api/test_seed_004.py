"""Seed 004's contract: ChatRequest → ChatResponse, streamed and not, threads, confidence, on both databases."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Any

import pytest
from fastapi.testclient import TestClient

from api.service import BOOK, QUESTION, RIGHT, UNKNOWN, Sent, read_events

RESPONSE_FIELDS = ["response", "confidence", "sources", "session_id", "timestamp", "confidence_level", "should_answer"]
SOURCE_FIELDS: dict[str, type] = {
    "chunk_text": str,
    "similarity_score": float,
    "chapter": str,
    "section": str,
    "url": str,
    "chunk_index": int,
}
MESSAGE_FIELDS = ["role", "content", "timestamp", "confidence"]
THREAD_FIELDS = ["thread_id", "messages", "created_at", "updated_at", "topic_summary", "metadata"]
RETRIEVAL_FIELDS = ["chunks", "scores", "metadata", "average_score", "has_sufficient_context", "query_embedding"]
METRIC_FIELDS = [
    "average_similarity",
    "min_similarity",
    "max_similarity",
    "num_chunks",
    "chunk_diversity",
    "confidence_level",
    "should_answer",
]


def _ask(client: TestClient, message: str = QUESTION, **more: Any) -> dict[str, Any]:
    response = client.post("/chat/run", json={"message": message, **more})
    assert response.status_code == 200, response.text
    return response.json()


def _stream(client: TestClient, path: str = "/chat/stream", **body: Any) -> list[Sent]:
    with client.stream("POST", path, json={"message": QUESTION, **body}) as response:
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        return list(read_events(response.iter_lines()))


def test_an_answer_has_every_field(client: TestClient) -> None:
    body = _ask(client)
    assert set(RESPONSE_FIELDS) <= set(body)
    assert RIGHT in body["response"]
    assert 0 <= body["confidence"] <= 1
    assert body["confidence_level"] in ("high", "medium", "low") and body["should_answer"] is True
    assert uuid.UUID(body["session_id"]).version == 4
    assert datetime.fromisoformat(body["timestamp"]).tzinfo is not None
    assert body["sources"]
    for source in body["sources"]:
        assert {name: type(source[name]) for name in SOURCE_FIELDS} == SOURCE_FIELDS
        assert 0 < len(source["chunk_text"]) <= 500 and 0 <= source["similarity_score"] <= 1
        assert source["quote"] in source["chunk_text"]
    assert body["sources"][0]["chapter"] == "The gripper"


def test_defaults_and_limits(client: TestClient) -> None:
    schema = client.get("/openapi.json").json()["components"]["schemas"]["ChatRequest"]
    fields = schema["properties"]
    assert schema["required"] == ["message"]
    defaults = {name: fields[name].get("default") for name in ("session_id", "stream", "top_k", "similarity_threshold")}
    assert defaults == {"session_id": None, "stream": False, "top_k": 5, "similarity_threshold": 0.7}
    assert (fields["message"]["minLength"], fields["message"]["maxLength"]) == (1, 1000)
    assert (fields["top_k"]["minimum"], fields["top_k"]["maximum"]) == (1, 10)
    threshold = fields["similarity_threshold"]
    assert (threshold["minimum"], threshold["maximum"]) == (0, 1)


INVALID: dict[str, tuple[dict[str, Any], str]] = {
    "empty": ({"message": ""}, "message cannot be empty"),
    "blank": ({"message": "   "}, "message cannot be empty"),
    "long": ({"message": "x" * 1001}, "message must have at most 1000 characters"),
    "no UUID": ({"session_id": "abc"}, "session_id must be a UUID4"),
    "UUID1": ({"session_id": "6ba7b810-9dad-11d1-80b4-00c04fd430c8"}, "session_id must be a UUID4"),
    "top_k": ({"top_k": 11}, "top_k must be 10 or less"),
    "no top_k": ({"top_k": 0}, "top_k must be 1 or more"),
    "threshold": ({"similarity_threshold": 1.01}, "similarity_threshold must be 1 or less"),
    "negative": ({"similarity_threshold": -0.1}, "similarity_threshold must be 0 or more"),
    "stream": ({"stream": "yes"}, "stream must be true or false"),
}


@pytest.mark.parametrize("path", ["/chat/run", "/chat/stream"])
@pytest.mark.parametrize(("body", "message"), INVALID.values(), ids=INVALID)
def test_what_is_wrong_is_said(client: TestClient, path: str, body: dict[str, Any], message: str) -> None:
    response = client.post(path, json={"message": QUESTION, **body})
    assert (response.status_code, response.json()["error"]) == (400, "validation_error")
    assert response.json()["message"].startswith(message)


def test_the_threshold_is_the_same_sent_or_left_out(client: TestClient) -> None:
    question = "How many pictures are there?"
    left_out, sent = _ask(client, question), _ask(client, question, similarity_threshold=0.7)
    same = ("response", "confidence", "confidence_level", "should_answer")
    assert [left_out[name] for name in same] == [sent[name] for name in same]
    assert _ask(client, question, similarity_threshold=0.0)["should_answer"] is True
    strict = _ask(client, question, similarity_threshold=0.99)
    assert (strict["should_answer"], strict["refusal"]["reason"]) == (False, "below_threshold")
    assert "threshold of 0.99" in strict["response"]


def test_a_higher_threshold_makes_nothing_surer(client: TestClient) -> None:
    question = "How many pictures are there?"
    told = [_ask(client, question, similarity_threshold=at / 20) for at in range(21)]
    assert len({one["confidence"] for one in told}) == 1
    assert len({one["confidence_level"] for one in told if one["should_answer"]}) == 1
    answered = [one["should_answer"] for one in told]
    assert answered == sorted(answered, reverse=True) and set(answered) == {True, False}


def test_the_threshold_is_for_a_selected_text_too(client: TestClient) -> None:
    selected = "The gripper closes with a force of 40 newtons."
    assert _ask(client, QUESTION, selected_text=selected, similarity_threshold=0.0)["should_answer"] is True
    strict = _ask(client, QUESTION, selected_text=selected, similarity_threshold=1.0)
    assert strict["refusal"]["reason"] == "below_threshold"


@pytest.mark.parametrize("threshold", [0.0, 0.5, 0.7, 0.8, 0.85, 0.9, 0.99, 1.0])
def test_the_events_of_a_reply_agree(client: TestClient, threshold: float) -> None:
    events = _stream(client, similarity_threshold=threshold)
    found, done = events[1].data, events[-1].data
    assert all(score >= threshold for score in found["scores"])
    assert found["confidence"]["should_answer"] is done["should_answer"]
    assert found["confidence"]["confidence_level"] == done["confidence_level"]
    assert done["should_answer"] is (done["refusal"] is None) is bool(done["sources"])
    assert all(any(one["chunk_text"] in chunk for chunk in found["chunks"]) for one in done["sources"])


def test_a_refusal(client: TestClient) -> None:
    body = _ask(client, UNKNOWN)
    assert (body["confidence_level"], body["should_answer"], body["sources"]) == ("insufficient", False, [])
    assert body["response"] == "I don't have information about that in the book content"
    assert body["refusal"]["reason"] == "not_in_book"


# --- streamed -------------------------------------------------------------------------------------


def test_a_stream_is_the_same_answer(client: TestClient) -> None:
    events = _stream(client, include_embedding=True)
    names = [event.event for event in events]
    assert names[:2] == ["tool_call", "retrieval"] and names[-1] == "done"
    assert set(names[2:-1]) == {"content"}

    call, found, done = events[0].data, events[1].data, events[-1].data
    assert call["tool_name"] == "retrieve_documentation" and call["query"] == QUESTION
    assert set(RETRIEVAL_FIELDS) <= set(found)
    assert len(found["chunks"]) == len(found["scores"]) == len(found["metadata"]) > 0
    assert found["average_score"] == pytest.approx(sum(found["scores"]) / len(found["scores"]))
    enough = found["average_score"] >= 0.75 and len(found["chunks"]) >= 3
    assert found["has_sufficient_context"] is enough
    assert len(found["query_embedding"]) == 384
    assert set(METRIC_FIELDS) <= set(found["confidence"])
    for about in found["metadata"]:
        assert set(about) == {"chapter", "section", "url", "no_url", "chunk_index", "content_hash"}

    assert set(RESPONSE_FIELDS) <= set(done)
    assert done["session_id"] == call["session_id"]
    assert "".join(event.data["delta"] for event in events[2:-1]) == done["response"]
    assert RIGHT in done["response"]


def test_stream_true_is_the_stream(client: TestClient) -> None:
    events = _stream(client, "/chat/run", stream=True)
    assert (events[0].event, events[-1].event) == ("tool_call", "done")
    assert events[1].data["query_embedding"] is None


def test_a_streamed_refusal_says_its_words(client: TestClient) -> None:
    *_, said, done = _stream(client, message=UNKNOWN)
    assert (said.event, said.data["delta"]) == ("content", done.data["response"])
    assert done.data["refusal"]["reason"] == "not_in_book"


def test_what_fails_before_the_first_byte_has_a_status(client: TestClient) -> None:
    response = client.post("/chat/stream", json={"message": QUESTION, "book_id": "physics"})
    assert (response.status_code, response.json()["error"]) == (404, "not_found")


# --- sessions -------------------------------------------------------------------------------------


def test_a_conversation_is_kept_and_deleted(client: TestClient) -> None:
    session = str(uuid.uuid4())
    first = _ask(client, session_id=session)
    assert first["session_id"] == session
    _ask(client, "Tell me more", session_id=session)

    response = client.get(f"/session/{session}/history")
    thread = response.json()
    assert set(THREAD_FIELDS) <= set(thread)
    assert (thread["thread_id"], thread["book_id"]) == (session, BOOK)
    assert [message["role"] for message in thread["messages"]] == ["user", "assistant", "user", "assistant"]
    for message in thread["messages"]:
        assert set(MESSAGE_FIELDS) <= set(message)
        assert datetime.fromisoformat(message["timestamp"]).utcoffset() is not None
        assert (message["confidence"] is None) == (message["role"] == "user")
    assert thread["created_at"] <= thread["updated_at"]
    assert thread["topic_summary"] is None

    assert session in [one["thread_id"] for one in client.get("/sessions").json()["threads"]]
    deleted = client.delete(f"/session/{session}")
    assert (deleted.status_code, deleted.content) == (204, b"")
    assert client.get(f"/session/{session}/history").status_code == 404
    assert client.delete(f"/session/{session}").status_code == 404


def test_a_topic_from_the_fifth_exchange_on(client: TestClient) -> None:
    session = str(uuid.uuid4())
    for topic in ("gripper", "lidar", "battery", "wheel", "camera"):
        _ask(client, f"What does the {topic} do?", session_id=session)
    summary = client.get(f"/session/{session}/history").json()["topic_summary"]
    assert summary and len(summary) <= 200


def test_sessions_are_limited(client: TestClient) -> None:
    for _ in range(2):
        _ask(client)
    assert len(client.get("/sessions", params={"limit": 1}).json()["threads"]) == 1
    assert client.get("/sessions", params={"limit": 0}).status_code == 400
    assert client.get("/sessions", params={"book_id": BOOK}).status_code == 200
    assert client.get("/session/no-uuid/history").status_code == 400


def test_a_body_too_large_is_413(client: TestClient) -> None:
    response = client.post("/chat/run", content=b'{"message": "' + b"x" * 300_000 + b'"}')
    assert (response.status_code, response.json()["error"]) == (413, "payload_too_large")
