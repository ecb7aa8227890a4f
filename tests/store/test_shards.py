"""A shard is done by one worker at a time, each step once, and the job ends once."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from askbook.store.database import Database
from askbook.store.jobs import Jobs
from askbook.store.shards import Shard, ShardLost, Shards, ShardStep

LONG, AT_ONCE = timedelta(seconds=30), timedelta(0)


@pytest.fixture
def jobs(database: Database) -> Jobs:
    return Jobs(database)


@pytest.fixture
def shards(database: Database) -> Shards:
    return Shards(database)


async def plan(jobs: Jobs, shards: Shards, count: int = 3) -> int:
    job = await jobs.submit("book", "folder", "incremental")
    assert await jobs.claim(job.job_id, "planner")
    written = [Shard(job.job_id, number, "write", (f"{number}.md",), b"x") for number in range(count)]
    last = Shard(job.job_id, count, "finish", ())
    await shards.save(job.job_id, "planner", [*written, last], {"files_total": count}, [])
    return job.job_id


async def take(shards: Shards, job_id: int, owner: str, silence: timedelta = LONG) -> Shard:
    shard = await shards.take(job_id, owner, silence, embeds=True)
    assert shard is not None
    return shard


async def settle(shards: Shards, shard: Shard, owner: str, then: ShardStep) -> dict[str, int]:
    told: dict[str, int] = {}
    counts = {"files_processed": 1}
    async with (
        shards.database.writing() as connection,
        shards.settle(connection, shard, owner, then, counts, told.update),
    ):
        pass
    return told


async def test_many_who_take_at_once_take_different_ones(jobs: Jobs, shards: Shards) -> None:
    job_id = await plan(jobs, shards, count=5)
    taken = await asyncio.gather(*(shards.take(job_id, f"worker {n}", LONG, embeds=True) for n in range(12)))
    # Who finds one locked in passing goes without, and looks again.
    while (more := await shards.take(job_id, "another", LONG, embeds=True)) is not None:
        taken.append(more)
    assert sorted(shard.number for shard in taken if shard) == [0, 1, 2, 3, 4]


async def test_all_is_written_then_embedded_then_finished(jobs: Jobs, shards: Shards) -> None:
    job_id = await plan(jobs, shards)
    steps: list[tuple[int, str]] = []
    counts: dict[str, int] = {}
    while (shard := await shards.take(job_id, "me", LONG, embeds=True)) is not None:
        steps.append((shard.number, shard.step))
        phase = (await jobs.load(job_id)).phase
        assert phase == {"write": "writing", "embed": "embedding", "finish": "forgetting"}[shard.step]
        if shard.step == "finish":
            await shards.complete(shard, "me")
        else:
            counts = await settle(shards, shard, "me", "embed" if shard.step == "write" else "done")
    assert steps == [(0, "write"), (1, "write"), (2, "write"), (0, "embed"), (1, "embed"), (2, "embed"), (3, "finish")]
    assert (counts["files_total"], counts["files_processed"]) == (3, 6)
    done = await jobs.load(job_id)
    assert (done.status, done.files_processed) == ("completed", 6)


async def test_a_silent_workers_shard_is_taken_over_and_its_work_no_longer_counts(jobs: Jobs, shards: Shards) -> None:
    job_id = await plan(jobs, shards, count=1)
    sleeping = await take(shards, job_id, "sleeper")
    assert await shards.take(job_id, "eager", LONG, embeds=True) is None
    heir = await take(shards, job_id, "heir", AT_ONCE)
    assert heir == sleeping
    with pytest.raises(ShardLost):
        await settle(shards, sleeping, "sleeper", "done")
    await settle(shards, heir, "heir", "done")
    assert (await jobs.load(job_id)).files_processed == 1
    last = await take(shards, job_id, "sleeper")
    assert await take(shards, job_id, "heir", AT_ONCE) == last
    await shards.complete(last, "heir")
    with pytest.raises(ShardLost):
        await shards.complete(last, "sleeper")


async def test_while_a_step_ends_nobody_can_take_it_over(jobs: Jobs, shards: Shards) -> None:
    job_id = await plan(jobs, shards, count=1)
    shard = await take(shards, job_id, "me")
    async with shards.database.writing() as connection, shards.settle(connection, shard, "me", "done", {}):
        heir = asyncio.create_task(shards.take(job_id, "heir", AT_ONCE, embeds=True))
        await asyncio.sleep(0.3)
    taken = await heir
    assert taken is None or taken.step == "finish"


async def test_who_has_no_embedder_leaves_that_step_to_others(jobs: Jobs, shards: Shards) -> None:
    job_id = await plan(jobs, shards, count=1)
    await settle(shards, await take(shards, job_id, "me"), "me", "embed")
    assert await shards.take(job_id, "without", LONG, embeds=False) is None
    assert (await take(shards, job_id, "with")).step == "embed"


async def test_a_plan_made_anew_undoes_the_old_one(jobs: Jobs, shards: Shards) -> None:
    job_id = await plan(jobs, shards)
    old = await take(shards, job_id, "old")
    assert await jobs.claim(job_id, "new planner", AT_ONCE)
    await shards.clear(job_id)
    with pytest.raises(ShardLost):
        await settle(shards, old, "old", "done")
    with pytest.raises(ShardLost):
        await shards.save(job_id, "planner", [old], {}, [])
    assert await shards.take(job_id, "anybody", LONG, embeds=True) is None


async def test_who_leaves_hands_its_shard_on_and_the_last_one_the_job(jobs: Jobs, shards: Shards) -> None:
    job_id = await plan(jobs, shards)
    first, second = await take(shards, job_id, "one"), await take(shards, job_id, "two")
    assert not await shards.leave(job_id, "one", LONG)
    assert await take(shards, job_id, "two") == first != second
    assert not await shards.leave(job_id, "a passer-by", LONG)
    assert await shards.leave(job_id, "two", LONG)


async def test_a_failed_job_has_no_shards_left(jobs: Jobs, shards: Shards) -> None:
    job_id = await plan(jobs, shards)
    shard = await take(shards, job_id, "me")
    await jobs.fail(job_id, "the disk is full")
    assert await shards.take(job_id, "another", LONG, embeds=True) is None
    with pytest.raises(ShardLost):
        await settle(shards, shard, "me", "done")
    await jobs.fail(job_id, "too late")
    assert (await jobs.load(job_id)).error_message == "the disk is full"


async def test_a_worker_that_is_heard_of_keeps_its_shard(jobs: Jobs, shards: Shards) -> None:
    job_id = await plan(jobs, shards, count=1)
    await take(shards, job_id, "me")
    short = timedelta(seconds=0.5)
    for _ in range(4):
        await asyncio.sleep(0.2)
        await shards.beat(job_id, "me")
        assert await shards.take(job_id, "another", short, embeds=True) is None
        assert not await jobs.claim(job_id, "another", short)
    await asyncio.sleep(0.6)
    await shards.beat(job_id, "a passer-by")
    assert await jobs.claim(job_id, "another", short)
