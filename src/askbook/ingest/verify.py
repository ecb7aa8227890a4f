"""Proves that folder, ledger and index agree, or says where they do not."""

from __future__ import annotations

import asyncio
import math
import random
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from askbook.book.chunker import split_lesson
from askbook.book.reader import read_book, read_lessons
from askbook.domain import Filters, Lesson, LessonRecord
from askbook.errors import StorageError
from askbook.index.embedders.base import Embedder, Vector, to_unit
from askbook.index.keywords import count_terms, keyword_text, weigh_chunk
from askbook.index.vectors.base import VectorIndex
from askbook.index.vectors.checks import is_sound
from askbook.store.database import DAMAGED
from askbook.store.ledger import DraftChunk, Ledger, slices

Where = Literal["folder", "ledger", "index"]

FILES_AT_ONCE = 200
MADE_AGAIN = 32
ALIKE = 0.95
"""The cosine of a vector and the same made again; what is quantised differs a little with what it is made beside."""


@dataclass(frozen=True, slots=True)
class Difference:
    """`source_file` is empty where no one file is to blame."""

    where: Where
    source_file: str
    message: str


@dataclass(frozen=True, slots=True)
class Verdict:
    book_id: str
    files: int
    chunks: int
    points: int
    differences: tuple[Difference, ...]
    damaged: frozenset[str] = frozenset()
    """The points that must be embedded again."""

    @property
    def agrees(self) -> bool:
        return not self.differences


async def verify_book(
    book_id: str, ledger: Ledger, index: VectorIndex, embeds: bool, embedder: Embedder | None = None
) -> Verdict:
    """Read the folder again and compare it with all that is stored. `embeds`: whether vectors are expected; with an
    embedder some of them are made again, and compared."""
    if damage := await ledger.database.find_damage():
        raise StorageError(f"the database is damaged: {damage}", DAMAGED)
    book = await ledger.load_book(book_id)
    lessons, unreadable = await asyncio.to_thread(_read_folder, Path(book.folder), book_id)
    records = await ledger.load_records(book_id)
    points = await _load_points(index, book_id)
    differences = [*_compare_files(lessons, records, unreadable)]
    terms: Counter[int] = Counter()
    live: set[str] = set()
    damaged: set[str] = set()
    sample: list[tuple[DraftChunk, Vector]] = []
    async for files, drafts, counts in _load_stored(ledger, book_id):
        live.update(draft.point_id for draft in drafts)
        terms += counts
        differences += await asyncio.to_thread(_compare_chunks, files, drafts, lessons, records)
        differences += _compare_points(drafts, points, embeds)
        differences += [difference async for difference in _compare_words(drafts, points, index)]
        if embeds:
            stored = await index.load_vectors([draft.point_id for draft in drafts if points.get(draft.point_id)])
            unsound = [draft for draft in drafts if draft.point_id in stored and not is_sound(stored[draft.point_id])]
            differences += [_of_chunk(draft, "has a damaged vector") for draft in unsound]
            damaged.update(draft.point_id for draft in unsound)
            sample += [(draft, stored[draft.point_id]) for draft in drafts if draft.point_id in stored.keys() - damaged]
            sample = random.sample(sample, min(len(sample), MADE_AGAIN))
    if embedder is not None and (others := await _find_others(sample, embedder)):
        # Vectors of something else were put in their place, and nobody looked at the rest.
        differences += [_of_chunk(draft, "has a damaged vector") for draft in others]
        damaged = live
    if points.keys() - live:
        differences.append(Difference("index", "", f"{len(points.keys() - live)} points belong to no chunk"))
    if Counter(await ledger.load_terms(book_id)) != terms:
        differences.append(Difference("ledger", "", "the word counts are not those of the chunks"))
    if book.total_chunks != len(live):
        differences.append(Difference("ledger", "", f"{book.total_chunks} chunks are said to be live, {len(live)} are"))
    return Verdict(book_id, len(lessons), len(live), len(points), tuple(differences), frozenset(damaged))


async def repair_book(verdict: Verdict, ledger: Ledger, index: VectorIndex, embeds: bool) -> None:
    """Make the next incremental job mend every difference."""
    await ledger.forget_files(verdict.book_id, sorted({difference.source_file for difference in verdict.differences}))
    live = await mend_index(verdict.book_id, ledger, index)
    if embeds:
        points = await _load_points(index, verdict.book_id)
        bare = sorted(point for point in live if point in verdict.damaged or not points.get(point, False))
        await ledger.mark_embedded(bare, None)


async def mend_index(book_id: str, ledger: Ledger, index: VectorIndex) -> set[str]:
    """Doom every point that belongs to no chunk, and recount the words. Returns the live points."""
    terms: Counter[int] = Counter()
    live: set[str] = set()
    async for _, drafts, counts in _load_stored(ledger, book_id):
        live.update(draft.point_id for draft in drafts)
        terms += counts
    points = await _load_points(index, book_id)
    await ledger.doom_points(book_id, sorted(points.keys() - live))
    await ledger.recount_terms(book_id, terms)
    return live


def _read_folder(folder: Path, book_id: str) -> tuple[dict[str, Lesson], set[str]]:
    lessons, problems = read_lessons(folder, read_book(folder, book_id))
    return {lesson.source_file: lesson for lesson in lessons}, {
        problem.source_file for problem in problems if problem.skipped
    }


async def _load_points(index: VectorIndex, book_id: str) -> dict[str, bool]:
    return {point_id: has_vector async for point_id, has_vector in index.scroll_points(book_id)}


async def _load_stored(
    ledger: Ledger, book_id: str
) -> AsyncIterator[tuple[Sequence[str], list[DraftChunk], Counter[int]]]:
    """Some files at a time, so that no book is too large: the files, their chunks, and the words of these."""
    for files in slices(sorted(await ledger.load_files(book_id)), FILES_AT_ONCE):
        drafts = await ledger.load_drafts(book_id, files)
        texts = [keyword_text(draft.chunk) for draft in drafts]
        yield files, drafts, await asyncio.to_thread(count_terms, texts)


def _compare_files(
    lessons: dict[str, Lesson], records: dict[str, LessonRecord], unreadable: set[str]
) -> Iterator[Difference]:
    for file in sorted(records.keys() - lessons.keys() - unreadable):
        yield Difference("folder", file, "is indexed, but no longer in the folder")
    for file, lesson in lessons.items():
        if file not in records:
            yield Difference("folder", file, "is in the folder, but not indexed")
        elif records[file].fingerprint != lesson.fingerprint:
            yield Difference("folder", file, "was changed since it was indexed")


def _compare_chunks(
    files: Sequence[str], drafts: list[DraftChunk], lessons: dict[str, Lesson], records: dict[str, LessonRecord]
) -> list[Difference]:
    found: list[Difference] = []
    for file in files:
        stored = [draft.chunk for draft in drafts if draft.chunk.source_file == file]
        record, lesson = records.get(file), lessons.get(file)
        if record is None:
            found.append(Difference("ledger", file, "has chunks, but no record"))
        elif lesson is not None and record.fingerprint == lesson.fingerprint:
            chunks = split_lesson(lesson)
            if chunks != stored or record.chunk_ids != tuple(chunk.id for chunk in chunks):
                found.append(Difference("ledger", file, "its stored chunks are not those of the file"))
    return found


async def _find_others(sample: Sequence[tuple[DraftChunk, Vector]], embedder: Embedder) -> list[DraftChunk]:
    """The drafts whose vectors are not what the embedder makes of their text."""
    again = await embedder.embed_passages([draft.chunk.embed_text for draft, _ in sample]) if sample else []
    pairs = zip(sample, again, strict=True)
    return [draft for (draft, stored), vector in pairs if float(stored @ to_unit(vector)) < ALIKE]


async def _compare_words(
    drafts: list[DraftChunk], points: dict[str, bool], index: VectorIndex
) -> AsyncIterator[Difference]:
    """Search for each chunk by all its words and every filter that it passes: so the index proves what it holds."""
    for draft in drafts:
        chunk, words = draft.chunk, weigh_chunk(keyword_text(draft.chunk))
        if draft.point_id not in points or not words.indices:
            continue
        alike = ("book_id", "hardware_tier", "module", "lesson", "layer", "parent_doc_id")
        filters = Filters(
            **{name: getattr(chunk, name) for name in alike},
            chapter_min=chunk.chapter,
            chapter_max=chunk.chapter,
            proficiency_levels=(chunk.proficiency_level,),
        )
        hits = await index.find_keywords(words, filters, 1, [draft.point_id])
        full = sum(weight * weight for weight in words.values)
        if not hits or not math.isclose(hits[0].score, full, rel_tol=0.001):
            yield _of_chunk(draft, "is not found by its words")


def _of_chunk(draft: DraftChunk, what: str, where: Where = "index") -> Difference:
    return Difference(where, draft.chunk.source_file, f"chunk {draft.chunk.chunk_index + 1} {what}")


def _compare_points(drafts: list[DraftChunk], points: dict[str, bool], embeds: bool) -> Iterator[Difference]:
    for draft in drafts:
        if draft.point_id not in points:
            yield _of_chunk(draft, "is missing from the index")
        elif embeds and not points[draft.point_id]:
            yield _of_chunk(draft, "has no vector")
        elif embeds and not draft.embedded:
            yield _of_chunk(draft, "waits to be embedded", "ledger")
