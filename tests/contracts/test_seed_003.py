"""The fourth contract, field by field: chunks, what Qdrant is told, ingestion, jobs and search, over HTTP."""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest

from api.service import build_settings, serve
from askbook.settings import Settings
from askbook.wiring import open_askbook
from book.shelf import split, words
from contracts.kinds import (
    Kind,
    any_uuid,
    counted,
    many,
    maybe,
    nothing,
    one_of,
    sha256,
    share,
    table,
    text,
    utc_time,
    whole,
)
from contracts.textbook import BOOK, CHUNKS, FILES, LESSONS, LONG, MIDDLE, SHORT, write_textbook
from index.qdrant_stand_in import stand_in_qdrant
from index.scripted_server import Received, Reply, stand_in

NAMESPACE = uuid.UUID("6ba7b810-9dad-11d1-80b4-00c04fd430c8")
MODULE = one_of("ros2", "gazebo", "isaac", "vla")
TIER = one_of(1, 2, 3, 4)
PROFICIENCY = one_of("A1", "A2", "B1", "B2", "C1", "C2")
LAYER = one_of("L1", "L2", "L3", "L4")


def search(client: httpx2.Client, words: str = "step of the arm", **filters: Any) -> dict[str, Any]:
    response = client.post("/search", json={"text": words, **filters})
    assert response.status_code == 200, response.text
    return response.json()


def load_records(client: httpx2.Client) -> dict[str, Any]:
    [state] = client.get("/ingestion/status", params={"records": True}).json()["states"]
    return state["records"]


def load_lesson(client: httpx2.Client, file: str) -> list[dict[str, Any]]:
    first = load_records(client)[file]["chunk_ids"][0]
    [chunk] = client.get(f"/context/{first}", params={"reach": 0}).json()["chunks"]
    return client.get(f"/lesson/{chunk['metadata']['parent_doc_id']}").json()["chunks"]


@pytest.fixture(scope="module")
def lessons(client: httpx2.Client) -> dict[str, list[dict[str, Any]]]:
    return {file: load_lesson(client, file) for file in LESSONS}


@pytest.fixture(scope="module")
def chunks(lessons: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    return [chunk for lesson in lessons.values() for chunk in lesson]


# --- chunks ---------------------------------------------------------------------------------------

CHUNK: dict[str, Kind] = {
    "id": any_uuid,
    "text": lambda value: text(value) and value == value.strip() and len(value) >= 10,
    "metadata": table,
    "word_count": counted,
    "token_count": counted,
    "char_count": counted,
}
METADATA: dict[str, Kind] = {
    "book_id": one_of(BOOK),
    "module": MODULE,
    "chapter": whole,
    "lesson": whole,
    "section_title": maybe(text),
    "hardware_tier": TIER,
    "proficiency_level": PROFICIENCY,
    "layer": LAYER,
    "source_file": one_of(*LESSONS),
    "parent_doc_id": any_uuid,
    "chunk_index": whole,
    "total_chunks": counted,
    "prev_chunk_id": maybe(any_uuid),
    "next_chunk_id": maybe(any_uuid),
    "content_hash": sha256,
    "source_file_hash": sha256,
    "version": one_of(1),
    "created_at": utc_time,
    "updated_at": utc_time,
}


@pytest.mark.parametrize("name", CHUNK)
def test_chunk(chunks: list[dict[str, Any]], name: str) -> None:
    assert len(chunks) == CHUNKS
    assert [one[name] for one in chunks if not CHUNK[name](one[name])] == []


@pytest.mark.parametrize("name", METADATA)
def test_metadata(chunks: list[dict[str, Any]], name: str) -> None:
    assert [one["metadata"][name] for one in chunks if not METADATA[name](one["metadata"][name])] == []


def test_metadata_is_what_the_front_matter_says(lessons: dict[str, list[dict[str, Any]]]) -> None:
    told = lessons[MIDDLE][0]["metadata"]
    assert (told["module"], told["chapter"], told["lesson"]) == ("gazebo", 2, 2)
    assert (told["hardware_tier"], told["proficiency_level"], told["layer"]) == (2, "B2", "L3")
    assert told["section_title"] == "The antenna of the radar"


def test_counts_are_those_of_the_text(chunks: list[dict[str, Any]]) -> None:
    for one in chunks:
        words = len(one["text"].split())
        assert (one["word_count"], one["char_count"]) == (words, len(one["text"]))
        assert words * 1.3 <= one["token_count"] <= words * 1.7


def test_chunks_are_as_long_as_they_should_be(tmp_path: Path) -> None:
    """Of a long section those that could be longer have 300 tokens or more, and none more than 512."""
    chunks = split(tmp_path, f"# T\n\n## One\n\n{words(4000)}")[1]
    assert len(chunks) > 10
    assert all(300 <= one.token_count <= 512 for one in chunks[:-1]) and chunks[-1].token_count <= 512


def test_ids_follow_the_rule(chunks: list[dict[str, Any]], textbook: Path) -> None:
    for one in chunks:
        about, digest = one["metadata"], hashlib.sha256(one["text"].encode()).hexdigest()
        place = f"{BOOK}:{about['module']}:{about['chapter']}:{about['lesson']}"
        assert about["content_hash"] == digest
        assert one["id"] == str(uuid.uuid5(NAMESPACE, f"{place}:{digest[:16]}"))
        assert about["parent_doc_id"] == str(uuid.uuid5(NAMESPACE, f"{place}:parent"))
        file = (textbook / about["source_file"]).read_bytes()
        assert about["source_file_hash"] == hashlib.sha256(file).hexdigest()
    assert len({one["id"] for one in chunks}) == len(chunks)


@pytest.mark.parametrize(("file", "count"), [(LONG, 5), (MIDDLE, 3), (SHORT, 1)])
def test_the_chain_of_a_lesson(lessons: dict[str, list[dict[str, Any]]], file: str, count: int) -> None:
    ids = [one["id"] for one in lessons[file]]
    told = [one["metadata"] for one in lessons[file]]
    assert [one["chunk_index"] for one in told] == list(range(count))
    assert {one["total_chunks"] for one in told} == {count}
    assert [one["prev_chunk_id"] for one in told] == [None, *ids[:-1]]
    assert [one["next_chunk_id"] for one in told] == [*ids[1:], None]
    assert len({one["parent_doc_id"] for one in told}) == 1


def test_neighbours_expand_a_chunk(client: httpx2.Client, lessons: dict[str, list[dict[str, Any]]]) -> None:
    ids = [one["id"] for one in lessons[LONG]]
    told = client.get(f"/context/{ids[2]}", params={"reach": 1}).json()["chunks"]
    assert [one["id"] for one in told] == ids[1:4]


# --- what Qdrant is told --------------------------------------------------------------------------


@dataclass
class Qdrant:
    """What passes on its way to a stand-in that stores and searches."""

    url: str
    created: dict[str, Any] = field(default_factory=dict[str, Any])
    indexes: dict[str, Any] = field(default_factory=dict[str, Any])
    points: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    vectors: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    filters: list[Any] = field(default_factory=list[Any])

    def answer(self, _number: int, request: Received) -> Reply:
        match request.method, request.path.split("?")[0].removeprefix("/collections/askbook"):
            case "PUT", "":
                self.created = request.body
            case "PUT", "/index":
                self.indexes[request.body["field_name"]] = request.body["field_schema"]
            case "PUT", "/points":
                self.points |= {point["id"]: point["payload"] for point in request.body["points"]}
            case "PUT", "/points/vectors":
                self.vectors |= {point["id"]: point["vector"]["dense"] for point in request.body["points"]}
            case "POST", "/points/query":
                self.filters.append(request.body["filter"]["must"])
            case _:
                pass
        response = httpx2.request(request.method, f"{self.url}{request.path}", json=request.body)
        return Reply(response.status_code, response.json())


def _embed(_number: int, request: Received) -> Reply:
    assert request.body["model"] == "text-embedding-3-small"
    rows = [{"index": at, "embedding": [1.0, *[0.0] * 1535]} for at in range(len(request.body["input"]))]
    return Reply(body={"data": rows})


@pytest.fixture(scope="module")
def qdrant(textbook: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Qdrant, httpx2.Client]]:
    """The textbook in a Qdrant server, embedded by OpenAI: both are stand-ins, and what they were sent is known."""
    with stand_in_qdrant() as url, stand_in(_embed) as openai, stand_in((qdrant := Qdrant(url)).answer) as index:
        settings = build_settings(
            tmp_path_factory.mktemp("wired"),
            qdrant_url=index.url,
            askbook_embedder="openai",
            openai_api_key="sk-any",
            openai_base_url=f"{openai.url}/v1",
            askbook_answerer="extractive",
            askbook_reader="none",
        )
        asyncio.run(_ingest(settings, textbook))
        with serve(settings) as service, service.open_client() as client:
            yield qdrant, client


async def _ingest(settings: Settings, folder: Path) -> None:
    async with open_askbook(settings) as askbook:
        job = await askbook.jobs.submit(BOOK, str(folder), "incremental")
        job = await askbook.worker.run_job(job.job_id)
        assert job.status == "completed", job.error_message
        # What a server would search for by itself is there: on the wire is what was asked.
        for book_id, revision in await askbook.ledger.load_unsuggested():
            await askbook.ledger.save_suggestions(book_id, revision, [])


KEYWORD = {"type": "keyword"}
INTEGER = {"type": "integer", "lookup": True, "range": True}
INDEXED: dict[str, tuple[Kind, dict[str, Any]]] = {
    "book_id": (one_of(BOOK), {"type": "keyword", "is_tenant": True}),
    "module": (MODULE, KEYWORD),
    "chapter": (whole, INTEGER),
    "lesson": (whole, INTEGER),
    "hardware_tier": (TIER, INTEGER),
    "proficiency_level": (PROFICIENCY, KEYWORD),
    "layer": (LAYER, KEYWORD),
    "parent_doc_id": (any_uuid, KEYWORD),
    "content_hash": (sha256, KEYWORD),
    "source_file_hash": (sha256, KEYWORD),
}
SHOWN: dict[str, Kind] = {
    "text": text,
    "section_title": maybe(text),
    "source_file": one_of(*LESSONS),
    "chunk_index": whole,
    "total_chunks": counted,
    "prev_chunk_id": maybe(any_uuid),
    "next_chunk_id": maybe(any_uuid),
    "word_count": counted,
    "token_count": counted,
    "version": one_of(1),
    "created_at": utc_time,
    "updated_at": utc_time,
}
"""Read, not filtered by: no index."""


@pytest.mark.parametrize("name", INDEXED)
def test_indexed_payload(qdrant: tuple[Qdrant, httpx2.Client], name: str) -> None:
    kind, index = INDEXED[name]
    payloads = list(qdrant[0].points.values())
    assert len(payloads) == CHUNKS and all(kind(one[name]) for one in payloads)
    assert qdrant[0].indexes[name] == index


@pytest.mark.parametrize("name", SHOWN)
def test_shown_payload(qdrant: tuple[Qdrant, httpx2.Client], name: str) -> None:
    assert [one[name] for one in qdrant[0].points.values() if not SHOWN[name](one[name])] == []
    assert name not in qdrant[0].indexes


def test_the_other_contracts_names_in_the_payload(qdrant: tuple[Qdrant, httpx2.Client]) -> None:
    """What the first and the fifth call content, document_id, title, chapter and section."""
    payload = next(one for one in qdrant[0].points.values() if one["source_file"] == SHORT)
    assert payload["chunk_id"] and payload["url"].startswith("https://book.example.org/module-1-ros2/")
    assert "40 newtons" in payload["text"] and any_uuid(payload["parent_doc_id"])
    path = ["Physical AI", "Module 1: Ros2", "Chapter 1: Hands", "The gripper", "What a gripper does"]
    assert payload["heading_path"] == path and payload["heading"] == " › ".join(path)
    assert qdrant[0].indexes["url"] == {"type": "keyword", "prefix": True}
    assert qdrant[0].indexes["heading"] == {"type": "keyword", "prefix": True}


def test_vectors_of_openai_have_1536_numbers(qdrant: tuple[Qdrant, httpx2.Client]) -> None:
    dense = qdrant[0].created["vectors"]["dense"]
    assert (dense["size"], dense["distance"]) == (1536, "Cosine")
    assert {len(one) for one in qdrant[0].vectors.values()} == {1536}
    assert qdrant[0].vectors.keys() == qdrant[0].points.keys()


CONDITIONS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "book_id": ({}, {"key": "book_id", "match": {"value": BOOK}}),
    "hardware_tier": ({"hardware_tier_filter": 2}, {"key": "hardware_tier", "range": {"lte": 2.0}}),
    "module": ({"module_filter": "gazebo"}, {"key": "module", "match": {"value": "gazebo"}}),
    "chapter": ({"chapter_min": 1, "chapter_max": 3}, {"key": "chapter", "range": {"gte": 1.0, "lte": 3.0}}),
    "proficiency_level": (
        {"proficiency_levels": ["A2", "B1"]},
        {"key": "proficiency_level", "match": {"any": ["A2", "B1"]}},
    ),
    "parent_doc_id": (
        {"parent_doc_id": "6ba7b810-9dad-11d1-80b4-00c04fd430c8"},
        {"key": "parent_doc_id", "match": {"value": "6ba7b810-9dad-11d1-80b4-00c04fd430c8"}},
    ),
}


@pytest.mark.parametrize("name", CONDITIONS)
def test_filter_on_the_wire(qdrant: tuple[Qdrant, httpx2.Client], name: str) -> None:
    asked, condition = CONDITIONS[name]
    wire, client = qdrant
    before = len(wire.filters)
    search(client, **asked)
    sent = wire.filters[before:]
    assert sent and all(condition in must for must in sent)


# --- search ---------------------------------------------------------------------------------------

QUERIES: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]]]] = {
    "text": (
        [{"text": "arm"}, {"text": "x" * 1000}],
        [{"text": "ar"}, {"text": "x" * 1001}, {"text": None}, {"text": 7}],
    ),
    "hardware_tier_filter": (
        [{"hardware_tier_filter": 1}, {"hardware_tier_filter": 4}],
        [{"hardware_tier_filter": one} for one in (0, 5, "1", 1.5)],
    ),
    "module_filter": ([{"module_filter": "vla"}, {"module_filter": None}], [{"module_filter": "cooking"}]),
    "chapter_min": ([{"chapter_min": 0}, {"chapter_min": None}], [{"chapter_min": -1}, {"chapter_min": "2"}]),
    "chapter_max": (
        [{"chapter_min": 2, "chapter_max": 2}],
        [{"chapter_max": -1}, {"chapter_min": 2, "chapter_max": 1}],
    ),
    "lesson_filter": ([{"lesson_filter": 0}, {"lesson_filter": None}], [{"lesson_filter": -1}]),
    "proficiency_levels": (
        [{"proficiency_levels": ["A1", "C2"]}, {"proficiency_levels": None}],
        [{"proficiency_levels": ["D1"]}, {"proficiency_levels": "A1"}],
    ),
    "layer_filter": ([{"layer_filter": "L4"}, {"layer_filter": None}], [{"layer_filter": "L5"}, {"layer_filter": 1}]),
    "parent_doc_id": (
        [{"parent_doc_id": "6ba7b810-9dad-11d1-80b4-00c04fd430c8"}, {"parent_doc_id": None}],
        [{"parent_doc_id": "7"}],
    ),
    "limit": ([{"limit": 1}, {"limit": 20}], [{"limit": one} for one in (0, 21, 2.5, "5")]),
}


@pytest.mark.parametrize("name", QUERIES)
def test_query(client: httpx2.Client, name: str) -> None:
    good, bad = QUERIES[name]
    for body in good:
        search(client, **body)
    for body in bad:
        response = client.post("/search", json={"text": "step of the arm", **body})
        assert (response.status_code, response.json()["error"]) == (400, "validation_error"), body


def test_the_book_may_be_left_out_where_there_is_one(client: httpx2.Client) -> None:
    assert search(client)["book_id"] == search(client, book_id=BOOK)["book_id"] == BOOK
    assert client.post("/search", json={"text": "arm", "book_id": "cooking"}).status_code == 404
    assert client.post("/search", json={"text": "arm", "book_id": "a book"}).status_code == 400


def test_five_results_of_tier_one_unless_asked_otherwise(client: httpx2.Client) -> None:
    told = search(client, "checked in a step")
    assert (len(told["results"]), told["hardware_tier_filter"]) == (5, 1)
    assert {one["hardware_tier"] for one in told["results"]} == {1}


@pytest.mark.parametrize("tier", [1, 2, 3, 4])
def test_nothing_above_the_readers_tier(client: httpx2.Client, tier: int) -> None:
    told = search(client, "what it does", hardware_tier_filter=tier, limit=20)
    assert {one["hardware_tier"] for one in told["results"]} == set(range(1, tier + 1))


def test_filters_hold_together(client: httpx2.Client) -> None:
    """All of them: each alone lets more through."""
    both = {"module_filter": "gazebo", "proficiency_levels": ["A2", "C1"], "hardware_tier_filter": 4, "limit": 20}
    told = search(client, "what it does", **both)
    assert {one["source_file"] for one in told["results"]} == {"module-2-simulation/chapter-2-senses/01-lidar.md"}
    wider = search(client, "what it does", **both | {"module_filter": None})
    assert {one["proficiency_level"] for one in wider["results"]} == {"A2", "C1"}
    assert {one["layer"] for one in search(client, layer_filter="L2", limit=20)["results"]} == {"L2"}
    assert {one["lesson"] for one in search(client, lesson_filter=3, limit=20)["results"]} == {3}
    chapters = search(client, "what it does", chapter_min=2, chapter_max=3, hardware_tier_filter=4, limit=20)
    assert {one["chapter"] for one in chapters["results"]} == {2, 3}


def test_one_lesson_alone(client: httpx2.Client, lessons: dict[str, list[dict[str, Any]]]) -> None:
    parent = lessons[LONG][0]["metadata"]["parent_doc_id"]
    told = search(client, parent_doc_id=parent, limit=20)
    assert {one["parent_doc_id"] for one in told["results"]} == {parent} and told["total_found"] == 5


RESULT: dict[str, Kind] = {
    "text": text,
    "score": share,
    "source_file": one_of(*LESSONS),
    "section_title": maybe(text),
    "module": MODULE,
    "chapter": whole,
    "lesson": whole,
    "hardware_tier": TIER,
    "proficiency_level": PROFICIENCY,
    "layer": LAYER,
    "chunk_index": whole,
    "total_chunks": counted,
    "parent_doc_id": any_uuid,
    "prev_chunk_id": maybe(any_uuid),
    "next_chunk_id": maybe(any_uuid),
    "content_hash": sha256,
}
RESPONSE: dict[str, Kind] = {
    "query": one_of("step of the arm"),
    "results": many(table),
    "total_found": counted,
    "hardware_tier_filter": one_of(4),
    "module_filter": one_of("ros2"),
    "book_id": one_of(BOOK),
}


@pytest.fixture(scope="module")
def results(client: httpx2.Client) -> dict[str, Any]:
    return search(client, hardware_tier_filter=4, limit=20)


@pytest.mark.parametrize("name", RESULT)
def test_result(results: dict[str, Any], name: str) -> None:
    assert len(results["results"]) == CHUNKS
    assert [one[name] for one in results["results"] if not RESULT[name](one[name])] == []


@pytest.mark.parametrize("name", RESPONSE)
def test_response(client: httpx2.Client, name: str) -> None:
    told = search(client, hardware_tier_filter=4, module_filter="ros2")
    assert RESPONSE[name](told[name])


def test_results_are_in_the_order_of_their_scores(results: dict[str, Any]) -> None:
    scores = [one["score"] for one in results["results"]]
    assert scores == sorted(scores, reverse=True) and scores[0] > scores[-1]


def test_all_that_match_are_counted(client: httpx2.Client, results: dict[str, Any]) -> None:
    assert results["total_found"] == search(client, hardware_tier_filter=4, limit=1)["total_found"] == CHUNKS
    assert search(client)["module_filter"] is None


# --- ingestion ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Shelf:
    """A server with a folder of its own to change."""

    client: httpx2.Client
    folder: Path

    def ingest(self, mode: str = "incremental") -> dict[str, Any]:
        sent = self.client.post("/ingestion/trigger", json={"mode": mode})
        assert sent.status_code == 202, sent.text
        deadline = time.monotonic() + 30
        while (job := self.load_job(sent.json()["job_id"]))["status"] in ("queued", "running"):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        return job

    def load_job(self, job_id: int) -> dict[str, Any]:
        return self.client.get(f"/ingestion/status/{job_id}").json()

    @property
    def state(self) -> dict[str, Any]:
        [state] = self.client.get("/ingestion/status", params={"records": True}).json()["states"]
        return state


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shelf]:
    place = tmp_path_factory.mktemp("shelf")
    folder = write_textbook(place / "textbook")
    settings = build_settings(place / "home", askbook_embedder="none", askbook_reader="none")
    asyncio.run(_ingest(settings, folder))
    with serve(settings) as service, service.open_client() as client:
        yield Shelf(client, folder)


@pytest.fixture
def shelf(opened: Shelf) -> Iterator[Shelf]:
    """As it was, for each test."""
    yield opened
    shutil.rmtree(opened.folder, ignore_errors=True)
    write_textbook(opened.folder)
    opened.ingest()


STATE: dict[str, Kind] = {
    "book_id": one_of(BOOK),
    "collection_name": one_of("askbook"),
    "records": table,
    "last_full_ingest": nothing,
    "last_incremental_update": utc_time,
    "total_chunks": one_of(CHUNKS),
}
RECORD: dict[str, Kind] = {
    "source_file": one_of(*LESSONS),
    "file_hash": sha256,
    "chunk_ids": many(any_uuid),
    "chunk_count": counted,
    "ingested_at": utc_time,
    "book_id": one_of(BOOK),
    "module": MODULE,
    "chapter": counted,
    "lesson": counted,
}
JOB: dict[str, Kind] = {
    "job_id": counted,
    "book_id": one_of(BOOK),
    "mode": one_of("incremental", "full", "recreate"),
    "status": one_of("queued", "running", "completed", "failed"),
    "files_processed": whole,
    "files_skipped": whole,
    "chunks_created": whole,
    "chunks_deleted": whole,
    "started_at": utc_time,
    "completed_at": utc_time,
    "duration_seconds": whole,
    "error_message": nothing,
}


@pytest.fixture(scope="module")
def state(client: httpx2.Client) -> dict[str, Any]:
    [state] = client.get("/ingestion/status", params={"records": True}).json()["states"]
    return state


@pytest.mark.parametrize("name", STATE)
def test_state(state: dict[str, Any], name: str) -> None:
    assert STATE[name](state[name])


@pytest.mark.parametrize("name", RECORD)
def test_record(state: dict[str, Any], name: str) -> None:
    assert state["records"].keys() == LESSONS.keys()
    assert [one[name] for one in state["records"].values() if not RECORD[name](one[name])] == []


@pytest.mark.parametrize("name", JOB)
def test_job(client: httpx2.Client, name: str) -> None:
    *_, first = client.get("/ingestion/status").json()["jobs"]
    assert JOB[name](first[name])


def test_the_state_adds_up_and_all_of_it_is_indexed(
    client: httpx2.Client, state: dict[str, Any], lessons: dict[str, list[dict[str, Any]]], textbook: Path
) -> None:
    assert state["total_chunks"] == sum(one["chunk_count"] for one in state["records"].values())
    for file, record in state["records"].items():
        assert record["chunk_ids"] == [one["id"] for one in lessons[file]]
        assert (record["source_file"], record["chunk_count"]) == (file, len(lessons[file]))
        assert record["file_hash"] == hashlib.sha256((textbook / file).read_bytes()).hexdigest()
    found = search(client, hardware_tier_filter=4, limit=20)["results"]
    assert {one["chunk_id"] for one in found} == {one for r in state["records"].values() for one in r["chunk_ids"]}


def test_a_job_counts_every_file_once(shelf: Shelf) -> None:
    (shelf.folder / SHORT).write_text(LESSONS[SHORT].replace("40 newtons", "50 newtons"))
    job = shelf.ingest()
    assert (job["status"], job["mode"], job["error_message"]) == ("completed", "incremental", None)
    assert (job["files_processed"], job["files_skipped"], job["files_total"]) == (1, FILES - 1, FILES)
    assert (job["chunks_created"], job["chunks_deleted"]) == (1, 1)
    assert job["started_at"] <= job["completed_at"]


def test_a_job_is_queued_then_done_and_the_full_one_is_stamped(shelf: Shelf) -> None:
    sent = shelf.client.post("/ingestion/trigger", json={"mode": "full"}).json()
    assert sent["status"] in ("queued", "running") and sent["completed_at"] is None
    job = shelf.ingest("full")
    assert (job["status"], job["files_processed"], job["files_skipped"]) == ("completed", FILES, 0)
    assert utc_time(job["completed_at"]) and utc_time(shelf.state["last_full_ingest"])


def test_a_job_that_cannot_be_done_fails_and_says_why(shelf: Shelf) -> None:
    shutil.rmtree(shelf.folder)
    job = shelf.ingest()
    assert job["status"] == "failed" and text(job["error_message"]) and str(shelf.folder) not in job["error_message"]
    assert utc_time(job["completed_at"]) and job["chunks_created"] == job["chunks_deleted"] == 0
    assert shelf.state["total_chunks"] == CHUNKS, "readers keep the book"


def test_what_changed_is_told_before_it_is_done(shelf: Shelf) -> None:
    (shelf.folder / "module-4-vla/chapter-4-plans/03-new.md").write_text("# New\n\nA new page about plans.\n")
    (shelf.folder / MIDDLE).write_text(LESSONS[MIDDLE] + "\nOne more line about the radar.\n")
    (shelf.folder / SHORT).unlink()
    told = shelf.client.get("/ingestion/changes").json()
    assert (told["new_files"], told["modified_files"]) == (["module-4-vla/chapter-4-plans/03-new.md"], [MIDDLE])
    assert told["deleted_files"] == [SHORT]


def test_old_chunks_go_and_the_chain_stays_whole(shelf: Shelf) -> None:
    before = shelf.state["records"][LONG]
    (shelf.folder / LONG).write_text(LESSONS[LONG].replace("The wrist of the arm is checked in step 7", "Nobody looks"))
    job = shelf.ingest()
    after = shelf.state["records"][LONG]
    assert (job["chunks_created"], job["chunks_deleted"]) == (1, 1)
    assert [old == new for old, new in zip(before["chunk_ids"], after["chunk_ids"], strict=True)].count(False) == 1
    assert before["file_hash"] != after["file_hash"]
    ids = after["chunk_ids"]
    chunks = load_lesson(shelf.client, LONG)
    assert [one["metadata"]["prev_chunk_id"] for one in chunks] == [None, *ids[:-1]]
    assert [one["metadata"]["next_chunk_id"] for one in chunks] == [*ids[1:], None]
    [gone] = set(before["chunk_ids"]) - set(ids)
    assert shelf.client.get(f"/context/{gone}").status_code == 404


def test_a_job_outlives_the_process_that_ran_it(client: httpx2.Client) -> None:
    """The textbook was ingested before this server was started."""
    *_, job = client.get("/ingestion/status").json()["jobs"]
    assert (job["status"], client.get(f"/ingestion/status/{job['job_id']}").json()) == ("completed", job)


def test_ids_stay_where_nothing_changed(shelf: Shelf, state: dict[str, Any]) -> None:
    """The same text, ingested elsewhere and embedded by nobody."""
    ids = {file: one["chunk_ids"] for file, one in state["records"].items()}
    assert {file: one["chunk_ids"] for file, one in shelf.state["records"].items()} == ids
    shelf.ingest("full")
    assert {file: one["chunk_ids"] for file, one in shelf.state["records"].items()} == ids
