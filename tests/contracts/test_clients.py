"""Five clients, each written from its contract alone, go through their whole story with askbook.

They know the names of their own document and nothing else; what askbook sends beyond them they pass over.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

import httpx2
import pytest

from answer.scripted_model import quote, scripted_model
from api.service import KEY, Service, build_settings, serve
from builders import copy_home
from contracts.terminal import Terminal
from contracts.textbook import BOOK, QUESTION, REFUSAL, RIGHT, UNKNOWN

T = TypeVar("T")
LONGEST = f"{QUESTION} " * 24 + f"{QUESTION}?"
"""A question of 1000 characters."""


def read(kind: type[T], body: dict[str, Any]) -> T:
    return kind(**{one.name: body[one.name] for one in fields(kind)})  # pyright: ignore[reportArgumentType]


@dataclass
class Failed(Exception):
    error: str
    message: str
    detail: str | None
    status_code: int

    def __str__(self) -> str:
        return f"{self.status_code} {self.error}: {self.message}"


def check(response: httpx2.Response) -> dict[str, Any]:
    if response.status_code >= 400:
        raise read(Failed, response.json())
    return response.json() if response.content else {}


@pytest.fixture(scope="module")
def own(ingested_textbook: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A server with keys and a small limit."""
    home = copy_home(ingested_textbook, tmp_path_factory.mktemp("own"))
    settings = build_settings(home, askbook_rate_limit=5, askbook_embedder="none", askbook_reader="none")
    with serve(settings) as service:
        yield service


# --- the first: one question, one answer ----------------------------------------------------------


@dataclass(frozen=True)
class SourceChunk:
    content: str
    url: str
    chunk_id: str
    document_id: str
    similarity_score: float
    position: int


@dataclass(frozen=True)
class ResponseMetadata:
    response_time_ms: float
    chunk_count: int
    embedding_time_ms: float
    retrieval_time_ms: float
    generation_time_ms: float


@dataclass(frozen=True)
class AgentResponse:
    answer: str
    sources: list[SourceChunk]
    metadata: ResponseMetadata


@dataclass(frozen=True)
class Asker:
    http: httpx2.Client

    def ask(self, query: str, **more: Any) -> AgentResponse:
        body = check(self.http.post("/ask", json={"query": query, **more}))
        sources = [read(SourceChunk, one) for one in body["sources"]]
        return AgentResponse(body["answer"], sources, read(ResponseMetadata, body["metadata"]))


def test_the_first_over_http(client: httpx2.Client) -> None:
    asker = Asker(client)
    answer = asker.ask(QUESTION, top_k=5, include_sources=True)
    assert RIGHT in answer.answer and answer.metadata.chunk_count == len(answer.sources) == 5
    assert [one.position for one in answer.sources] == [1, 2, 3, 4, 5]
    assert answer.sources[0].url.startswith("https://") and RIGHT in answer.sources[0].content
    assert 0 < answer.metadata.response_time_ms < 5000

    assert asker.ask(QUESTION, include_sources=False).sources == []
    assert len(LONGEST) == 1000 and RIGHT in asker.ask(LONGEST).answer
    assert len(asker.ask(QUESTION, top_k=1).sources) == 1
    nothing = asker.ask(UNKNOWN)
    assert (nothing.answer, nothing.sources) == (REFUSAL, [])
    for wrong in ({"query": ""}, {"query": f"{LONGEST}?"}, {"query": "x", "top_k": 11}, {"query": "x", "top_k": 0}):
        with pytest.raises(Failed) as caught:
            asker.ask(**wrong)
        assert (caught.value.error, caught.value.status_code) == ("validation_error", 400)
        assert next(iter(wrong.keys() - {"query"}), "query") in caught.value.message


# --- the second: an agent in the terminal ---------------------------------------------------------


def test_the_second_in_the_terminal(terminal: Terminal) -> None:
    """Its model searches with the tool, cites, follows up, and is not asked about what the book does not say."""
    lines = (QUESTION, "How much does the battery hold?", "When must it be charged?", UNKNOWN, "exit")
    with scripted_model(quote) as model:
        service = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": model.url, "OPENAI_MODEL": "gpt-3.5-turbo"}
        told = terminal.run("chat", typed="\n".join(lines), **service)
    assert told.returncode == 0, told.stderr
    gripper, battery, charged, refused, _ = told.stdout.split("You: ")[1:]
    assert RIGHT in gripper and "[1]" in gripper and "The gripper › What a gripper does" in gripper
    assert "5 ampere hours" in battery and "The battery" in charged and REFUSAL in refused
    assert {request.body["model"] for request in model.received} == {"gpt-3.5-turbo"}
    assert all(request.items[0]["role"] == "system" for request in model.received)
    calls = [request for request in model.received if request.tool_outputs]
    assert all(set(one) == {"results", "total_results", "query"} for call in calls for one in call.tool_outputs)
    assert "yeast" not in json.dumps([request.body for request in model.received])


# --- the third: a conversation in the terminal ----------------------------------------------------

QUICK = {"ASKBOOK_EMBEDDER": "none", "ASKBOOK_READER": "none"}


def test_the_third_in_the_terminal(terminal: Terminal) -> None:
    lines = (QUESTION, LONGEST, f"{LONGEST}?", "", "When must the battery be charged?", "quit")
    told = terminal.run("chat", "-k", "3", "-v", typed="\n".join(lines))
    assert told.returncode == 0, told.stderr
    first, longest, too_long, empty, last, _ = told.stdout.split("You: ")[1:]
    for turn, fact in ((first, RIGHT), (longest, RIGHT), (last, "20 percent")):
        said, _, footer = turn.partition("\n---\n**Sources:**\n")
        assert said.startswith("Agent: ") and fact in said
        assert re.match(r"\[1\] https://\S+ \(score: [01]\.\d\d\)\n", footer)
    assert (too_long, empty) == ("", "")
    assert "1 to 1000 characters; this one has 1001" in told.stderr and "Type a question" in told.stderr
    assert "found 3 passages" in told.stderr and "found" not in first

    for arguments, words in (((" ",), "The question is empty"), ((QUESTION, "-k", "11"), "top_k is 1 to 10, not 11")):
        told = terminal.run("chat", "-q", *arguments, **QUICK)
        assert (told.returncode, words in told.stderr, told.stdout) == (1, True, ""), told.stderr


# --- the fourth: a book that is kept and searched -------------------------------------------------


@dataclass(frozen=True)
class SearchResult:
    text: str
    score: float
    source_file: str
    section_title: str | None
    module: str
    chapter: int
    lesson: int
    hardware_tier: int
    proficiency_level: str
    layer: str
    chunk_index: int
    total_chunks: int
    parent_doc_id: str | None
    prev_chunk_id: str | None
    next_chunk_id: str | None
    content_hash: str | None


@dataclass(frozen=True)
class IngestionJob:
    job_id: int
    book_id: str
    mode: str
    status: str
    files_processed: int
    files_skipped: int
    chunks_created: int
    chunks_deleted: int
    started_at: str | None
    completed_at: str | None
    duration_seconds: int | None
    error_message: str | None


@dataclass(frozen=True)
class Librarian:
    http: httpx2.Client

    def search(self, text: str, **filters: Any) -> list[SearchResult]:
        body = check(self.http.post("/search", json={"text": text, **filters}))
        return [read(SearchResult, one) for one in body["results"]]

    def load_chunk(self, chunk_id: str) -> dict[str, Any]:
        return check(self.http.get(f"/context/{chunk_id}", params={"reach": 0}))["chunks"][0]

    def ingest(self, mode: str) -> IngestionJob:
        job = read(IngestionJob, check(self.http.post("/ingestion/trigger", json={"book_id": BOOK, "mode": mode})))
        while job.status in ("queued", "running"):
            time.sleep(0.02)
            job = read(IngestionJob, check(self.http.get(f"/ingestion/status/{job.job_id}")))
        return job


def test_the_fourth_over_http(client: httpx2.Client) -> None:
    librarian = Librarian(client)
    found = librarian.search("step of the arm", hardware_tier_filter=1, module_filter="ros2", limit=20)
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    arm = next(one for one in found if one.source_file.endswith("02-arm.md") and one.chunk_index == 2)
    assert arm.prev_chunk_id and arm.next_chunk_id and arm.total_chunks == 5
    assert librarian.load_chunk(arm.prev_chunk_id)["metadata"]["chunk_index"] == 1
    lesson = check(client.get(f"/lesson/{arm.parent_doc_id}"))["chunks"]
    assert [one["metadata"]["chunk_index"] for one in lesson] == [0, 1, 2, 3, 4]
    assert {one.hardware_tier for one in librarian.search("what it does", hardware_tier_filter=2, limit=20)} == {1, 2}

    job = librarian.ingest("incremental")
    assert (job.status, job.files_processed, job.files_skipped, job.chunks_created) == ("completed", 0, 8, 0)
    assert job.completed_at and job.error_message is None
    changes = check(client.get("/ingestion/changes"))
    assert (changes["new_files"], changes["modified_files"], changes["deleted_files"]) == ([], [], [])

    for wrong in ({"limit": 21}, {"hardware_tier_filter": 5}, {"proficiency_levels": ["D1"]}, {"layer_filter": "L0"}):
        with pytest.raises(Failed, match="validation_error"):
            librarian.search("arm", **wrong)
    for text, beyond in (("arm", "ar"), ("x" * 1000, "x" * 1001)):
        librarian.search(text)
        with pytest.raises(Failed, match="text must have at"):
            librarian.search(beyond)
    with pytest.raises(Failed, match="not_found"):
        check(client.get("/lesson/6ba7b810-9dad-11d1-80b4-00c04fd430c8"))


# --- the fifth: chat over HTTP --------------------------------------------------------------------


@dataclass(frozen=True)
class ChatResponse:
    response: str
    confidence: float
    sources: list[dict[str, Any]]
    session_id: str
    timestamp: str
    confidence_level: str
    should_answer: bool


@dataclass(frozen=True)
class Chatter:
    http: httpx2.Client

    def run(self, message: str, **more: Any) -> ChatResponse:
        return read(ChatResponse, check(self.http.post("/chat/run", json={"message": message, **more})))

    def stream(self, message: str, **more: Any) -> tuple[str, ChatResponse]:
        """The text as it came, and the whole at its end."""
        written, name = "", ""
        with self.http.stream("POST", "/chat/stream", json={"message": message, **more}) as response:
            for line in response.iter_lines():
                if line.startswith("event: "):
                    name = line.removeprefix("event: ")
                elif line.startswith("data: ") and name == "content":
                    written += json.loads(line.removeprefix("data: "))["delta"]
                elif line.startswith("data: ") and name == "done":
                    return written, read(ChatResponse, json.loads(line.removeprefix("data: ")))
        raise AssertionError("a stream ends with done")


def test_the_fifth_over_http(client: httpx2.Client) -> None:
    chatter = Chatter(client)
    first = chatter.run("How much does the battery hold?", top_k=5, stream=False)
    assert "5 ampere hours" in first.response and first.should_answer and first.confidence_level == "high"
    assert first.sources[0]["chapter"] == "Chapter 1: Hands" and first.sources[0]["similarity_score"] >= 0.7
    written, more = chatter.stream("When must it be charged?", session_id=first.session_id)
    assert (written, more.session_id) == (more.response, first.session_id) and "20 percent" in written
    refused = chatter.run(UNKNOWN, session_id=first.session_id)
    assert (refused.response, refused.confidence_level, refused.should_answer) == (REFUSAL, "insufficient", False)
    thread = check(client.get(f"/session/{first.session_id}/history"))
    assert [one["role"] for one in thread["messages"]] == ["user", "assistant"] * 3
    assert thread["messages"][1]["confidence"] == first.confidence
    assert client.delete(f"/session/{first.session_id}").status_code == 204
    with pytest.raises(Failed, match="not_found"):
        check(client.get(f"/session/{first.session_id}/history"))
    for wrong in ({"message": " "}, {"message": "x" * 1001}, {"message": "x", "session_id": "7"}):
        with pytest.raises(Failed, match="validation_error"):
            chatter.run(**wrong)


def test_the_fifth_has_so_many_requests_a_minute(own: Service) -> None:
    with own.open_client() as admin:
        key = check(admin.post("/keys", json={"name": "a reader", "role": "admin"}))["key"]
    with own.open_client(headers={"Authorization": f"Bearer {key}"}) as http:
        for left in (4, 3, 2, 1, 0):
            response = http.get("/sessions")
            assert (response.status_code, response.headers["X-RateLimit-Remaining"]) == (200, str(left))
        with pytest.raises(Failed, match="rate_limited") as caught:
            check(http.get("/sessions"))
        assert caught.value.status_code == 429
    from_elsewhere = own.open_client(headers={"X-Forwarded-For": "203.0.113.9"})
    with from_elsewhere as stranger, pytest.raises(Failed, match="authentication_error"):
        check(stranger.get("/sessions"))
