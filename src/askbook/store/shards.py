"""A job cut into shards: some lessons each, done step by step, by one worker at a time.

Who takes a shard holds it for as long as it is heard of. The step it does ends in the same transaction that makes its
work count, and only while the shard is still its own: so what is done is done once, whoever died or slept meanwhile.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any, Literal

from sqlalchemy import ColumnElement, and_, case, delete, exists, func, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from askbook.errors import AskbookError
from askbook.store.database import Database
from askbook.store.schema import COUNTS, jobs, shards

ShardStep = Literal["write", "embed", "finish", "done"]


class ShardLost(AskbookError):
    """Another worker has the shard, because this one was silent for too long or the job is over."""


@dataclass(frozen=True, slots=True)
class Shard:
    job_id: int
    number: int
    step: ShardStep
    files: tuple[str, ...]
    """Whose chunks are to be embedded once they are written."""
    content: bytes | None = None
    """The lessons to write, packed by `ingest.plan`."""


class Shards:
    # Every transaction that touches both locks the shards first and the job second, so that no two deadlock.

    def __init__(self, database: Database) -> None:
        self.database = database

    async def save(
        self,
        job_id: int,
        owner: str,
        planned: Sequence[Shard],
        counts: Mapping[str, int],
        problems: Sequence[Mapping[str, Any]],
    ) -> None:
        """The plan of a job, in place of an older one."""
        async with self.database.writing() as connection:
            await connection.execute(delete(shards).where(shards.c.job_id == job_id))
            await connection.execute(shards.insert(), [asdict(shard) for shard in planned])
            saved = update(jobs).where(jobs.c.job_id == job_id, jobs.c.status == "running", jobs.c.owner == owner)
            saved = saved.values(phase="writing", problems=list(problems), **counts)
            _check_mine((await connection.execute(saved)).rowcount)

    async def clear(self, job_id: int) -> None:
        """Drop the plan. Work on it no longer counts."""
        await self.database.save(delete(shards).where(shards.c.job_id == job_id))

    async def take(self, job_id: int, owner: str, silence: timedelta, embeds: bool) -> Shard | None:
        """The next free step: all shards are written before any is embedded, and embedded before the job ends."""
        other = shards.alias()
        undone = exists().where(other.c.job_id == job_id, other.c.step.not_in(["finish", "done"]))
        ready = or_(
            shards.c.step.in_(["write", "embed"] if embeds else ["write"]), and_(shards.c.step == "finish", ~undone)
        )
        running = exists().where(jobs.c.job_id == job_id, jobs.c.status == "running")
        query = (
            select(shards)
            .where(shards.c.job_id == job_id, ready, running, ~self._is_held(silence))
            .order_by(case((shards.c.step == "write", 0), else_=1), shards.c.number)
            .limit(1)
            .with_for_update(skip_locked=True, of=shards)
        )
        async with self.database.writing() as connection:
            row = (await connection.execute(query)).mappings().first()
            if row is None:
                return None
            shard = Shard(job_id, row["number"], row["step"], tuple(row["files"]), row["content"])
            held = {"owner": owner, "heartbeat_at": self.database.now()}
            await connection.execute(update(shards).where(_is(shard)).values(held))
            phase = {"write": "writing", "embed": "embedding", "finish": "forgetting"}[shard.step]
            await self._update_job(connection, job_id, phase=phase, heartbeat_at=self.database.now())
            return shard

    @contextlib.asynccontextmanager
    async def settle(
        self,
        connection: AsyncConnection,
        shard: Shard,
        owner: str,
        then: ShardStep,
        counts: Mapping[str, int],
        tell: Callable[[Mapping[str, int]], None] = lambda _: None,
    ) -> AsyncIterator[None]:
        """The step ends with the transaction if the owner still holds the shard at its start, and frees it."""
        mine = select(shards.c.number).where(_is(shard), shards.c.step == shard.step, shards.c.owner == owner)
        _check_mine(len((await connection.execute(mine.with_for_update())).all()))
        yield
        done = {"step": then, "owner": None, "content": None}
        await connection.execute(update(shards).where(_is(shard)).values(done))
        async with self.count(connection, shard.job_id, counts, tell):
            pass

    @contextlib.asynccontextmanager
    async def count(
        self,
        connection: AsyncConnection,
        job_id: int,
        counts: Mapping[str, int],
        tell: Callable[[Mapping[str, int]], None] = lambda _: None,
    ) -> AsyncIterator[None]:
        """Add to the counts in the job's row as the transaction ends; `tell` gets the new ones."""
        yield
        added = {name: jobs.c[name] + by for name, by in counts.items()}
        changed = update(jobs).where(jobs.c.job_id == job_id).values(heartbeat_at=self.database.now(), **added)
        row = (await connection.execute(changed.returning(*(jobs.c[name] for name in COUNTS)))).mappings().one()
        tell({**row})

    async def end_step(self, shard: Shard, owner: str, then: ShardStep) -> None:
        async with self.database.writing() as connection, self.settle(connection, shard, owner, then, {}):
            pass

    async def complete(self, shard: Shard, owner: str) -> None:
        """The last shard is done, and with it the job."""
        async with self.database.writing() as connection:
            last = delete(shards).where(_is(shard), shards.c.owner == owner)
            _check_mine((await connection.execute(last)).rowcount)
            await connection.execute(delete(shards).where(shards.c.job_id == shard.job_id))
            ended = {"status": "completed", "phase": "completed", "completed_at": self.database.now()}
            await self._update_job(connection, shard.job_id, **ended)

    async def beat(self, job_id: int, owner: str) -> None:
        """Say that this worker lives."""
        mine = and_(shards.c.job_id == job_id, shards.c.owner == owner)
        async with self.database.writing() as connection:
            holds = (
                await connection.execute(update(shards).where(mine).values(heartbeat_at=self.database.now()))
            ).rowcount
            beaten = update(jobs).where(jobs.c.job_id == job_id, jobs.c.status == "running")
            beaten = beaten if holds else beaten.where(jobs.c.owner == owner)
            await connection.execute(beaten.values(heartbeat_at=self.database.now()))

    async def leave(self, job_id: int, owner: str, silence: timedelta) -> bool:
        """Let go of this worker's shards. Returns whether nobody works on the job now."""
        mine = and_(shards.c.job_id == job_id, shards.c.owner == owner)
        async with self.database.writing() as connection:
            held = (await connection.execute(update(shards).where(mine).values(owner=None))).rowcount
            others = select(func.count()).where(shards.c.job_id == job_id, self._is_held(silence))
            planned = select(jobs.c.owner).where(jobs.c.job_id == job_id)
            if await connection.scalar(others):
                return False
            return bool(held) or await connection.scalar(planned) == owner

    def _is_held(self, silence: timedelta) -> ColumnElement[bool]:
        return and_(shards.c.owner.is_not(None), shards.c.heartbeat_at > self.database.now() - silence)

    async def _update_job(self, connection: AsyncConnection, job_id: int, **values: Any) -> None:
        await connection.execute(update(jobs).where(jobs.c.job_id == job_id).values(**values))


def _is(shard: Shard) -> ColumnElement[bool]:
    return and_(shards.c.job_id == shard.job_id, shards.c.number == shard.number)


def _check_mine(rows: int) -> None:
    if rows != 1:
        raise ShardLost("another worker has taken this over")
