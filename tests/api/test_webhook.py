"""GitHub's webhook: signed, taken once, and all that it does is to have the folder read again."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from httpx2 import Response

from answer.robots import BOOK, LESSONS, write_lessons
from api.service import build_settings, ingest, open_client, wait_until
from figures import Figure

SECRET = "whsec-5f1b"
PUSH = {"ref": "refs/heads/main", "repository": {"default_branch": "main", "clone_url": "https://evil.example/x.git"}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_lessons(tmp_path / "robots", LESSONS)


@pytest.fixture
def settings(folder: Path, tmp_path: Path) -> Any:
    settings = build_settings(tmp_path / "home", askbook_embedder="none", askbook_webhook_secret=SECRET)
    asyncio.run(ingest(settings, folder))
    return settings


def deliver(
    client: TestClient, delivery: str, payload: Any = PUSH, event: str = "push", secret: str = SECRET, book: str = BOOK
) -> Response:
    body = payload if isinstance(payload, bytes) else json.dumps({**payload, "after": delivery}).encode()
    signature = f"sha256={hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()}"
    headers = {"X-Hub-Signature-256": signature, "X-GitHub-Delivery": delivery, "X-GitHub-Event": event}
    return client.post(f"/ingestion/webhook/github?book_id={book}", content=body, headers=headers)


def test_a_push_has_the_folder_read_again(settings: Any, folder: Path) -> None:
    with open_client(settings) as client:
        (folder / "07-horn.md").write_text("# The horn\n\nThe horn sounds when the robot drives backwards.\n")
        response = deliver(client, "d-1")
        assert (response.status_code, response.json()["status"]) == (202, "accepted")
        [job_id] = response.json()["job_ids"]
        wait_until(lambda: client.get(f"/ingestion/status/{job_id}").json()["status"] == "completed")
        assert "horn" in client.post("/search", json={"text": "horn sounds"}).json()["results"][0]["text"]


def test_a_delivery_is_taken_once_also_after_a_restart(settings: Any) -> None:
    with open_client(settings) as client:
        assert deliver(client, "d-1").json()["status"] == "accepted"
        assert deliver(client, "d-1").json() == {
            "status": "repeated",
            "why": "this delivery was taken before",
            "job_ids": [],
        }
    with open_client(settings) as client:
        assert deliver(client, "d-1").json()["status"] == "repeated"
        assert deliver(client, "d-2").json()["status"] == "accepted"


def test_what_was_recorded_cannot_be_sent_again_under_another_id(settings: Any) -> None:
    recorded = json.dumps(PUSH).encode()
    with open_client(settings) as client:
        assert deliver(client, "d-1", recorded).json()["status"] == "accepted"
        assert deliver(client, "d-2", recorded).json()["status"] == "repeated"
        assert deliver(client, "d-3").json()["status"] == "accepted"


def test_a_wrong_signature_is_401(settings: Any) -> None:
    with open_client(settings) as client:
        assert deliver(client, "d-1", secret="another").status_code == 401
        unsigned = client.post("/ingestion/webhook/github", json=PUSH, headers={"X-GitHub-Delivery": "d-1"})
        assert (unsigned.status_code, unsigned.json()["error"]) == (401, "authentication_error")
        # Nothing was taken.
        assert deliver(client, "d-1").json()["status"] == "accepted"


def test_without_a_secret_every_signature_is_wrong(tmp_path: Path, folder: Path) -> None:
    settings = build_settings(tmp_path / "open", askbook_embedder="none")
    asyncio.run(ingest(settings, folder))
    with open_client(settings) as client:
        assert deliver(client, "d-1", secret="").status_code == 401


OTHERS: dict[str, tuple[Any, str, str]] = {
    "ping": ({"zen": "x"}, "ping", "pong"),
    "another event": ({"action": "opened"}, "issues", "ignored"),
    "another branch": ({**PUSH, "ref": "refs/heads/draft"}, "push", "ignored"),
}


@pytest.mark.parametrize(("payload", "event", "status"), OTHERS.values(), ids=OTHERS)
def test_what_changes_nothing(settings: Any, payload: Any, event: str, status: str) -> None:
    with open_client(settings) as client:
        response = deliver(client, "d-1", payload, event)
        assert (response.status_code, response.json()["status"], response.json()["job_ids"]) == (202, status, [])


def test_what_cannot_be_read(settings: Any) -> None:
    with open_client(settings) as client:
        assert deliver(client, "d-1", b"{oops").status_code == 400
        assert deliver(client, "d-1", b"[" * 100_000).status_code == 400
        assert deliver(client, "").status_code == 400
        assert deliver(client, "d-1", book="physics").status_code == 404
        assert deliver(client, "d-1").json()["status"] == "accepted"


def test_the_configured_command_runs_first(settings: Any, folder: Path, tmp_path: Path) -> None:
    script = tmp_path / "pull.sh"
    script.write_text("#!/bin/sh\nprintf '# The horn\\n\\nThe horn is loud and red.\\n' > 07-horn.md\n")
    script.chmod(0o755)
    with open_client(settings.model_copy(update={"askbook_refresh_command": str(script)})) as client:
        [job_id] = deliver(client, "d-1").json()["job_ids"]
        wait_until(lambda: client.get(f"/ingestion/status/{job_id}").json()["status"] == "completed")
        assert (folder / "07-horn.md").exists()
        assert client.post("/search", json={"text": "horn is loud"}).json()["results"]


def test_a_command_that_fails_is_said(settings: Any, folder: Path) -> None:
    command = "sh -c 'echo cannot pull >&2; exit 3'"
    with open_client(settings.model_copy(update={"askbook_refresh_command": command})) as client:
        [job_id] = deliver(client, "d-1").json()["job_ids"]
        wait_until(lambda: client.get(f"/ingestion/status/{job_id}").json()["status"] == "failed")
        job = client.get(f"/ingestion/status/{job_id}").json()
        assert job["error_message"] == "the refresh command failed with 3: cannot pull"
        assert str(folder) not in json.dumps(job)


@pytest.mark.row("F6")
def test_twenty_triggers_at_once_are_one_job(settings: Any, figure: Figure) -> None:
    """F6, over HTTP."""
    slow = settings.model_copy(update={"askbook_refresh_command": "sleep 2"})
    with open_client(slow) as client, ThreadPoolExecutor(20) as pool:
        replies = list(pool.map(lambda _: client.post("/ingestion/trigger", json={"mode": "full"}), range(20)))
        assert {reply.status_code for reply in replies} == {202}
        ids = {reply.json()["job_id"] for reply in replies}
        for job_id in ids:
            wait_until(lambda job_id=job_id: client.get(f"/ingestion/status/{job_id}").json()["status"] == "completed")
        figure(f"F6: 20 triggers, {len(ids)} job", cases=20)
        assert len(ids) == 1
