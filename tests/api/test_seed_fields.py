"""Fields that the seeds' tables name: when and by what a chunk was embedded, what a retrieval was filtered by and when,
the question's vector on request, a thread's tags and metadata, what the owner tells the model."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from answer.scripted_model import Turn, scripted_model, search
from api.service import QUESTION, RIGHT, build_settings, open_client, read_events, with_model


def is_now(text: str) -> bool:
    return abs((datetime.now(UTC) - datetime.fromisoformat(text)).total_seconds()) < 60


def stream(client: TestClient, **body: Any) -> dict[str, Any]:
    streamed = client.post("/chat/stream", json={"message": QUESTION, **body})
    return {event.event: event.data for event in read_events(iter(streamed.text.splitlines()))}


def test_a_chunk_tells_when_and_by_what_it_was_embedded(client: TestClient) -> None:
    """Seed 003, EmbeddedChunk."""
    found = client.post("/search", json={"text": QUESTION}).json()["results"][0]
    [chunk] = client.get(f"/context/{found['chunk_id']}", params={"reach": 0}).json()["chunks"]
    assert chunk["embedding_model"] == client.get("/info").json()["embedder"]
    assert datetime.fromisoformat(chunk["embedded_at"]) >= datetime.fromisoformat(chunk["metadata"]["created_at"])


def test_a_retrieval_tells_its_moment_and_its_filter(client: TestClient) -> None:
    """Seed 002, RetrievalContext."""
    plain = client.post("/search", json={"text": QUESTION}).json()
    assert is_now(plain["retrieved_at"]) and plain["filter_applied"] is None
    under = client.post("/search", json={"text": QUESTION, "url_prefix": "/read/robots/01"}).json()
    assert under["results"] and under["filter_applied"] == "/read/robots/01"
    below = client.post("/search", json={"text": QUESTION, "heading_prefix": "Robots"}).json()
    assert below["filter_applied"] == "Robots"
    retrieval = stream(client)["retrieval"]
    assert is_now(retrieval["retrieved_at"]) and retrieval["filter_applied"] is None


def test_the_questions_vector_comes_on_request_streamed_and_whole(client: TestClient) -> None:
    """Seed 004, RetrievalResult.query_embedding; beside it the weights of its words."""
    silent = stream(client)["retrieval"]
    assert silent["query_embedding"] is None and silent["query_keywords"] is None
    streamed = stream(client, include_embedding=True)["retrieval"]
    whole = client.post("/chat/run", json={"message": QUESTION, "include_embedding": True}).json()["retrieval"]
    searched = client.post("/search", json={"text": QUESTION, "include_embedding": True}).json()
    for body in (streamed, whole, searched):
        assert len(body["query_embedding"]) == 384
        assert sum(value * value for value in body["query_embedding"]) == pytest.approx(1, abs=1e-3)
        assert len(body["query_keywords"]["indices"]) == len(body["query_keywords"]["values"]) > 0
    assert (whole["chunks"], whole["scores"]) == (streamed["chunks"], streamed["scores"])
    assert client.post("/chat/run", json={"message": QUESTION}).json()["retrieval"] is None


def test_what_is_not_searched_has_no_retrieval_streamed_or_whole(client: TestClient) -> None:
    """The outline knows the number of lessons."""
    asked = {"message": "How many lessons are there?", "include_embedding": True}
    whole, streamed = client.post("/chat/run", json=asked).json(), stream(client, **asked)
    assert whole["sources"] and whole["response"] == streamed["done"]["response"]
    assert set(streamed) == {"content", "done"}
    assert whole["retrieval"] is streamed["done"]["retrieval"] is None


def test_a_selected_text_is_what_was_found_streamed_and_whole(client: TestClient) -> None:
    asked = {"selected_text": f"{RIGHT}.", "include_embedding": True}
    whole, streamed = client.post("/chat/run", json={"message": QUESTION, **asked}).json(), stream(client, **asked)
    assert whole["retrieval"]["chunks"] == streamed["retrieval"]["chunks"] == [f"{RIGHT}."]


def test_words_alone_have_no_vector(home: Path) -> None:
    with open_client(build_settings(home, askbook_embedder="none")) as client:
        body = client.post("/search", json={"text": QUESTION, "include_embedding": True}).json()
    assert body["query_embedding"] is None and body["query_keywords"]["indices"]


def test_a_thread_has_tags_and_metadata(client: TestClient) -> None:
    """Seed 004, ConversationThread.metadata."""
    asked = {"message": QUESTION, "reader": {"user_id": "ada"}}
    session = client.post("/chat/run", json=asked).json()["session_id"]
    changed = client.patch(f"/session/{session}", json={"tags": ["ros2", "urdf"], "metadata": {"course": 7}}).json()
    assert changed["metadata"] == {"user_id": "ada", "tags": ["ros2", "urdf"], "course": 7}
    client.post("/chat/run", json={"message": "How far does the lidar see?", "session_id": session})
    changed = client.patch(f"/session/{session}", json={"title": "Grippers", "metadata": {"course": None}}).json()
    assert (changed["title"], changed["metadata"]) == ("Grippers", {"user_id": "ada", "tags": ["ros2", "urdf"]})
    history = client.get(f"/session/{session}/history").json()
    assert history["metadata"] == changed["metadata"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "the body must change something: title, tags or metadata"),
        ({"title": ""}, "title cannot be empty"),
        ({"title": " \n"}, "title must not be blank"),
        ({"tags": ["x" * 65]}, "tags.0 must have at most 64 characters"),
        ({"tags": [""]}, "tags.0 cannot be empty"),
        ({"tags": ["ros2", " "]}, "tags.1 must not be blank"),
        ({"tags": ["a"] * 21}, "tags must have at most 20 entries"),
        ({"metadata": {"x": "y" * 5000}}, "a thread's metadata may take 4096 bytes, and this takes more"),
        ({"metadata": {"": 1}}, "a name in metadata cannot be empty"),
        ({"metadata": {"x": [[[[1]]]]}}, "the body is nested too deeply"),
        ({"metadata": 7}, "metadata must be an object"),
        ({"metadata": {"tags": "x"}}, "the body must not have tags in its metadata: send them beside it"),
        ({"metadata": {"tags": None}}, "the body must not have tags in its metadata: send them beside it"),
        ({"metadata": {"user_id": "u" * 129}}, "the body has a user_id in its metadata that no reader can have"),
        ({"metadata": {"hardware_tier": 99}}, "the body has a hardware_tier in its metadata that no reader can have"),
    ],
)
def test_a_thread_takes_no_more_than_fits(client: TestClient, body: dict[str, Any], message: str) -> None:
    session = client.post("/chat/run", json={"message": QUESTION}).json()["session_id"]
    refused = client.patch(f"/session/{session}", json=body)
    assert (refused.status_code, refused.json()["message"]) == (400, message)


def test_a_thread_takes_as_much_as_fits(client: TestClient) -> None:
    session = client.post("/chat/run", json={"message": QUESTION}).json()["session_id"]
    fits = {"title": "x" * 80, "tags": ["x" * 64] * 20, "metadata": {"x": [[[1]]]}}
    changed = client.patch(f"/session/{session}", json=fits)
    assert (changed.status_code, changed.json()["metadata"]["x"]) == (200, [[[1]]])


def test_a_thread_that_is_full_goes_on(client: TestClient) -> None:
    session = client.post("/chat/run", json={"message": QUESTION}).json()["session_id"]
    assert client.patch(f"/session/{session}", json={"metadata": {"a": "x" * 4080}}).status_code == 200
    reader = {"user_id": "\x01" * 128, "hardware_tier": 4, "proficiency_level": "C2", "layer": "L4"}
    answered = client.post("/chat/run", json={"message": QUESTION, "session_id": session, "reader": reader})
    assert answered.status_code == 200, answered.text
    named = client.patch(f"/session/{session}", json={"title": "Full"}).json()
    assert (named["title"], named["metadata"]["layer"], len(named["metadata"]["a"])) == ("Full", "L4", 4080)
    assert client.patch(f"/session/{session}", json={"metadata": {"b": "x" * 20}}).status_code == 400


def test_the_owner_adds_to_what_the_model_is_told(home: Path) -> None:
    """Seed 001, AgentConfiguration.system_prompt: the rules stay."""
    added = "Speak to pupils of twelve."
    with (
        scripted_model([search("force of the gripper"), Turn(f"{RIGHT} [1].")]) as model,
        open_client(build_settings(home, **with_model(model.url), agent_system_prompt=added)) as client,
    ):
        client.post("/ask", json={"query": QUESTION})
    told = model.received[0].instructions
    assert added in told and told.index("retrieve_documentation") < told.index(added)
