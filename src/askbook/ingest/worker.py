"""Takes jobs and runs them, and keeps their rows in the jobs table true."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import time
import uuid
from collections.abc import AsyncIterator, Callable
from dataclasses import asdict, dataclass, field
from datetime import timedelta

from askbook.domain import Job
from askbook.errors import AskbookError
from askbook.index.embedders.base import Embedder
from askbook.index.vectors.base import VectorIndex
from askbook.ingest.pipeline import SIZES, Pipeline, Sizes, Step, Tally
from askbook.store.jobs import SILENCE, Jobs
from askbook.store.ledger import Ledger

BEAT_SECONDS = 5.0
SAVE_SECONDS = 0.5

PHASE: dict[Step, str] = {
    "reading": "reading",
    "planned": "writing",
    "points noted": "writing",
    "points half written": "writing",
    "points written": "writing",
    "committed": "writing",
    "embedding": "embedding",
    "embedded": "embedding",
    "vectors written": "embedding",
    "vectors committed": "embedding",
    "forgetting": "forgetting",
    "points forgotten": "forgetting",
    "done": "forgetting",
}

Watcher = Callable[[Job, Step, Tally], None]


def watch_nothing(_job: Job, _step: Step, _tally: Tally) -> None:
    pass


@dataclass
class Worker:
    jobs: Jobs
    ledger: Ledger
    index: VectorIndex
    embedder: Embedder | None
    silence: timedelta = SILENCE
    """How long a running job must have been silent before it is taken over; 0 where this process owns the data alone."""
    sizes: Sizes = SIZES
    hands_back: bool = False
    """Whether a job that is stopped waits for the next process, or has failed until somebody ingests again."""
    owner: str = field(default_factory=lambda: f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}")

    running: dict[int, asyncio.Task[Job]] = field(default_factory=dict[int, "asyncio.Task[Job]"])

    async def run_job(self, job_id: int, watch: Watcher = watch_nothing) -> Job:
        """Run a job to its end, unless another worker has it. The job tells how it went."""
        if job_id in self.running:
            return await asyncio.shield(self.running[job_id])
        task = self.running[job_id] = asyncio.create_task(self._run(job_id, watch))
        try:
            return await task
        finally:
            del self.running[job_id]

    async def _run(self, job_id: int, watch: Watcher) -> Job:
        if not await self.jobs.claim(job_id, self.owner, self.silence):
            return await self.jobs.load(job_id)
        job = await self.jobs.load(job_id)
        try:
            async with self._heartbeat(job_id):
                pipeline = Pipeline(self.ledger, self.index, self.embedder, self._announcer(job, watch), self.sizes)
                tally = await pipeline.run(job)
            await self._save(job_id, "completed", tally)
            await self.jobs.complete(job_id)
        except asyncio.CancelledError:
            await asyncio.shield(self._leave(job_id))
            raise
        except AskbookError as error:
            await self.jobs.fail(job_id, " ".join(filter(None, (f"{error.message}.", error.hint))))
        except Exception as error:
            await self.jobs.fail(job_id, f"unexpected {type(error).__name__}: {error}")
            raise
        return await self.jobs.load(job_id)

    async def _leave(self, job_id: int) -> None:
        if self.hands_back:
            await self.jobs.hand_back(job_id)
        else:
            await self.jobs.fail(job_id, "stopped; ingest again, and it goes on from there")

    def _announcer(self, job: Job, watch: Watcher):
        saved_at, saved_phase = 0.0, ""

        async def announce(step: Step, tally: Tally) -> None:
            nonlocal saved_at, saved_phase
            phase = PHASE[step]
            if phase != saved_phase or time.monotonic() - saved_at > SAVE_SECONDS:
                await self._save(job.job_id, phase, tally)
                saved_at, saved_phase = time.monotonic(), phase
            watch(job, step, tally)

        return announce

    async def _save(self, job_id: int, phase: str, tally: Tally) -> None:
        counts = asdict(tally)
        problems = counts.pop("problems")
        await self.jobs.progress(job_id, phase, counts, problems)

    @contextlib.asynccontextmanager
    async def _heartbeat(self, job_id: int) -> AsyncIterator[None]:
        async def beat() -> None:
            while True:
                await asyncio.sleep(BEAT_SECONDS)
                await self.jobs.beat(job_id)

        beating = asyncio.create_task(beat())
        try:
            yield
        finally:
            beating.cancel()
            with contextlib.suppress(asyncio.CancelledError, AskbookError):
                await beating
