"""Questions to begin with: made from definitions and headings, tried, and kept if the book answers them well."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from askbook.answer.appraisal import Appraiser
from askbook.answer.calibration import Calibrations
from askbook.answer.confidence import LEVELS
from askbook.answer.followups import resolve_question
from askbook.answer.guardrail import is_command
from askbook.answer.librarian import choose_excerpts
from askbook.answer.structure import asks_structure
from askbook.answer.units import split_blocks
from askbook.domain import QUERY_MIN, Chunk, ConfidenceLevel, Filters, OutlineLesson
from askbook.errors import EmbedderUnavailable
from askbook.index.search import Searcher
from askbook.index.vectors.base import VectorIndex
from askbook.reading.reader import Reader
from askbook.store.ledger import Ledger

KEPT, LESSONS, OF_A_LESSON = 6, 12, 3
"""At most three questions of each of twelve lessons are tried."""
TOP_K = 10
LOOKS_MOST, LOOK_SECONDS = 100, 0.2
"""Readers come first; after so many looks a question is tried beside theirs."""
LONGEST = 80
_OPENS_SENTENCE = "ABCDEFGHIJKLMNOPQRSTUVWXYZ`*"

_DEFINITION = re.compile(
    r"(?P<article>(?:An?|The) )?(?P<name>[A-Za-z`*][\w`*-]*(?: (?!(?:an?|the) )[\w`*-]+){0,3})"
    r"(?: \([^()]{1,40}\))? is (?:an?|the) "
)
_POINTS = re.compile(
    r"(?:this|that|it|there|here|which|what|one|each|following|result|first|second|next|last)\b", re.IGNORECASE
)
_HOW_TO = re.compile(r"how to (.+)", re.IGNORECASE)
_SIGNS = "`*_ .:!"


@dataclass(frozen=True, slots=True)
class _Candidate:
    question: str
    lesson: int
    level: ConfidenceLevel
    chance: float


@dataclass(frozen=True, slots=True)
class Suggester:
    ledger: Ledger
    searcher: Searcher
    index: VectorIndex
    reader: Reader | None
    calibrations: Calibrations

    async def suggest(self, book_id: str) -> tuple[str, ...]:
        """Questions from all over the book, all of the best level that was reached."""
        outline = await self.ledger.load_outline(book_id)
        asked: list[_Candidate] = []
        for number, lesson in _spread(outline.lessons):
            chunks = await self.ledger.load_lesson(book_id, lesson.parent_doc_id)
            for question in islice(make_questions(lesson, chunks), OF_A_LESSON):
                answered = await self._ask(book_id, question, number)
                asked += [answered] if answered else []
                if answered and answered.level == LEVELS[0][0]:
                    break
            if len([candidate for candidate in asked if candidate.level == LEVELS[0][0]]) >= KEPT:
                break
        best = next((level for level, _, _ in LEVELS if any(candidate.level == level for candidate in asked)), None)
        kept = sorted(
            (candidate for candidate in asked if candidate.level == best), key=lambda candidate: -candidate.chance
        )[:KEPT]
        return tuple(candidate.question for candidate in sorted(kept, key=lambda candidate: candidate.lesson))

    async def _ask(self, book_id: str, question: str, lesson: int) -> _Candidate | None:
        """Answers it without a model; None where it would be refused, or was not read."""
        if is_command(question) or asks_structure(question):
            return None
        for _ in range(LOOKS_MOST):
            if self.reader is None or not self.reader.askers:
                break
            await asyncio.sleep(LOOK_SECONDS)
        calibration = (await self.calibrations.choose(book_id)).calibration
        text = resolve_question(question, ()).text
        outcome = await self.searcher.search(text, Filters(book_id), limit=TOP_K, relevance=calibration.relevance)
        if outcome.notices:
            # Half a search does not show what the book answers; it is tried again later.
            raise EmbedderUnavailable(outcome.notices[0])
        found = await Appraiser(self.searcher, self.index, self.reader).appraise(outcome, (text,), calibration)
        confidence = found.confidence
        if found.hurried or not confidence.should_answer or not choose_excerpts(found.reads):
            return None
        return _Candidate(
            question, lesson, confidence.confidence_level, confidence.chance or confidence.average_similarity
        )


def make_questions(lesson: OutlineLesson, chunks: Sequence[Chunk]) -> Iterator[str]:
    """What a lesson defines, what its headings ask, and at last what it is about."""
    titles = [lesson.title, *(section.title for section in lesson.sections)]
    asking = filter(None, (_ask_heading(title) for title in titles))
    about = f"What does the book say about {lesson.title.rstrip('?')}?"
    made = (*islice(ask_definitions(chunks), 2), *asking, about)
    for question in dict.fromkeys(made):
        if QUERY_MIN < len(question) <= LONGEST:
            yield question


def ask_definitions(chunks: Sequence[Chunk]) -> Iterator[str]:
    """What is a topic? For each sentence that says so."""
    text = "\n".join(chunk.text for chunk in chunks)
    for chunk in chunks:
        units = (unit for block in split_blocks(chunk.text) if block.kind == "prose" for unit in block.units)
        for unit in units:
            found = _DEFINITION.match(chunk.text, unit.start, unit.end)
            if found and chunk.text[unit.start] in _OPENS_SENTENCE and not _POINTS.match(found["name"]):
                name = found["name"].strip(_SIGNS)
                # As it is written inside a sentence: the capital may only open this one.
                small = name[0].lower() + name[1:]
                name = small if re.search(rf"\b{re.escape(small)}\b", text) else name
                yield f"What is {(found['article'] or '').lower()}{name}?"


def _ask_heading(title: str) -> str | None:
    words = title.strip(_SIGNS)
    how = _HOW_TO.fullmatch(words)
    return f"How do I {how[1]}?" if how else words if words.endswith("?") else None


def _spread(lessons: Sequence[OutlineLesson]) -> list[tuple[int, OutlineLesson]]:
    """The lessons to try, with their places: every other one through the whole book, then those between."""
    taught = [lesson for lesson in lessons if lesson.lesson > 0] or list(lessons)
    step = max(1.0, len(taught) / LESSONS)
    picked = [(int(at * step), taught[int(at * step)]) for at in range(min(LESSONS, len(taught)))]
    return picked[::2] + picked[1::2]
