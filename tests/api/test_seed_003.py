"""Seed 003's contract: search, context, lessons, info and ingestion, field by field, on both databases."""

from __future__ import annotations

import asyncio
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from answer.robots import BOOK, LESSONS, write_lessons
from api.service import build_settings, ingest, open_client

SEARCH_DEFAULTS = {
    "text": None,
    "hardware_tier_filter": 1,
    "module_filter": None,
    "chapter_min": None,
    "chapter_max": None,
    "lesson_filter": None,
    "proficiency_levels": None,
    "layer_filter": None,
    "parent_doc_id": None,
    "limit": 5,
}
RESULT_FIELDS = [
    "text",
    "score",
    "source_file",
    "section_title",
    "module",
    "chapter",
    "lesson",
    "hardware_tier",
    "proficiency_level",
    "layer",
    "chunk_index",
    "total_chunks",
    "parent_doc_id",
    "prev_chunk_id",
    "next_chunk_id",
    "content_hash",
]
RESPONSE_FIELDS = ["query", "results", "total_found", "hardware_tier_filter", "module_filter", "book_id"]
METADATA_FIELDS = [
    "book_id",
    "module",
    "chapter",
    "lesson",
    "section_title",
    "hardware_tier",
    "proficiency_level",
    "layer",
    "source_file",
    "parent_doc_id",
    "chunk_index",
    "total_chunks",
    "prev_chunk_id",
    "next_chunk_id",
    "content_hash",
    "source_file_hash",
    "version",
    "created_at",
    "updated_at",
]
JOB_FIELDS = [
    "job_id",
    "book_id",
    "mode",
    "status",
    "files_processed",
    "files_skipped",
    "chunks_created",
    "chunks_deleted",
    "started_at",
    "completed_at",
    "duration_seconds",
    "error_message",
]
STATE_FIELDS = ["book_id", "collection_name", "records", "last_full_ingest", "last_incremental_update", "total_chunks"]
RECORD_FIELDS = [
    "source_file",
    "file_hash",
    "chunk_ids",
    "chunk_count",
    "ingested_at",
    "book_id",
    "module",
    "chapter",
    "lesson",
]


def _find(client: TestClient, **body: Any) -> dict[str, Any]:
    response = client.post("/search", json={"text": "force of the gripper", **body})
    assert response.status_code == 200, response.text
    return response.json()


def test_a_search_has_every_field(client: TestClient) -> None:
    body = _find(client)
    assert all(name in body for name in RESPONSE_FIELDS)
    assert (body["query"], body["book_id"], body["hardware_tier_filter"]) == ("force of the gripper", BOOK, 1)
    assert body["total_found"] >= len(body["results"]) > 0
    for result in body["results"]:
        assert all(name in result for name in RESULT_FIELDS)
        assert 0 <= result["score"] <= 1
    scores = [result["score"] for result in body["results"]]
    assert scores == sorted(scores, reverse=True)
    assert "40 newtons" in body["results"][0]["text"]


def test_defaults_and_limits(client: TestClient) -> None:
    schema = client.get("/openapi.json").json()["components"]["schemas"]["SearchRequest"]
    fields = schema["properties"]
    assert schema["required"] == ["text"]
    assert {name: fields[name].get("default") for name in SEARCH_DEFAULTS} == SEARCH_DEFAULTS
    assert (fields["text"]["minLength"], fields["text"]["maxLength"]) == (3, 1000)
    assert (fields["limit"]["minimum"], fields["limit"]["maximum"]) == (1, 20)
    assert (fields["hardware_tier_filter"]["minimum"], fields["hardware_tier_filter"]["maximum"]) == (1, 4)


FILTERS: dict[str, dict[str, Any]] = {
    "tier": {"hardware_tier_filter": 4},
    "module": {"module_filter": "main"},
    "chapters": {"chapter_min": 0, "chapter_max": 20},
    "lesson": {"lesson_filter": 1},
    "levels": {"proficiency_levels": ["A2", "B1"]},
    "layer": {"layer_filter": "L1"},
    "limit": {"limit": 20},
    "threshold": {"threshold": 0.0},
    "keyword": {"mode": "keyword"},
    "dense": {"mode": "dense"},
    "heading": {"heading_prefix": "Robots"},
}


@pytest.mark.parametrize("filters", FILTERS.values(), ids=FILTERS)
def test_every_filter_is_taken(client: TestClient, filters: dict[str, Any]) -> None:
    assert _find(client, **filters)["total_found"] >= 0


def test_filters_hold(client: TestClient) -> None:
    assert {one["lesson"] for one in _find(client, lesson_filter=1)["results"]} == {1}
    assert _find(client, proficiency_levels=["C2"])["results"] == []
    assert len(_find(client, limit=1)["results"]) == 1
    lesson = _find(client)["results"][0]["parent_doc_id"]
    assert {one["parent_doc_id"] for one in _find(client, parent_doc_id=lesson)["results"]} == {lesson}


INVALID: dict[str, tuple[dict[str, Any], str]] = {
    "short": ({"text": "ab"}, "text must have at least 3 characters"),
    "long": ({"text": "x" * 1001}, "text must have at most 1000 characters"),
    "limit": ({"limit": 21}, "limit must be 20 or less"),
    "no limit": ({"limit": 0}, "limit must be 1 or more"),
    "tier": ({"hardware_tier_filter": 5}, "hardware_tier_filter must be 4 or less"),
    "level": ({"proficiency_levels": ["X"]}, "proficiency_levels.0 must be 'A1'"),
    "layer": ({"layer_filter": "L9"}, "layer_filter must be 'L1'"),
    "module": ({"module_filter": "ros2"}, "the module 'ros2' is not in this book"),
    "facet": ({"facets": {"mood": ["good"]}}, "the book robots has no facet 'mood'"),
    "range": ({"chapter_min": 3, "chapter_max": 1}, "the chapters end (1) before they begin (3)"),
    "number": ({"lesson_filter": 10**30}, "lesson_filter must be 1,000,000 or less"),
    "lesson id": ({"parent_doc_id": "x"}, "parent_doc_id must be a UUID"),
    "threshold": ({"threshold": 1.5}, "threshold must be 1 or less"),
}


@pytest.mark.parametrize(("body", "message"), INVALID.values(), ids=INVALID)
def test_what_is_wrong_is_said(client: TestClient, body: dict[str, Any], message: str) -> None:
    response = client.post("/search", json={"text": "force of the gripper", **body})
    assert (response.status_code, response.json()["error"]) == (400, "validation_error")
    assert response.json()["message"].startswith(message)


def test_context_and_lesson(client: TestClient) -> None:
    found = _find(client)["results"][0]

    context = client.get(f"/context/{found['chunk_id']}", params={"reach": 2}).json()
    assert found["chunk_id"] in [chunk["id"] for chunk in context["chunks"]]
    lesson = client.get(f"/lesson/{found['parent_doc_id']}").json()
    assert (lesson["book_id"], lesson["title"]) == (BOOK, "The gripper")
    places = [chunk["metadata"]["chunk_index"] for chunk in lesson["chunks"]]
    assert places == list(range(lesson["total_chunks"]))
    for chunk in lesson["chunks"]:
        assert set(METADATA_FIELDS) <= set(chunk["metadata"])
        assert chunk["word_count"] >= 1 and chunk["token_count"] >= 1 and chunk["char_count"] == len(chunk["text"])
        assert datetime.fromisoformat(chunk["metadata"]["created_at"])


@pytest.mark.parametrize("path", ["/context/", "/lesson/"])
def test_what_is_not_there(client: TestClient, path: str) -> None:
    assert client.get(f"{path}00000000-0000-0000-0000-000000000000").status_code == 404
    assert client.get(f"{path}no-uuid").status_code == 400


def test_info(client: TestClient) -> None:
    body = client.get("/info").json()
    [book] = body["books"]
    assert (book["book_id"], book["total_files"], book["unembedded_chunks"]) == (BOOK, len(LESSONS), 0)
    assert book["collection_name"] == "askbook"
    assert body["embedder"].startswith("all-MiniLM")


# --- ingestion ------------------------------------------------------------------------------------


def _wait_for(client: TestClient, job_id: int) -> dict[str, Any]:
    for _ in range(600):
        job = client.get(f"/ingestion/status/{job_id}").json()
        if job["status"] in ("completed", "failed"):
            return job
        time.sleep(0.05)
    raise AssertionError(f"job {job_id} does not end")


def test_a_job_through_the_api(tmp_path: Path) -> None:
    folder = write_lessons(tmp_path / "robots", LESSONS)
    settings = build_settings(tmp_path / "home", askbook_embedder="none")
    asyncio.run(ingest(settings, folder))
    with open_client(settings) as client:
        assert client.get("/ingestion/changes").json()["has_changes"] is False
        (folder / "01-gripper.md").write_text("# The gripper\n\nThe gripper holds with suction cups now.\n")
        (folder / "02-lidar.md").unlink()
        (folder / "07-horn.md").write_text("# The horn\n\nThe horn sounds when the robot drives backwards.\n")
        (folder / "03-battery.md").rename(folder / "03-accumulator.md")
        changes = client.get("/ingestion/changes").json()
        assert (changes["new_files"], changes["modified_files"]) == (["07-horn.md"], ["01-gripper.md"])
        assert (changes["deleted_files"], changes["renamed_files"]) == (["02-lidar.md"], ["03-accumulator.md"])

        response = client.post("/ingestion/trigger", json={"book_id": BOOK})
        assert response.status_code == 202
        job = _wait_for(client, response.json()["job_id"])
        assert all(name in job for name in JOB_FIELDS)
        assert (job["status"], job["mode"], job["progress"], job["book_id"]) == ("completed", "incremental", 1.0, BOOK)
        assert (job["files_processed"], job["files_total"]) == (3, 6)

        assert "suction" in client.post("/search", json={"text": "gripper suction"}).json()["results"][0]["text"]
        assert client.get("/ingestion/changes").json()["has_changes"] is False
        status = client.get("/ingestion/status", params={"records": True}).json()
        assert status["jobs"][0] == job
        [state] = status["states"]
        assert set(STATE_FIELDS) <= set(state)
        assert state["total_chunks"] == sum(one["chunk_count"] for one in state["records"].values())
        assert all(set(RECORD_FIELDS) <= set(one) for one in state["records"].values())


def test_modes(client: TestClient) -> None:
    schema = client.get("/openapi.json").json()["components"]["schemas"]["TriggerRequest"]["properties"]
    assert (schema["mode"]["enum"], schema["mode"]["default"]) == (["incremental", "full", "recreate"], "incremental")
    assert client.post("/ingestion/trigger", json={"mode": "sometimes"}).status_code == 400
    assert client.post("/ingestion/trigger", json={"book_id": "physics"}).status_code == 404
    assert client.get("/ingestion/status/2147483647").status_code == 404
    assert client.get("/ingestion/status/99999999999999").status_code == 400
