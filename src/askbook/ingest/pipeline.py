"""A folder becomes an up-to-date index: read, plan, write, commit, embed, forget.

Each lesson is live for readers from its ledger commit on, found by its keywords at once and by its vectors as soon as they
are there. Whatever instant the process dies at, running the job again ends where a clean run would have.
"""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from askbook.book.chunker import split_lesson
from askbook.book.reader import read_book, read_lessons
from askbook.domain import Book, Chunk, Job, Lesson, Problem
from askbook.errors import BookError
from askbook.index.embedders.base import Embedder, Vector
from askbook.index.keywords import count_terms, keyword_text, weigh_chunk
from askbook.index.vectors.base import Point, VectorIndex
from askbook.ingest.plan import Plan, PlannedChange, plan_changes
from askbook.store.ledger import DraftChunk, Ledger, LessonChange, slices

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
    """How many chunks one commit makes live, one call embeds, one call writes into the index."""

    commit: int = 256
    embed: int = 64
    write: int = 64


SIZES = Sizes()


@dataclass
class Tally:
    """How far the job is; what its row in the jobs table will say."""

    files_processed: int = 0
    files_skipped: int = 0
    files_total: int = 0
    chunks_created: int = 0
    chunks_deleted: int = 0
    chunks_embedded: int = 0
    chunks_to_embed: int = 0
    problems: list[Problem] = field(default_factory=list[Problem])


@dataclass(frozen=True, slots=True)
class Pipeline:
    ledger: Ledger
    index: VectorIndex
    embedder: Embedder | None
    announce: Callable[[Step, Tally], Awaitable[None]]
    sizes: Sizes = SIZES

    async def run(self, job: Job) -> Tally:
        """Bring the index into step with the job's folder."""
        tally = Tally()
        await self.announce("reading", tally)
        plan = await self._plan(job, tally)
        await self.announce("planned", tally)
        for group in _grouped(plan.changes, self.sizes.commit):
            await self._replace_lessons(job, group, tally)
        if plan.deleted:
            await self._remove_lessons(job.book_id, plan.deleted, tally)
        await self._embed(job.book_id, tally)
        await self._forget(job.book_id, tally)
        await self.ledger.stamp_book(job.book_id, job.mode)
        await self.announce("done", tally)
        return tally

    async def _plan(self, job: Job, tally: Tally) -> Plan:
        folder = Path(job.folder)
        book = await asyncio.to_thread(read_book, folder, job.book_id)
        lessons, problems = await self._read(folder, book, tally)
        if not lessons:
            # Also what an unmounted disk looks like: better to refuse than to empty the book.
            raise BookError(f"there is no Markdown to read in {folder}", "askbook reads .md, .mdx and .markdown files.")
        await self.ledger.save_book(book, job.folder)
        if job.mode == "recreate":
            await self.ledger.forget_book(job.book_id)
        unreadable = {problem.source_file for problem in problems if problem.skipped}
        plan = plan_changes(lessons, await self.ledger.load_records(job.book_id), unreadable, job.mode)
        tally.problems.extend(problems)
        tally.files_total = len(lessons) + len(unreadable)
        tally.files_skipped = len(plan.unchanged) + len(unreadable)
        return plan

    async def _read(self, folder: Path, book: Book, tally: Tally) -> tuple[list[Lesson], list[Problem]]:
        def count(_file: str) -> None:
            tally.files_total += 1

        reading = asyncio.create_task(asyncio.to_thread(read_lessons, folder, book, count))
        while not (await asyncio.wait([reading], timeout=0.3))[0]:
            await self.announce("reading", tally)
        return reading.result()

    async def _replace_lessons(self, job: Job, group: Sequence[PlannedChange], tally: Tally) -> None:
        changed_files = [file for planned in group for file in planned.replaces]
        before = await self.ledger.load_drafts(job.book_id, changed_files)
        cut = await asyncio.to_thread(lambda: [split_lesson(planned.lesson) for planned in group])
        stamped = _stamped([chunk for chunks in cut for chunk in chunks], [draft.chunk for draft in before])
        known = await self._known_vectors(job.book_id, stamped.values())
        # A full ingestion embeds everything again; until it has, the old vectors serve.
        embedded = set(known) if job.mode == "incremental" else set[str]()
        changes = [
            LessonChange(
                planned.lesson,
                tuple(
                    DraftChunk(_point_id(chunk, planned.lesson), stamped[chunk.id], chunk.embed_hash in embedded)
                    for chunk in chunks
                ),
                planned.replaces,
            )
            for planned, chunks in zip(group, cut, strict=True)
        ]
        drafts = [draft for change in changes for draft in change.drafts]
        await self.ledger.doom_points(job.book_id, [draft.point_id for draft in drafts])
        await self.announce("points noted", tally)
        for some in slices(drafts, self.sizes.write):
            await self.index.save_points(await asyncio.to_thread(_to_points, some, known))
            await self.announce("points half written", tally)
        await self.index.flush()
        await self.announce("points written", tally)
        await self.ledger.commit(job.book_id, changes, [], await asyncio.to_thread(_term_changes, drafts, before))
        new_ids, old_ids = {draft.chunk.id for draft in drafts}, {draft.chunk.id for draft in before}
        tally.files_processed += len(group)
        tally.chunks_created += len(new_ids - old_ids)
        tally.chunks_deleted += len(old_ids - new_ids)
        await self.announce("committed", tally)

    async def _remove_lessons(self, book_id: str, files: Sequence[str], tally: Tally) -> None:
        before = await self.ledger.load_drafts(book_id, files)
        await self.ledger.commit(book_id, [], files, await asyncio.to_thread(_term_changes, [], before))
        tally.chunks_deleted += len(before)
        await self.announce("committed", tally)

    async def _known_vectors(self, book_id: str, chunks: Iterable[Chunk]) -> dict[str, Vector]:
        """Vectors of texts that some live chunk of the book has been embedded for, by their hash."""
        point_of = await self.ledger.find_embedded(book_id, sorted({chunk.embed_hash for chunk in chunks}))
        vectors = await self.index.load_vectors(sorted(set(point_of.values())))
        return {embed_hash: vectors[point] for embed_hash, point in point_of.items() if point in vectors}

    async def _embed(self, book_id: str, tally: Tally) -> None:
        if self.embedder is None:
            return
        tally.chunks_to_embed = await self.ledger.count_unembedded(book_id)
        while waiting := await self.ledger.load_unembedded(book_id, self.sizes.embed):
            await self.announce("embedding", tally)
            texts = {item.embed_hash: item.embed_text for item in waiting}
            vectors = dict(zip(texts, await self.embedder.embed_passages(list(texts.values())), strict=True))
            await self.announce("embedded", tally)
            await self.index.save_vectors({item.point_id: vectors[item.embed_hash] for item in waiting})
            await self.index.flush()
            await self.announce("vectors written", tally)
            await self.ledger.mark_embedded([item.point_id for item in waiting])
            tally.chunks_embedded += len(waiting)
            await self.announce("vectors committed", tally)

    async def _forget(self, book_id: str, tally: Tally) -> None:
        doomed = await self.ledger.load_doomed(book_id)
        for some in slices(doomed, self.sizes.write):
            await self.announce("forgetting", tally)
            await self.index.forget_points(some)
        if doomed:
            await self.index.flush()
            await self.announce("points forgotten", tally)
            await self.ledger.strike_doomed(doomed)


def _point_id(chunk: Chunk, lesson: Lesson) -> str:
    """The same chunk in the same version of its lesson is the same point, however often it is written."""
    return str(uuid.uuid5(NAMESPACE, f"{chunk.id}:{lesson.fingerprint}"))


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


def _to_points(drafts: Sequence[DraftChunk], known: dict[str, Vector]) -> list[Point]:
    return [
        Point(
            draft.point_id,
            draft.chunk,
            weigh_chunk(keyword_text(draft.chunk)),
            known.get(draft.chunk.embed_hash),
        )
        for draft in drafts
    ]


def _term_changes(after: Sequence[DraftChunk], before: Sequence[DraftChunk]) -> Counter[int]:
    changes = count_terms(keyword_text(draft.chunk) for draft in after)
    changes.subtract(count_terms(keyword_text(draft.chunk) for draft in before))
    return changes


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
