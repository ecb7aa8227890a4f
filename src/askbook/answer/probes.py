"""Questions that a book asks of itself: made from its headings and sentences, then asked with and without their lesson.

With its lesson in the book a probe is answerable; with the lesson hidden it is not. So a calibration can be measured
on a book that nobody has written questions for.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, zip_longest

from askbook.answer.calibration import (
    GATE,
    Calibration,
    Curves,
    Fingerprint,
    find_logit,
    in_book_values,
)
from askbook.answer.confidence import JUDGED, measure
from askbook.answer.suggestions import ask_definitions
from askbook.domain import QUERY_MAX, QUERY_MIN, Chunk, Filters, SearchOutcome
from askbook.errors import InputError
from askbook.index.coverage import split_sentences
from askbook.index.keywords import split_terms
from askbook.index.search import Searcher
from askbook.reading.chances import to_logit

PROBES_MAX = 80
LESSONS_MIN, PROBES_MIN = 6, 20
DOUBLE = 0.8
"""A chunk that shares so many words with a probe's own chunk would answer it as well."""
REFUSED_MOST, OPEN_MOST = 0.05, 2.0

_MARKS = re.compile(r"[`*_#>\[\]]+|\(https?:[^)]*\)")
_WORDS_MIN, _WORDS_MAX = 8, 30


@dataclass(frozen=True, slots=True)
class Probe:
    question: str
    chunk: Chunk


@dataclass(frozen=True, slots=True)
class Asked:
    """A probe's search in the whole book, and in the book without its lesson."""

    probe: Probe
    found: SearchOutcome
    hidden: SearchOutcome

    @property
    def right(self) -> bool:
        return bool(self.found.passages) and self.found.passages[0].chunk.source_file == self.probe.chunk.source_file


@dataclass(frozen=True, slots=True)
class Rates:
    """How a calibration judges the probes."""

    refused: int
    """Probes that the book answers."""
    caught: int
    """Probes whose lesson was hidden."""
    asked: int
    first_right: int


# --- making ---------------------------------------------------------------------------------------


def make_probes(chunks: Sequence[Chunk]) -> list[Probe]:
    """From all lessons in turn, and from headings, definitions and sentences in turn."""
    by_lesson: defaultdict[str, list[Probe]] = defaultdict(list)
    for number, chunk in enumerate(chunks):
        questions = list(_make_questions(chunk))
        in_turn = (*questions[number % 3 :], *questions[: number % 3])
        question = next((made for made in in_turn if made and QUERY_MIN <= len(made) <= QUERY_MAX), None)
        if question is not None:
            by_lesson[chunk.source_file].append(Probe(question, chunk))
    turns = chain.from_iterable(zip_longest(*(by_lesson[lesson] for lesson in sorted(by_lesson))))
    probes = {probe.question: probe for probe in turns if probe is not None}
    return list(probes.values())[:PROBES_MAX]


def _make_questions(chunk: Chunk) -> Iterator[str]:
    """From its heading, a definition, and half the words of its longest plain sentence; empty where there is none."""
    title = _MARKS.sub("", chunk.section_title or "").strip()
    yield f"What does the book say about {title}?" if len(split_terms(title)) > 1 else ""
    yield next(ask_definitions([chunk]), "")
    plain = (_MARKS.sub("", sentence).split() for sentence in split_sentences(chunk.text))
    whole = [words for words in plain if _WORDS_MIN <= len(words) <= _WORDS_MAX]
    yield " ".join(max(whole, key=len)[::2]) if whole else ""


# --- asking ---------------------------------------------------------------------------------------


async def ask_probes(searcher: Searcher, book_id: str, probes: Sequence[Probe]) -> list[Asked]:
    """Without a reranker: a calibration reads the search's own scores."""
    filters = Filters(book_id)
    return [
        Asked(
            probe,
            await searcher.search(probe.question, filters, rerank=False),
            await searcher.search(probe.question, filters, hide=partial(_would_answer, probe.chunk), rerank=False),
        )
        for probe in probes
    ]


def _would_answer(source: Chunk, chunk: Chunk) -> bool:
    """The probe's lesson, and chunks elsewhere that say nearly the same."""
    own = set(split_terms(source.text))
    doubles = bool(own) and len(own & set(split_terms(chunk.text))) >= DOUBLE * len(own)
    return doubles or chunk.source_file == source.source_file


# --- fitting --------------------------------------------------------------------------------------


def check_enough(book_id: str, lessons: int, probes: Sequence[Probe]) -> None:
    if lessons < LESSONS_MIN or len(probes) < PROBES_MIN:
        raise InputError(
            f"{book_id} is too small to calibrate on: {lessons} lessons give {len(probes)} questions, "
            f"and {LESSONS_MIN} lessons and {PROBES_MIN} questions are needed",
            "The calibration that ships is used; nothing was changed.",
        )


def fit_calibration(asked: Sequence[Asked], start: Calibration, fingerprint: Fingerprint) -> Calibration:
    """Opens the gate until one in twenty probes is refused, and never closes it.

    Probes repeat the book's own words, so that they are answered proves nothing; and what is hidden is still the book's
    topic. A gate fitted to tell the two apart refused three to ten times as many real questions (decision 6).
    """
    curves = find_curves(asked, start)
    judged = [probe.found.signals for probe in asked if start.choose_curves(probe.found.signals) is curves]
    logits = sorted(find_logit(curves.in_book, in_book_values(signals)) for signals in judged)
    missing = to_logit(GATE) - logits[math.floor(REFUSED_MOST * len(logits))]
    opened = math.ceil(1000 * min(max(missing, 0.0), OPEN_MOST)) / 1000
    fitted = replace(curves, in_book=(round(curves.in_book[0] + opened, 3), *curves.in_book[1:]))
    changed = {"words": fitted} if curves is start.words else {"meaning": fitted}
    return replace(start, origin="book", fingerprint=fingerprint, questions=len(judged), **changed)


def find_curves(asked: Sequence[Asked], calibration: Calibration) -> Curves:
    """The curves for meaning, if any probe found a vector; else those for words."""
    signals = [probe.found.signals for probe in asked]
    return calibration.choose_curves(next((found for found in signals if found.similarity is not None), signals[0]))


def measure_probes(asked: Sequence[Asked], calibration: Calibration) -> Rates:
    def refuses(outcome: SearchOutcome) -> bool:
        relevances = [calibration.relevance(outcome.signals, passage) for passage in outcome.passages[:JUDGED]]
        return not measure(relevances, []).should_answer

    return Rates(
        refused=sum(refuses(probe.found) for probe in asked),
        caught=sum(refuses(probe.hidden) for probe in asked),
        asked=len(asked),
        first_right=sum(probe.right for probe in asked),
    )
