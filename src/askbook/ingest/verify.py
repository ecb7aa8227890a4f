"""Proves that folder, ledger and index agree, or says where they do not."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from askbook.book.chunker import split_lesson
from askbook.book.reader import read_book, read_lessons
from askbook.domain import Lesson
from askbook.index.keywords import count_terms, keyword_text
from askbook.index.vectors.base import VectorIndex
from askbook.store.ledger import DraftChunk, Ledger

Where = Literal["folder", "ledger", "index"]


NO_RECORD = "has chunks, but no record"


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

    @property
    def agrees(self) -> bool:
        return not self.differences


async def verify_book(book_id: str, ledger: Ledger, index: VectorIndex, embeds: bool) -> Verdict:
    """Read the folder anew and compare it with all that is stored. `embeds`: whether vectors are expected."""
    record = await ledger.load_book(book_id)
    folder = Path(record.folder)
    book = await asyncio.to_thread(read_book, folder, book_id)
    lessons, problems = await asyncio.to_thread(read_lessons, folder, book)
    unreadable = {problem.source_file for problem in problems if problem.skipped}
    drafts = await ledger.load_drafts(book_id)
    points = {point_id: has_vector async for point_id, has_vector in index.scroll_points(book_id)}
    differences = [
        *await _compare_folder(lessons, unreadable, ledger, book_id, drafts),
        *await _compare_terms(ledger, book_id, drafts, record.total_chunks),
        *_compare_points(drafts, points, embeds),
    ]
    return Verdict(book_id, len(lessons), len(drafts), len(points), tuple(differences))


async def repair_book(verdict: Verdict, ledger: Ledger, index: VectorIndex) -> None:
    """Make the next incremental job mend every difference."""
    book_id = verdict.book_id
    live = {draft.point_id: draft for draft in await ledger.load_drafts(book_id)}
    points = {point_id: has_vector async for point_id, has_vector in index.scroll_points(book_id)}
    await ledger.doom_points(book_id, [point_id for point_id in points if point_id not in live])
    await ledger.mark_embedded([point for point in live if not points.get(point, False)], embedded=False)
    await ledger.commit(
        book_id, [], [item.source_file for item in verdict.differences if item.message == NO_RECORD], {}
    )
    await ledger.forget_files(book_id, sorted({difference.source_file for difference in verdict.differences}))
    await ledger.recount_terms(book_id, count_terms(keyword_text(draft.chunk) for draft in live.values()))


async def _compare_folder(
    lessons: list[Lesson], unreadable: set[str], ledger: Ledger, book_id: str, drafts: list[DraftChunk]
) -> list[Difference]:
    records = await ledger.load_records(book_id)
    stored: dict[str, list[DraftChunk]] = {}
    for draft in drafts:
        stored.setdefault(draft.chunk.source_file, []).append(draft)
    found = [
        Difference("folder", file, "is indexed, but no longer in the folder")
        for file in sorted(set(records) - {lesson.source_file for lesson in lessons} - unreadable)
    ]
    for lesson in lessons:
        record = records.get(lesson.source_file)
        if record is None:
            found.append(Difference("folder", lesson.source_file, "is in the folder, but not indexed"))
        elif record.fingerprint != lesson.fingerprint:
            found.append(Difference("folder", lesson.source_file, "was changed since it was indexed"))
        else:
            chunks = await asyncio.to_thread(split_lesson, lesson)
            kept = [draft.chunk for draft in stored.get(lesson.source_file, [])]
            if chunks != kept or record.chunk_ids != tuple(chunk.id for chunk in chunks):
                found.append(Difference("ledger", lesson.source_file, "its stored chunks are not those of the file"))
    orphans = sorted(set(stored) - set(records))
    return found + [Difference("ledger", file, NO_RECORD) for file in orphans]


async def _compare_terms(ledger: Ledger, book_id: str, drafts: list[DraftChunk], total: int) -> list[Difference]:
    counted = await asyncio.to_thread(count_terms, [keyword_text(draft.chunk) for draft in drafts])
    found: list[Difference] = []
    if Counter(await ledger.load_terms(book_id)) != counted:
        found.append(Difference("ledger", "", "the word counts are not those of the chunks"))
    if total != len(drafts):
        found.append(Difference("ledger", "", f"{total} chunks are said to be live, {len(drafts)} are"))
    return found


def _compare_points(drafts: list[DraftChunk], points: dict[str, bool], embeds: bool) -> list[Difference]:
    found: list[Difference] = []
    for draft in drafts:
        file, number = draft.chunk.source_file, draft.chunk.chunk_index + 1
        if draft.point_id not in points:
            found.append(Difference("index", file, f"chunk {number} is missing from the index"))
        elif embeds and not points[draft.point_id]:
            found.append(Difference("index", file, f"chunk {number} has no vector"))
        elif embeds and not draft.embedded:
            found.append(Difference("ledger", file, f"chunk {number} waits to be embedded"))
    stray = len(points.keys() - {draft.point_id for draft in drafts})
    if stray:
        found.append(Difference("index", "", f"{stray} points belong to no chunk"))
    return found
