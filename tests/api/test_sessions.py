"""A session by its id: sent back as it was told, in a header or in the body. And numbers as JSON has them."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from fastapi.testclient import TestClient

from api.service import BOOK, QUESTION

MESSAGES = [{"role": "user", "content": QUESTION}]
WAYS: dict[str, tuple[str, dict[str, Any]]] = {
    "ask": ("/ask", {"query": QUESTION}),
    "run": ("/chat/run", {"message": QUESTION}),
    "run streamed": ("/chat/run", {"message": QUESTION, "stream": True}),
    "stream": ("/chat/stream", {"message": QUESTION}),
    "completions": ("/v1/chat/completions", {"model": BOOK, "messages": MESSAGES}),
    "completions streamed": ("/v1/chat/completions", {"model": BOOK, "messages": MESSAGES, "stream": True}),
    "responses": ("/v1/responses", {"model": BOOK, "input": QUESTION}),
    "responses streamed": ("/v1/responses", {"model": BOOK, "input": QUESTION, "stream": True}),
}


@pytest.mark.parametrize(("path", "body"), WAYS.values(), ids=WAYS)
def test_a_session_that_is_named_in_a_header(client: TestClient, path: str, body: dict[str, Any]) -> None:
    """As a stream tells it, so it may be sent: its history and its feedback are found."""
    session = str(uuid.uuid4())
    for turn in (1, 2):
        asked = client.post(path, json=body, headers={"X-Session-ID": session})
        assert asked.status_code == 200, asked.text
        assert session in f"{asked.text} {asked.headers}"
        history = client.get(f"/session/{session}/history")
        assert history.status_code == 200 and len(history.json()["messages"]) == 2 * turn
    given = client.post("/feedback", json={"session_id": session, "helpful": True})
    assert given.status_code == 200 and given.json()["position"] == 3


def test_the_body_comes_before_the_header(client: TestClient) -> None:
    named, other = str(uuid.uuid4()), str(uuid.uuid4())
    body = {"message": QUESTION, "session_id": named}
    assert client.post("/chat/run", json=body, headers={"X-Session-ID": other}).json()["session_id"] == named
    assert client.get(f"/session/{other}/history").status_code == 404


def test_a_header_that_is_no_session_is_refused(client: TestClient) -> None:
    refused = client.post("/chat/run", json={"message": QUESTION}, headers={"X-Session-ID": "17"})
    assert refused.status_code == 400 and "X-Session-ID must be a UUID4" in refused.json()["message"]


@pytest.mark.parametrize("number", ["1", "1.0", "1e0", "10e-1"])
def test_a_whole_number_however_json_writes_it(client: TestClient, number: str) -> None:
    """RFC 8259 knows one kind of number: JavaScript and Lua do not tell 1 from 1.0."""
    headers = {"Content-Type": "application/json"}
    asked = client.post("/chat/run", content=f'{{"message": "{QUESTION}", "top_k": {number}}}', headers=headers)
    assert asked.status_code == 200, asked.text
    session = asked.json()["session_id"]
    body = f'{{"session_id": "{session}", "helpful": true, "position": {number}}}'
    assert client.post("/feedback", content=body, headers=headers).json()["position"] == 1
    for wrong in ("1.5", "1e400", "true", '"1"', "1e300", "-1.0"):
        refused = client.post("/chat/run", content=f'{{"message": "Hm?", "top_k": {wrong}}}', headers=headers)
        assert refused.status_code == 400, (wrong, refused.text)
