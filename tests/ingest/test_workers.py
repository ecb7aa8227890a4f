"""Many workers, one ingestion: on a real PostgreSQL, and a stand-in for a Qdrant server."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from world import State, dump_state, ingest, settings_for

from askbook.domain import Job
from askbook.ingest.verify import verify_book
from askbook.settings import Settings
from askbook.wiring import open_askbook
from book.shelf import SHARED
from databases import fresh_postgres

HERE = Path(__file__).parent
MDN = SHARED / "corpora" / "mdn.tar.gz"


@contextlib.contextmanager
def qdrant_process() -> Iterator[str]:
    """The stand-in in a process of its own, as a server would be."""
    script = HERE.parent / "index" / "qdrant_stand_in.py"
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.kill()


@dataclass
class Fleet:
    """Engines of their own, and workers on them."""

    settings: Settings
    environment: dict[str, str]

    async def submit(self, folder: Path) -> int:
        async with open_askbook(self.settings) as askbook:
            return (await askbook.jobs.submit("book", str(folder), "incremental")).job_id

    async def inspect(self, job_id: int) -> tuple[Job, State]:
        """The job, and all that is stored when it is done; folder, ledger and index agree."""
        async with open_askbook(self.settings) as askbook:
            verdict = await verify_book("book", askbook.ledger, askbook.index, embeds=True)
            assert verdict.differences == ()
            return await askbook.jobs.load(job_id), await dump_state(askbook, "book")

    def work(self, *fates: tuple[str, ...]) -> list[dict[str, Any]]:
        """A worker for each fate, all told to begin at once; what those say that came to their end undisturbed."""
        script = str(HERE / "worker_process.py")
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        commands = [[sys.executable, script, "2", *fate] for fate in fates]
        workers: list[Any] = [subprocess.Popen(command, env=self.environment, **pipes) for command in commands]
        for worker in workers:
            assert worker.stdout.readline() == "ready\n"
        for worker in workers:
            worker.stdin.write("go\n")
            worker.stdin.flush()
        said = [worker.communicate(timeout=3600)[0] for worker, fate in zip(workers, fates, strict=True) if not fate]
        for worker, fate in zip(workers, fates, strict=True):
            worker.send_signal(signal.SIGCONT)
            assert worker.wait(60) == (-signal.SIGKILL if "SIGKILL" in fate else 0)
        return [json.loads(line) for line in said]


async def build_fleet(tmp_path: Path, postgres_url: str, qdrant_url: str, small: bool) -> Fleet:
    database_url = await fresh_postgres(postgres_url)
    changes = {"DATABASE_URL": database_url, "QDRANT_URL": qdrant_url, "ASKBOOK_EMBEDDER_THREADS": "1"}
    environment = os.environ | changes | {"ASKBOOK_HOME": str(tmp_path / "home")}
    if small:
        environment["SMALL_SHARDS"] = "1"
    lowered = {name.lower(): value for name, value in changes.items()}
    return Fleet(settings_for(tmp_path / "home", **lowered), environment)


def write_lessons(folder: Path, count: int) -> Path:
    """Short ones, some of them alike."""
    for number in range(count):
        file = folder / f"chapter-{1 + number // 10}-part" / f"{number:02}-lesson.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"# Lesson {number}\n\nPart {number} turns {number * 7} times, then rests.\n")
    return folder


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def done_alone(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, State]:
    """A folder, and what one process makes of it, with everything inside it."""
    root = tmp_path_factory.mktemp("alone")
    folder = write_lessons(root / "book", 60)
    async with open_askbook(settings_for(root / "home")) as askbook:
        assert (await ingest(askbook, folder)).status == "completed"
        return folder, await dump_state(askbook, "book")


@pytest.mark.row("F1")
@pytest.mark.parametrize(
    "point",
    [
        "points written",
        "embedded",
        pytest.param("committed", marks=pytest.mark.torture),
        pytest.param("vectors written", marks=pytest.mark.torture),
    ],
)
async def test_three_workers_of_which_one_is_killed_do_what_one_alone_does(
    point: str, done_alone: tuple[Path, State], tmp_path: Path, postgres_url: str
) -> None:
    folder, clean = done_alone
    with qdrant_process() as url:
        fleet = await build_fleet(tmp_path, postgres_url, url, small=True)
        job_id = await fleet.submit(folder)
        living = fleet.work((), (), (point, "2", "SIGKILL"))
        job, state = await fleet.inspect(job_id)
    assert (job.status, job.files_processed, job.files_total) == ("completed", 60, 60)
    assert job.chunks_created == job.chunks_embedded == job.chunks_to_embed == len(state.chunks) == 60
    assert state.differs_from(clean) == []
    # Both that lived took part, and one of them finished; what the dead one had under way is all that was done twice.
    assert all(worker["committed"] for worker in living)
    assert sum(worker["finished"] for worker in living) == 1
    assert sum(worker["texts"] for worker in living) <= 60


@pytest.mark.row("F1")
@pytest.mark.torture
@pytest.mark.parametrize("point", ["points half written", "points written", "embedded"])
async def test_a_worker_that_slept_while_others_did_its_work_does_no_harm(
    point: str, done_alone: tuple[Path, State], tmp_path: Path, postgres_url: str
) -> None:
    folder, clean = done_alone
    with qdrant_process() as url:
        fleet = await build_fleet(tmp_path, postgres_url, url, small=True)
        await fleet.submit(folder)
        fleet.work((), (), (point, "2", "SIGSTOP"))
        # What it wrote when it woke is known, and the next job mends it.
        job_id = await fleet.submit(folder)
        fleet.work(())
        job, state = await fleet.inspect(job_id)
    assert (job.status, job.files_skipped) == ("completed", 60)
    assert state.differs_from(clean) == []


@pytest.mark.torture
@pytest.mark.skipif(not MDN.is_file(), reason="the corpora are not here: they lie in ../shared, beside the repository")
@pytest.mark.timeout(7200)
async def test_a_thousand_files_of_mdn(tmp_path: Path, postgres_url: str) -> None:
    folder = tmp_path / "book"
    with tarfile.open(MDN) as archive:
        pages = sorted((one for one in archive if one.name.endswith(".md")), key=lambda one: one.name)
        for page in random.Random(7).sample(pages, 1000):
            archive.extract(page, folder, filter="data")
    seconds: dict[str, float] = {}
    states: list[State] = []
    for name, fates in {"one": [()], "three": [(), (), ("embedded", "4", "SIGKILL")]}.items():
        with qdrant_process() as url:
            fleet = await build_fleet(tmp_path, postgres_url, url, small=False)
            job_id = await fleet.submit(folder)
            started = time.monotonic()
            fleet.work(*fates)
            seconds[name] = time.monotonic() - started
            job, state = await fleet.inspect(job_id)
        assert (job.status, job.files_processed + job.files_skipped) == ("completed", job.files_total)
        assert job.chunks_embedded == len(state.chunks)
        states.append(state)
    assert states[0].differs_from(states[1]) == []
    print(
        f"\n1,000 files of MDN, {len(states[0].chunks)} chunks, {os.cpu_count()} cores: one worker "
        f"{seconds['one']:.0f} s; "
        f"three of which one was killed {seconds['three']:.0f} s, {seconds['one'] / seconds['three']:.2f} times as fast"
    )
