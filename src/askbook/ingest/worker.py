"""Takes jobs and runs them, alone or with other workers, and keeps their rows in the jobs table true."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from askbook.domain import Job
from askbook.errors import AskbookError, ShuttingDown
from askbook.index.embedders.base import Embedder
from askbook.index.vectors.base import VectorIndex
from askbook.ingest.pipeline import SIZES, Pipeline, Sizes, Step, Tally
from askbook.store.jobs import SILENCE, Jobs
from askbook.store.ledger import Ledger
from askbook.store.shards import ShardLost, Shards

BEATS = 6
"""How often a worker is heard of before it would count as silent."""
SAVE_SECONDS = 0.5

log = logging.getLogger("askbook.jobs")

Watcher = Callable[[Job, Step, Tally], None]


def watch_nothing(_job: Job, _step: Step, _tally: Tally) -> None:
    pass


@dataclass
class Worker:
    jobs: Jobs
    shards: Shards
    ledger: Ledger
    index: VectorIndex
    embedder: Embedder | None
    silence: timedelta = SILENCE
    """After how long a silence its work is taken over; 0 where this process alone owns the data."""
    shared: bool = False
    """Whether other machines work too: a job whose folder is not on this one is then left to them."""
    refresh: Callable[[Job], Awaitable[None]] | None = None
    """Called before a folder is read."""
    sizes: Sizes = SIZES
    hands_back: bool = False
    """Whether a job that is stopped waits for the next process, or has failed until somebody ingests again."""
    owner: str = field(default_factory=lambda: f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}")

    running: dict[int, asyncio.Task[Job]] = field(default_factory=dict[int, "asyncio.Task[Job]"])

    async def run_job(self, job_id: int, watch: Watcher = watch_nothing) -> Job:
        """Do of a job what nobody else does. The row tells how it went: while others are at it, it is still running."""
        if job_id in self.running:
            return await asyncio.shield(self.running[job_id])
        task = self.running[job_id] = asyncio.create_task(self._run(job_id, watch))
        try:
            return await task
        finally:
            del self.running[job_id]

    async def _run(self, job_id: int, watch: Watcher) -> Job:
        job = await self.jobs.load(job_id)
        here = not self.shared or Path(job.folder).is_dir()
        plans = here and await self.jobs.claim(job_id, self.owner, self.silence)
        job = await self.jobs.load(job_id)
        if job.status != "running":
            return job
        try:
            async with self._heartbeat(job_id):
                await self._work(job, plans, watch)
        except (asyncio.CancelledError, ShuttingDown):
            await asyncio.shield(self._leave(job_id))
            raise
        except ShardLost as error:
            log.warning("job %s: %s", job_id, error.message)
        except AskbookError as error:
            await self.jobs.fail(job_id, f"{error.message}. {error.hint}" if error.hint else error.message)
        except Exception as error:
            await self.jobs.fail(job_id, f"unexpected {type(error).__name__}: {error}")
            raise
        return await self.jobs.load(job_id)

    async def _work(self, job: Job, plans: bool, watch: Watcher) -> None:
        announce = self._announcer(job, watch)
        parts = (self.ledger, self.shards, self.index, self.embedder)
        pipeline = Pipeline(job, self.owner, *parts, announce, self.sizes)
        if plans:
            if self.refresh is not None:
                await self.refresh(job)
            await pipeline.plan()
        embeds = self.embedder is not None
        while shard := await self.shards.take(job.job_id, self.owner, self.silence, embeds):
            await pipeline.do(shard)
            about = {"job_id": job.job_id, "book_id": job.book_id, "shard": shard.number, "step": shard.step}
            log.info("shard done", extra=about | pipeline.tally.to_counts())

    async def _leave(self, job_id: int) -> None:
        if not await self.shards.leave(job_id, self.owner, self.silence):
            return
        if self.hands_back:
            await self.jobs.hand_back(job_id)
        else:
            await self.jobs.fail(job_id, "stopped; ingest again, and it goes on from there")

    def _announcer(self, job: Job, watch: Watcher) -> Callable[[Step, Tally], Awaitable[None]]:
        saved_at = 0.0

        async def announce(step: Step, tally: Tally) -> None:
            nonlocal saved_at
            if step == "reading" and time.monotonic() - saved_at > SAVE_SECONDS:
                await self.jobs.progress(job.job_id, "reading", tally.to_counts(), [])
                saved_at = time.monotonic()
            watch(job, step, tally)

        return announce

    @contextlib.asynccontextmanager
    async def _heartbeat(self, job_id: int) -> AsyncIterator[None]:
        async def beat() -> None:
            while True:
                await asyncio.sleep((self.silence or SILENCE).total_seconds() / BEATS)
                await self.shards.beat(job_id, self.owner)

        beating = asyncio.create_task(beat())
        try:
            yield
        finally:
            beating.cancel()
            with contextlib.suppress(asyncio.CancelledError, AskbookError):
                await beating
