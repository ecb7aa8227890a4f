"""Ingestion inside the server: one job at a time, in the background, beginning with what earlier processes left."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shlex
from asyncio.subprocess import DEVNULL, PIPE
from dataclasses import dataclass, field

from askbook.api.metrics import Metrics
from askbook.domain import BookRecord, IngestMode, Job
from askbook.errors import AskbookError, BookError
from askbook.wiring import Askbook

logger = logging.getLogger("askbook.jobs")

EVERY_SECONDS = 5.0
"""How often it looks for jobs that other processes queued or lost."""
REFRESH_SECONDS = 60.0
SHOWN = 200


@dataclass
class Runner:
    askbook: Askbook
    metrics: Metrics
    refresh_command: str | None = None
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self.askbook.worker.hands_back = True
        self.askbook.worker.refresh = self._refresh
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """A running job goes back to the queue."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def submit(self, book: BookRecord, mode: IngestMode) -> Job:
        """A new job, or the same one if it is queued or running."""
        job = await self.askbook.jobs.submit(book.book_id, book.folder, mode)
        self.wake()
        return job

    def wake(self) -> None:
        """Look for jobs now."""
        self._wake.set()

    async def _run(self) -> None:
        while True:
            self._wake.clear()
            try:
                for job in await self.askbook.jobs.load_open():
                    done = await self.askbook.worker.run_job(job.job_id, self.metrics.note_step)
                    if done.status in ("completed", "failed"):
                        self.metrics.jobs.labels(done.status).inc()
                        self.metrics.job_progress.set(done.progress)
                        extra = {"job_id": done.job_id, "book_id": done.book_id}
                        logger.info("job %s", done.status, extra=extra)
            except AskbookError as error:
                logger.error("jobs wait: %s", error.message)
            except Exception:
                # The runner outlives any job; the job's row says that it failed.
                logger.exception("a job failed unexpectedly")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(EVERY_SECONDS):
                    await self._wake.wait()

    async def _refresh(self, job: Job) -> None:
        if not self.refresh_command:
            return
        try:
            async with asyncio.timeout(REFRESH_SECONDS):
                await _run_command(shlex.split(self.refresh_command), job.folder)
        except TimeoutError:
            raise BookError(f"the refresh command took longer than {REFRESH_SECONDS:g} s") from None
        except (OSError, ValueError) as error:
            raise BookError(f"the refresh command cannot be run: {error}") from error


async def _run_command(words: list[str], folder: str) -> None:
    process = await asyncio.create_subprocess_exec(*words, cwd=folder, stdin=DEVNULL, stdout=DEVNULL, stderr=PIPE)
    try:
        _, said = await process.communicate()
    except BaseException:
        process.kill()
        raise
    if process.returncode:
        last = said.decode(errors="replace").strip()[-SHOWN:]
        raise BookError(f"the refresh command failed with {process.returncode}: {last}")
