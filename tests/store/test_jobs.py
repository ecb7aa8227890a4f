"""Jobs are kept, run once, and taken up again when their process died."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from askbook.domain import Scope
from askbook.errors import NotFound
from askbook.store.database import Database
from askbook.store.jobs import Jobs
from askbook.store.shards import Shard, Shards


@pytest.fixture
def jobs(database: Database) -> Jobs:
    return Jobs(database)


async def finish(jobs: Jobs, job_id: int) -> None:
    """As a worker does that finds nothing to change."""
    shards = Shards(jobs.database)
    await shards.save(job_id, "me", [Shard(job_id, 0, "finish", ())], {}, [])
    last = await shards.take(job_id, "me", timedelta(seconds=30), embeds=True)
    assert last is not None
    await shards.complete(last, "me")


@pytest.mark.row("F6")
async def test_the_same_job_sent_twenty_times_at_once_is_one_job(jobs: Jobs) -> None:
    sent = await asyncio.gather(*(jobs.submit("book", "folder", "incremental") for _ in range(20)))
    assert len({job.job_id for job in sent}) == 1
    claims = await asyncio.gather(*(jobs.claim(sent[0].job_id, f"worker {n}") for n in range(20)))
    assert claims.count(True) == 1


async def test_the_same_job_sent_again_and_again_is_one_job(jobs: Jobs) -> None:
    """PostgreSQL plans a statement anew after it was run a few times on one connection."""
    assert len({(await jobs.submit("book", "folder", "incremental")).job_id for _ in range(30)}) == 1


async def test_another_mode_or_a_finished_job_is_a_new_job(jobs: Jobs) -> None:
    first = await jobs.submit("book", "folder", "incremental")
    other = await jobs.submit("book", "folder", "full")
    await jobs.claim(first.job_id, "me")
    await finish(jobs, first.job_id)
    again = await jobs.submit("book", "folder", "incremental")
    assert len({first.job_id, other.job_id, again.job_id}) == 3


async def test_a_job_runs_from_queued_to_completed(jobs: Jobs) -> None:
    job = await jobs.submit("book", "folder", "incremental")
    assert (job.status, job.started_at, job.completed_at, job.progress) == ("queued", None, None, 0.0)

    assert await jobs.claim(job.job_id, "me")
    await jobs.progress(
        job.job_id,
        "embedding",
        {"files_total": 2, "files_processed": 2, "chunks_to_embed": 4, "chunks_embedded": 2},
        [],
    )
    running = await jobs.load(job.job_id)
    assert (running.status, running.phase, running.completed_at) == ("running", "embedding", None)
    assert running.progress == pytest.approx(0.55)

    await finish(jobs, job.job_id)
    done = await jobs.load(job.job_id)
    assert (done.status, done.progress, done.duration_seconds) == ("completed", 1.0, 0)
    assert done.completed_at is not None and done.completed_at.tzinfo is not None


async def test_a_silent_job_is_taken_over_and_a_living_one_is_not(jobs: Jobs) -> None:
    job = await jobs.submit("book", "folder", "incremental")
    assert await jobs.claim(job.job_id, "the dead")
    assert not await jobs.claim(job.job_id, "the eager")
    assert await jobs.claim(job.job_id, "the heir", silence=timedelta(0))


async def test_one_job_of_a_book_at_a_time_the_oldest_first(jobs: Jobs) -> None:
    first = await jobs.submit("book", "folder", "full")
    second = await jobs.submit("book", "folder", "incremental")
    other = await jobs.submit("another", "folder", "incremental")
    assert not await jobs.claim(second.job_id, "me")
    assert await jobs.claim(first.job_id, "me") and await jobs.claim(other.job_id, "me")
    assert not await jobs.claim(second.job_id, "me")
    await finish(jobs, first.job_id)
    assert await jobs.claim(second.job_id, "me")


async def test_a_job_for_another_collection_is_left_to_those_who_fill_it(jobs: Jobs) -> None:
    """A new embedder fills a collection of its own; who still has the old one may neither help nor run beside it."""
    new, old = Jobs(jobs.database, "askbook.new"), Jobs(jobs.database, "askbook")
    earlier = await old.submit("book", "folder", "incremental")
    rebuild = await new.submit("book", "folder", "recreate")
    assert not await old.claim(rebuild.job_id, "old")
    assert await new.claim(rebuild.job_id, "me")
    later = await old.submit("book", "folder", "recreate")
    assert later.job_id != rebuild.job_id
    assert not await old.claim(earlier.job_id, "old") and not await old.claim(later.job_id, "old")
    assert [job.job_id for job in await new.load_open()] == [rebuild.job_id]
    await finish(new, rebuild.job_id)
    await new.inherit("askbook")
    assert [job.job_id for job in await new.load_open()] == [earlier.job_id, later.job_id]
    assert await new.claim(earlier.job_id, "me") and await old.load_open() == []


async def test_a_failed_job_says_why(jobs: Jobs) -> None:
    job = await jobs.submit("book", "folder", "full")
    await jobs.claim(job.job_id, "me")
    await jobs.fail(job.job_id, "the disk is full")
    failed = await jobs.load(job.job_id)
    assert (failed.status, failed.error_message) == ("failed", "the disk is full")
    assert await jobs.load_open() == []
    with pytest.raises(NotFound):
        await jobs.load(99)


async def test_a_job_of_another_tenant_is_not_there(jobs: Jobs) -> None:
    books = ("robots", "acme/robots", "acme/tea", "acme-2/robots")
    made = {book_id: (await jobs.submit(book_id, "folder", "full")).job_id for book_id in books}

    async def seen(scope: Scope) -> list[str]:
        """The same whether they are listed or asked for one by one."""
        listed = [job.book_id for job in await jobs.load_all(scope=scope)]
        for book_id, job_id in made.items():
            if book_id in listed:
                assert (await jobs.load(job_id, scope)).book_id == book_id
            else:
                with pytest.raises(NotFound, match=f"there is no job {job_id}"):
                    await jobs.load(job_id, scope)
        return listed

    assert await seen(Scope()) == ["robots"]
    assert await seen(Scope("acme")) == ["acme/tea", "acme/robots"]
    assert await seen(Scope("acme", ("tea",))) == ["acme/tea"]
    assert await seen(Scope("acme-2")) == ["acme-2/robots"]
    assert await seen(Scope("ac")) == await seen(Scope("a%")) == []
