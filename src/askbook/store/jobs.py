"""Ingestion jobs: queued, run once, watched while they run, kept for good."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import RowMapping, and_, delete, exists, or_, select, text, update

from askbook.domain import IngestMode, Job, Problem, Scope
from askbook.errors import NotFound
from askbook.store.database import Database
from askbook.store.schema import COUNTS, OPEN_JOB, jobs, shards
from askbook.store.scopes import within

# A running job without a heartbeat for this long has lost its process.
SILENCE = timedelta(seconds=30)

# As text: PostgreSQL's generic plan has no values by which it could match the partial index.
OPEN = text("status IN ('queued', 'running')")


class Jobs:
    def __init__(self, database: Database, collection: str = "") -> None:
        """`collection`: where the points of these jobs go; jobs for another collection are left to other processes."""
        self.database = database
        self.collection = collection

    async def submit(self, book_id: str, folder: str, mode: IngestMode) -> Job:
        """A new job, or the one that is queued or running for the same book, folder and mode."""
        once = {"book_id": book_id, "folder": folder, "mode": mode, "collection": self.collection}
        new = {
            **once,
            "status": "queued",
            "phase": "queued",
            "problems": [],
            "created_at": datetime.now(UTC),
            **dict.fromkeys(COUNTS, 0),
        }
        same = select(jobs).where(*(jobs.c[name] == value for name, value in once.items()), OPEN_JOB)
        async with self.database.writing() as connection:
            insert = self.database.insert(jobs).values(new)
            await connection.execute(insert.on_conflict_do_nothing(index_elements=list(once), index_where=OPEN))
            return _to_job((await connection.execute(same)).mappings().one())

    async def claim(self, job_id: int, owner: str, silence: timedelta = SILENCE) -> bool:
        """Take a queued job, or one whose workers all went silent, to plan it. False when another worker has it.

        One job of a book at a time, the oldest first: one would forget the points that another is about to make live.
        """
        now = self.database.now()
        other = jobs.alias()
        mine = ["", self.collection]
        comes_first = and_(other.c.job_id < jobs.c.job_id, other.c.collection.in_(mine))
        runs_elsewhere = and_(other.c.collection.not_in(mine), other.c.heartbeat_at > now - silence)
        waits = exists().where(
            other.c.book_id == jobs.c.book_id,
            other.c.status.in_(["queued", "running"]),
            or_(comes_first, runs_elsewhere),
        )
        taken = (
            update(jobs)
            .where(
                jobs.c.job_id == job_id,
                jobs.c.collection.in_(mine),
                ~waits,
                or_(
                    jobs.c.status == "queued",
                    and_(jobs.c.status == "running", jobs.c.heartbeat_at <= now - silence),
                ),
            )
            .values(
                status="running",
                phase="reading",
                owner=owner,
                started_at=now,
                heartbeat_at=now,
                problems=[],
                **dict.fromkeys(COUNTS, 0),
            )
        )
        return await self.database.save(taken) == 1

    async def progress(
        self, job_id: int, phase: str, counts: Mapping[str, int], problems: Sequence[Mapping[str, Any]]
    ) -> None:
        await self._update(job_id, phase=phase, heartbeat_at=self.database.now(), problems=list(problems), **counts)

    async def fail(self, job_id: int, error_message: str) -> None:
        """Ends the job for every worker on it."""
        ended = {"status": "failed", "phase": "failed", "completed_at": self.database.now()}
        async with self.database.writing() as connection:
            await connection.execute(delete(shards).where(shards.c.job_id == job_id))
            failed = update(jobs).where(jobs.c.job_id == job_id, OPEN_JOB)
            await connection.execute(failed.values(error_message=error_message, **ended))

    async def hand_back(self, job_id: int) -> None:
        """As if nobody had taken it: the next worker goes on with it."""
        await self._update(job_id, status="queued", phase="queued", owner=None, started_at=None, heartbeat_at=None)

    async def inherit(self, collection: str) -> None:
        """Takes over the open jobs of a collection that this one replaces."""
        theirs = update(jobs).where(OPEN_JOB, jobs.c.collection == collection)
        await self.database.save(theirs.values(collection=self.collection))

    async def load(self, job_id: int, scope: Scope | None = None) -> Job:
        """A job of a book outside the scope is reported as missing."""
        found = [_to_job(row) for row in await self.database.load(select(jobs).where(jobs.c.job_id == job_id))]
        if not found or (scope is not None and not scope.holds(found[0].book_id)):
            raise NotFound(f"there is no job {job_id}", "`askbook jobs` lists them.")
        return found[0]

    async def load_all(self, book_id: str | None = None, limit: int = 20, scope: Scope | None = None) -> list[Job]:
        """The newest first."""
        query = select(jobs).order_by(jobs.c.job_id.desc()).limit(limit)
        if book_id is not None:
            query = query.where(jobs.c.book_id == book_id)
        if scope is not None:
            query = query.where(within(scope, jobs.c.book_id))
        return [_to_job(row) for row in await self.database.load(query)]

    async def load_open(self) -> list[Job]:
        """Queued or running, the oldest first."""
        mine = jobs.c.collection.in_(["", self.collection])
        query = select(jobs).where(OPEN_JOB, mine).order_by(jobs.c.job_id)
        return [_to_job(row) for row in await self.database.load(query)]

    async def _update(self, job_id: int, **values: Any) -> None:
        await self.database.save(update(jobs).where(jobs.c.job_id == job_id).values(**values))


def _to_job(row: RowMapping) -> Job:
    values = {name: row[name] for name in Job.__dataclass_fields__ if name != "problems"}
    return Job(**values, problems=tuple(Problem(**problem) for problem in row["problems"]))
