"""`askbook worker` in a process of its own, on a real PostgreSQL and a stand-in for a Qdrant server."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from serving import ASKBOOK, build_environment

from api.service import BOOK, build_settings, open_client, wait_until
from api.service import ingest as ingest_alone
from askbook.domain import Job
from askbook.wiring import open_askbook, open_store
from databases import fresh_postgres
from index.qdrant_stand_in import stand_in_qdrant
from index.scripted_server import Received, Reply, stand_in


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "robots"
    folder.mkdir()
    for number in range(5):
        (folder / f"{number}.md").write_text(f"# Part {number}\n\nPart {number} turns {number} times.\n")
    return folder


@pytest.fixture
def qdrant_url() -> Iterator[str]:
    with stand_in_qdrant() as url:
        yield url


def test_it_says_what_it_needs(tmp_path: Path) -> None:
    environment = build_environment(tmp_path, QDRANT_URL="http://127.0.0.1:1")
    done = subprocess.run([*ASKBOOK, "worker"], env=environment, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (1, "")
    assert "DATABASE_URL and QDRANT_URL" in " ".join(done.stderr.split())


async def test_stopped_it_hands_back_what_it_had_begun_and_another_ends_it(
    tmp_path: Path, folder: Path, qdrant_url: str, postgres_url: str
) -> None:
    asleep = True

    def embed(_: int, request: Received) -> Reply:
        rows = [{"index": at, "embedding": [1.0, float(at)]} for at in range(len(request.body["input"]))]
        return Reply(body={"data": rows}, delay=30.0 if asleep and len(rows) > 1 else 0.0)

    with stand_in(embed) as embeddings:
        named = {
            "DATABASE_URL": await fresh_postgres(postgres_url),
            "QDRANT_URL": qdrant_url,
            "ASKBOOK_EMBEDDER": "openai",
            "OPENAI_API_KEY": "sk-x",
            "OPENAI_BASE_URL": f"{embeddings.url}/v1",
            "OPENAI_EMBEDDING_MODEL": "two",
        }
        environment = build_environment(tmp_path / "home", **named)
        settings = build_settings(tmp_path / "home", **{name.lower(): value for name, value in named.items()})

        async def look() -> Job:
            async with open_store(settings) as store:
                return (await store.jobs.load_all())[0]

        async with open_askbook(settings) as askbook:
            await askbook.jobs.submit(BOOK, str(folder), "incremental")
        for status in ("queued", "completed"):
            with subprocess.Popen([*ASKBOOK, "worker"], env=environment, stderr=subprocess.PIPE, text=True) as worker:
                if asleep:
                    wait_until(lambda: any(len(sent.body["input"]) > 1 for sent in embeddings.received), 60)
                else:
                    while (await look()).status != "completed":
                        assert worker.poll() is None
                        time.sleep(0.2)
                worker.send_signal(signal.SIGTERM)
                started = time.monotonic()
                assert worker.wait(20) == 0
                assert time.monotonic() - started < 10
                assert worker.stderr is not None and "what it had begun goes back" in worker.stderr.read()
            job = await look()
            assert job.status == status
            asleep = False
        assert (job.files_skipped, job.chunks_embedded) == (5, 5)


def test_a_server_that_does_not_ingest_leaves_jobs_to_workers(tmp_path: Path, folder: Path) -> None:
    import asyncio

    settings = build_settings(tmp_path / "home", askbook_embedder="none")
    asyncio.run(ingest_alone(settings, folder))
    with open_client(settings.model_copy(update={"askbook_worker": False})) as client:
        job_id = client.post("/ingestion/trigger", json={}).json()["job_id"]
        time.sleep(1)
        assert client.get(f"/ingestion/status/{job_id}").json()["status"] == "queued"
