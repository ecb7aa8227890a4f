"""A folder becomes an up-to-date index: read, plan, write, commit, embed, forget.

One worker reads the folder and plans; then all workers take the plan shard by shard. Each lesson is
live for readers from its ledger commit on: found by its keywords at once, by its vectors as soon as they are there.
Whenever a worker dies, the others, or the job run again, end where a clean run would have.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Literal

from askbook.domain import Book, Chunk, Job, Lesson, Problem
from askbook.errors import BookError, IndexUnavailable
from askbook.index.embedders.base import Embedder, Vector
from askbook.index.keywords import count_terms, keyword_text, weigh_chunk
from askbook.index.vectors.base import LOST, Point, VectorIndex, load_some
from askbook.index.vectors.checks import is_sound
from askbook.ingest.plan import Parcel, Plan, PlannedChange, pack, plan_changes, unpack
from askbook.store.ledger import DraftChunk, Ledger, LessonChange, slices
from askbook.store.shards import Shard, ShardLost, Shards, ShardStep

Step = Literal[
    "reading",
    "planned",
    "points noted",
    "points half written",
    "points written",
    "committed",
    "embedding",
    "embedded",
    "vectors written",
    "vectors committed",
    "forgetting",
    "points forgotten",
    "done",
]

NAMESPACE = uuid.UUID("6ba7b810-9dad-11d1-80b4-00c04fd430c8")


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many chunks one shard holds and one commit makes live, one call embeds, one call writes into the index."""

    commit: int = 256
    embed: int = 64
    write: int = 64


SIZES = Sizes()


@dataclass
class Tally:
    """How far the job is, over all that work on it, as this worker last saw it."""

    files_processed: int = 0
    files_skipped: int = 0
    files_total: int = 0
    chunks_created: int = 0
    chunks_deleted: int = 0
    chunks_embedded: int = 0
    chunks_to_embed: int = 0
    problems: list[Problem] = field(default_factory=list[Problem])

    def to_counts(self) -> dict[str, int]:
        return {name: value for name, value in asdict(self).items() if name != "problems"}

    def update(self, counts: Mapping[str, int]) -> None:
        for name, value in counts.items():
            setattr(self, name, value)


@dataclass(frozen=True, slots=True)
class Pipeline:
    job: Job
    owner: str
    ledger: Ledger
    shards: Shards
    index: VectorIndex
    embedder: Embedder | None
    announce: Callable[[Step, Tally], Awaitable[None]]
    sizes: Sizes = SIZES

    tally: Tally = field(default_factory=Tally)

    async def plan(self) -> None:
        """Read the folder, and cut what has to be done into shards."""
        await self.shards.clear(self.job.job_id)
        await self.announce("reading", self.tally)
        plan = await self._plan()
        shards = await asyncio.to_thread(lambda: [*self._cut(plan)])
        if self.embedder is not None:
            shards += await self._cut_unembedded({file for shard in shards for file in shard.files})
        last = Shard(self.job.job_id, len(shards), "finish", ())
        numbered = [replace(shard, number=number) for number, shard in enumerate([*shards, last])]
        problems = [asdict(problem) for problem in self.tally.problems]
        await self.shards.save(self.job.job_id, self.owner, numbered, self.tally.to_counts(), problems)
        await self.announce("planned", self.tally)

    async def do(self, shard: Shard) -> None:
        match shard.step:
            case "write":
                await self._write(shard)
            case "embed":
                await self._embed(shard)
            case _:
                await self._finish(shard)

    async def _plan(self) -> Plan:
        # Every process has a pipeline; what reads a folder is loaded by those that ingest.
        from askbook.book.reader import read_book

        job, folder = self.job, Path(self.job.folder)
        book = await asyncio.to_thread(read_book, folder, job.book_id)
        lessons, problems = await self._read(folder, book, self.tally)
        if not lessons:
            # Also what an unmounted disk looks like: better to refuse than to empty the book.
            raise BookError(
                f"there is no Markdown to read in {folder}", "askbook reads .md, .mdx, .markdown and .ipynb files."
            )
        await self.ledger.save_book(book, job.folder)
        unreadable = {problem.source_file for problem in problems if problem.skipped}
        records = await self.ledger.load_records(job.book_id)
        known_live = any(record.fingerprint and record.chunk_ids for record in records.values())
        if job.mode == "incremental" and known_live and not await load_some(self.index, job.book_id, 1):
            raise IndexUnavailable(f"the index holds nothing of {job.book_id}: it was lost", LOST)
        plan = plan_changes(lessons, records, unreadable, job.mode)
        if job.mode == "recreate":
            known = {lesson.source_file for lesson in lessons} | records.keys() | unreadable
            strays = await self.ledger.load_files(job.book_id) - known
            plan = replace(plan, deleted=(*plan.deleted, *sorted(strays)))
        self.tally.problems.extend(problems)
        self.tally.files_total = len(lessons) + len(unreadable)
        self.tally.files_skipped = len(plan.unchanged) + len(unreadable)
        return plan

    def _cut(self, plan: Plan) -> Iterator[Shard]:
        """The workers need no folder: each shard holds the lessons as they were read, all at the same time."""
        for group in _grouped(plan.changes, self.sizes.commit):
            files = tuple(change.lesson.source_file for change in group) if self.embedder else ()
            yield Shard(self.job.job_id, 0, "write", files, pack(Parcel(tuple(group))))
        if plan.deleted:
            yield Shard(self.job.job_id, 0, "write", (), pack(Parcel(deleted=plan.deleted)))

    async def _cut_unembedded(self, planned: set[str]) -> list[Shard]:
        """Lessons that did not change, but wait for their vectors."""
        waiting = await self.ledger.count_unembedded(self.job.book_id)
        waiting = {file: count for file, count in waiting.items() if file not in planned}
        self.tally.chunks_to_embed = sum(waiting.values())
        return [Shard(self.job.job_id, 0, "embed", tuple(files)) for files in slices([*waiting], self.sizes.embed)]

    async def _read(self, folder: Path, book: Book, tally: Tally) -> tuple[list[Lesson], list[Problem]]:
        from askbook.book.reader import read_lessons

        def count(_file: str) -> None:
            tally.files_total += 1

        reading = asyncio.create_task(asyncio.to_thread(read_lessons, folder, book, count))
        while not (await asyncio.wait([reading], timeout=0.3))[0]:
            await self.announce("reading", tally)
        return reading.result()

    async def _write(self, shard: Shard) -> None:
        assert shard.content is not None
        parcel = await asyncio.to_thread(unpack, shard.content)
        book_id, group = self.job.book_id, parcel.changes
        gone = [*parcel.deleted, *(file for planned in group for file in planned.replaces)]
        before = await self.ledger.load_drafts(book_id, gone)
        changes, known = await self._draft(group, before)
        drafts = [draft for change in changes for draft in change.drafts]
        if drafts:
            await self._save_points(drafts, known)
        new_ids, old_ids = {draft.chunk.id for draft in drafts}, {draft.chunk.id for draft in before}
        counts = {
            "files_processed": len(group),
            "chunks_created": len(new_ids - old_ids),
            "chunks_deleted": len(old_ids - new_ids),
            "chunks_to_embed": sum(not draft.embedded for draft in drafts) if shard.files else 0,
        }
        then: ShardStep = "embed" if shard.files else "done"
        settled = partial(
            self.shards.settle, shard=shard, owner=self.owner, then=then, counts=counts, tell=self.tally.update
        )
        terms, gone_terms = await asyncio.to_thread(
            lambda: [count_terms(keyword_text(draft.chunk) for draft in some) for some in (drafts, before)]
        )
        terms.subtract(gone_terms)
        try:
            await self.ledger.commit(book_id, changes, parcel.deleted, terms, settled)
        except ShardLost:
            # Its heir may have forgotten these points already, or given them vectors that were just overwritten.
            await self.ledger.doom_points(book_id, [draft.point_id for draft in drafts])
            bare = [draft.point_id for draft in drafts if draft.chunk.embed_hash not in known]
            await self.ledger.mark_embedded(bare, None)
            raise
        await self.announce("committed", self.tally)

    async def _draft(
        self, group: Sequence[PlannedChange], before: Sequence[DraftChunk]
    ) -> tuple[list[LessonChange], dict[str, Vector]]:
        """The lessons as they will be, and those vectors of theirs that are there already, by the hash of the text."""
        from askbook.book.chunker import split_lesson

        cut = await asyncio.to_thread(lambda: [split_lesson(planned.lesson) for planned in group])
        stamped = _stamped([chunk for chunks in cut for chunk in chunks], [draft.chunk for draft in before])
        hashes = sorted({chunk.embed_hash for chunk in stamped.values()})
        found = await self.ledger.find_embedded(self.job.book_id, hashes)
        vectors = await self.index.load_vectors(sorted({embedded.point_id for embedded in found.values()}))
        known = {
            embed_hash: vectors[embedded.point_id]
            for embed_hash, embedded in found.items()
            if embedded.point_id in vectors and is_sound(vectors[embedded.point_id])
        }

        def draft(chunk: Chunk, lesson: Lesson) -> DraftChunk:
            # The same chunk in the same version of its lesson is the same point, however often it is written.
            point_id = str(uuid.uuid5(NAMESPACE, f"{chunk.id}:{lesson.fingerprint}"))
            # A full ingestion embeds everything again; until it has, the old vectors serve.
            if self.job.mode != "incremental" or chunk.embed_hash not in known:
                return DraftChunk(point_id, stamped[chunk.id], False)
            made = found[chunk.embed_hash]
            return DraftChunk(
                point_id, replace(stamped[chunk.id], embedded_at=made.at, embedding_model=made.model), True
            )

        changes = [
            LessonChange(planned.lesson, tuple(draft(chunk, planned.lesson) for chunk in chunks), planned.replaces)
            for planned, chunks in zip(group, cut, strict=True)
        ]
        return changes, known

    async def _save_points(self, drafts: Sequence[DraftChunk], known: dict[str, Vector]) -> None:
        await self.ledger.doom_points(self.job.book_id, [draft.point_id for draft in drafts])
        await self.announce("points noted", self.tally)
        for some in slices(drafts, self.sizes.write):
            await self.index.save_points(await asyncio.to_thread(_to_points, some, known))
            await self.announce("points half written", self.tally)
        await self.index.flush()
        await self.announce("points written", self.tally)

    async def _embed(self, shard: Shard) -> None:
        assert self.embedder is not None
        while waiting := await self.ledger.load_unembedded(self.job.book_id, shard.files, self.sizes.embed):
            await self.announce("embedding", self.tally)
            texts = {item.embed_hash: item.embed_text for item in waiting}
            vectors = dict(zip(texts, await self.embedder.embed_passages(list(texts.values())), strict=True))
            await self.announce("embedded", self.tally)
            await self.index.save_vectors({item.point_id: vectors[item.embed_hash] for item in waiting})
            await self.index.flush()
            await self.announce("vectors written", self.tally)
            counts = {"chunks_embedded": len(waiting)}
            counted = partial(self.shards.count, job_id=self.job.job_id, counts=counts, tell=self.tally.update)
            await self.ledger.mark_embedded([item.point_id for item in waiting], self.embedder.name, counted)
            await self.announce("vectors committed", self.tally)
        await self.shards.end_step(shard, self.owner, "done")

    async def _finish(self, shard: Shard) -> None:
        """Done once, by the worker that takes the last shard."""
        if self.job.mode == "recreate":
            from askbook.ingest.verify import mend_index

            await mend_index(self.job.book_id, self.ledger, self.index)
        doomed = await self.ledger.load_doomed(self.job.book_id)
        for some in slices(doomed, self.sizes.write):
            await self.announce("forgetting", self.tally)
            await self.index.forget_points(some)
        if doomed:
            await self.index.flush()
            await self.announce("points forgotten", self.tally)
            await self.ledger.strike_doomed(doomed)
        await self.ledger.stamp_book(self.job.book_id, self.job.mode)
        await self.shards.complete(shard, self.owner)
        await self.announce("done", self.tally)


def _stamped(chunks: Sequence[Chunk], before: Sequence[Chunk]) -> dict[str, Chunk]:
    """Chunks by id; one that was there before keeps its birthday and gets the next version."""
    now = datetime.now(UTC)
    old = {chunk.id: chunk for chunk in before}
    return {
        chunk.id: replace(
            chunk,
            version=old[chunk.id].version + 1 if chunk.id in old else 1,
            created_at=old[chunk.id].created_at if chunk.id in old else now,
            updated_at=now,
        )
        for chunk in chunks
    }


def _to_points(drafts: Sequence[DraftChunk], known: Mapping[str, Vector]) -> list[Point]:
    return [
        Point(draft.point_id, draft.chunk, weigh_chunk(keyword_text(draft.chunk)), known.get(draft.chunk.embed_hash))
        for draft in drafts
    ]


def _grouped(changes: Sequence[PlannedChange], chunks: int) -> Iterator[list[PlannedChange]]:
    """Whole lessons, as many as one commit takes; a chunk is about 1,500 characters."""
    group: list[PlannedChange] = []
    size = 0
    for change in changes:
        group.append(change)
        size += 1 + len(change.lesson.text) // 1500
        if size >= chunks:
            yield group
            group, size = [], 0
    if group:
        yield group
