"""Seed 000's contract: AgentRequest → AgentResponse, ErrorResponse, /health, field by field, on both databases."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from api.service import BOOK, QUESTION, RIGHT, UNKNOWN, build_settings, ingest, open_client
from index.scripted_server import Received, Reply, stand_in

SOURCE_FIELDS: dict[str, type | tuple[type, ...]] = {
    "content": str,
    "url": str,
    "chunk_id": str,
    "document_id": str,
    "similarity_score": float,
    "position": int,
}
TIMES = ("response_time_ms", "embedding_time_ms", "retrieval_time_ms", "generation_time_ms")


def test_an_answer_has_every_field(client: TestClient) -> None:
    response = client.post("/ask", json={"query": QUESTION})

    assert response.status_code == 200
    body = response.json()
    assert RIGHT in body["answer"]
    assert body["sources"]
    for place, source in enumerate(body["sources"], start=1):
        assert {name: type(source[name]) for name in SOURCE_FIELDS} == SOURCE_FIELDS
        assert source["content"] and 0 <= source["similarity_score"] <= 1 and source["position"] == place
    metadata = body["metadata"]
    assert all(metadata[name] >= 0 for name in TIMES)
    assert metadata["chunk_count"] >= 1
    assert metadata["response_time_ms"] >= metadata["retrieval_time_ms"]
    # What the seed calls future.
    assert metadata["session_id"] and metadata["cache_hit"] is False and metadata["user_id"] is None
    assert "re_ranking_score" in body["sources"][0]


QUESTIONS = [
    QUESTION,
    "How do I clean the lidar, and how often does it turn?",
    "What is a topic?",
]


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("top_k", [1, 3, 10])
def test_each_passage_is_one_source_and_they_are_in_the_order_of_their_scores(
    client: TestClient, question: str, top_k: int
) -> None:
    body = client.post("/ask", json={"query": question, "top_k": top_k}).json()
    sources = body["sources"]
    scores = [one["similarity_score"] for one in sources]
    assert scores == sorted(scores, reverse=True)
    assert len({one["chunk_id"] for one in sources}) == len(sources) == body["metadata"]["chunk_count"] <= top_k
    assert [one["position"] for one in sources] == list(range(1, len(sources) + 1))
    cited = {one["number"]: one for one in sources if one["cited"]}
    assert sorted(cited) == list(range(1, len(cited) + 1))
    assert {number for one in body["statements"] for number in one["cites"]} == set(cited)
    for one in cited.values():
        assert one["quote"] in one["places"][0]["quote"]
        assert all(place["quote"] in one["content"] for place in one["places"])


def test_without_sources_there_are_no_marks(client: TestClient) -> None:
    plain = client.post("/ask", json={"query": QUESTION, "include_sources": False}).json()
    marked = client.post("/ask", json={"query": QUESTION}).json()
    assert "[1]" in marked["answer"] and "[1]" not in plain["answer"]
    assert marked["answer"].replace(" [1]", "") == plain["answer"]
    assert plain["sources"] == [] and all("[1]" not in one["text"] for one in plain["statements"])


def test_the_same_question_is_remembered(client: TestClient) -> None:
    asked = [client.post("/ask", json={"query": "How far does the lidar see?"}).json() for _ in range(2)]
    assert [one["metadata"]["cache_hit"] for one in asked] == [False, True]


def test_defaults(client: TestClient) -> None:
    schema = client.get("/openapi.json").json()["components"]["schemas"]["AgentRequest"]
    fields = schema["properties"]
    assert schema["required"] == ["query"]
    assert (fields["query"]["minLength"], fields["query"]["maxLength"]) == (1, 1000)
    assert (fields["top_k"]["default"], fields["top_k"]["minimum"], fields["top_k"]["maximum"]) == (5, 1, 10)
    assert (fields["include_sources"]["type"], fields["include_sources"]["default"]) == ("boolean", True)
    assert schema["examples"]


@pytest.mark.parametrize("top_k", [1, 10])
def test_limits_are_inclusive(client: TestClient, top_k: int) -> None:
    response = client.post("/ask", json={"query": QUESTION, "top_k": top_k, "include_sources": True})
    assert response.status_code == 200
    assert len(response.json()["sources"]) <= top_k


def test_the_longest_question(client: TestClient) -> None:
    assert client.post("/ask", json={"query": "gripper " * 125}).status_code == 200


def test_without_sources(client: TestClient) -> None:
    body = client.post("/ask", json={"query": QUESTION, "include_sources": False}).json()
    assert body["sources"] == [] and RIGHT in body["answer"]


INVALID: dict[str, tuple[Any, str]] = {
    "no query": ({}, "query is required"),
    "empty": ({"query": ""}, "query cannot be empty"),
    "blank": ({"query": " \n\t "}, "query cannot be empty"),
    "too long": ({"query": "x" * 1001}, "query must have at most 1000 characters"),
    "no text": ({"query": 7}, "query must be text"),
    "top_k 0": ({"query": "x", "top_k": 0}, "top_k must be 1 or more"),
    "top_k 11": ({"query": "x", "top_k": 11}, "top_k must be 10 or less"),
    "top_k 1.5": ({"query": "x", "top_k": 1.5}, "top_k must be a whole number"),
    "top_k text": ({"query": "x", "top_k": "5"}, "top_k must be a whole number"),
    "sources 1": ({"query": "x", "include_sources": 1}, "include_sources must be true or false"),
    "unknown field": ({"query": "x", "topk": 5}, "topk is not known here"),
    "no object": ([], "the body must be a JSON object"),
    "session": ({"query": "x", "session_id": "1"}, "session_id must be a UUID4"),
    "selected": ({"query": "x", "selected_text": "y" * 5001}, "selected_text must have at most 5000 characters"),
    "tier": ({"query": "x", "reader": {"hardware_tier": 5}}, "reader.hardware_tier must be 4 or less"),
    "level": ({"query": "x", "reader": {"proficiency_level": "D1"}}, "reader.proficiency_level must be 'A1'"),
}


@pytest.mark.parametrize(("body", "message"), INVALID.values(), ids=INVALID)
def test_what_is_wrong_is_said(client: TestClient, body: Any, message: str) -> None:
    response = client.post("/ask", json=body)

    assert response.status_code == 400
    problem = response.json()
    assert set(problem) == {"error", "message", "detail", "status_code", "request_id", "timestamp"}
    assert (problem["error"], problem["status_code"]) == ("validation_error", 400)
    assert problem["message"].startswith(message)
    assert problem["request_id"] == response.headers["X-Request-ID"]
    assert datetime.fromisoformat(problem["timestamp"]).tzinfo is not None


def test_a_refusal_is_an_answer_with_a_reason(client: TestClient) -> None:
    body = client.post("/ask", json={"query": UNKNOWN}).json()
    assert body["refused"] and body["sources"] == []
    assert body["answer"] == "I don't have information about that in the book content"
    assert body["refusal"]["reason"] == "not_in_book"
    assert body["refusal"]["advice"] and body["refusal"]["nearest"]


def test_an_unknown_book(client: TestClient) -> None:
    response = client.post("/ask", json={"query": QUESTION, "book_id": "physics"})
    assert (response.status_code, response.json()["error"]) == (404, "not_found")


def test_the_profile_is_kept(client: TestClient) -> None:
    reader = {"hardware_tier": 2, "proficiency_level": "B1", "layer": "L2", "user_id": "ann"}
    body = client.post("/ask", json={"query": QUESTION, "reader": reader}).json()
    assert body["metadata"]["user_id"] == "ann"
    history = client.get(f"/session/{body['metadata']['session_id']}/history").json()
    assert history["metadata"]["user_id"] == "ann"


def test_selected_text_is_all_there_is(client: TestClient) -> None:
    selected = "The gripper of this robot closes with a force of 7 newtons."
    body = client.post("/ask", json={"query": QUESTION, "book_id": BOOK, "selected_text": selected}).json()
    assert "7 newtons" in body["answer"] and "40" not in body["answer"]


def test_health_in_both_forms(client: TestClient) -> None:
    response = client.get("/health")
    assert response.status_code == 200
    body = response.json()
    assert body["status"] == "healthy"
    assert body["services"] == {"openai": "unknown", "cohere": "unknown", "qdrant": "connected"}
    states = {part: one["status"] for part, one in body["dependencies"].items()}
    assert states == {"database": "up", "index": "up", "embedder": "up"}
    assert body["dependencies"]["embedder"]["latency_ms"] is None, "the one on this machine is not timed"
    assert all(body["dependencies"][part]["latency_ms"] >= 0 for part in ("database", "index"))
    assert datetime.fromisoformat(body["timestamp"])


async def test_what_the_words_alone_do_not_find_is_503_while_the_embedder_is_down(
    robots_folder: Path, tmp_path: Path
) -> None:
    down = False

    def answer(_number: int, request: Received) -> Reply:
        rows = [{"index": at, "embedding": [1.0, *[0.0] * 1535]} for at in range(len(request.body["input"]))]
        return Reply(401, {"error": "scripted"}) if down else Reply(body={"data": rows})

    with stand_in(answer) as service:
        settings = build_settings(
            tmp_path,
            askbook_embedder="openai",
            openai_api_key="sk-any",
            openai_base_url=f"{service.url}/v1",
            askbook_answerer="extractive",
        )
        await ingest(settings, robots_folder)
        with open_client(settings) as client:
            assert client.post("/ask", json={"query": "How does the gripper close?"}).status_code == 200
            down = True
            for path, body in (("/ask", {"query": QUESTION}), ("/chat/run", {"message": QUESTION})):
                response = client.post(path, json=body)
                assert response.status_code == 503
                assert response.json()["error"] == "service_unavailable"
                assert response.headers["Retry-After"]
