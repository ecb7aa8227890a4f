"""Jobs beside a server that owns the data: the server does them, and this process watches."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from askbook.domain import Job
from askbook.index.vectors.served import ServedIndex
from askbook.ingest.pipeline import Tally
from askbook.ingest.worker import Watcher, Worker, watch_nothing
from askbook.store.schema import COUNTS

LOOK_SECONDS = 0.2


@dataclass
class ServedWorker(Worker):
    server: ServedIndex = field(kw_only=True)

    async def run_job(self, job_id: int, watch: Watcher = watch_nothing) -> Job:
        """Until it has ended; raises where the server ends first, and the job waits then for the next one."""
        await self.server.start_jobs()
        before = None
        while (job := await self.jobs.load(job_id)).status in ("queued", "running"):
            tally = Tally(**{name: getattr(job, name) for name in COUNTS})
            watch(job, "reading" if job.phase in ("queued", "reading") else "committed", tally)
            if job == before:
                await self.server.ping()
            before = job
            await asyncio.sleep(LOOK_SECONDS)
        return job
