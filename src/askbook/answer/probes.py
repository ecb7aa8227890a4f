"""Questions that a book asks of itself: made from its headings and sentences, then asked with and without their lesson.

With its lesson in the book a probe is answerable; with the lesson hidden it is not. So a calibration can be measured
on a book that nobody has written questions for.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, zip_longest

from askbook.answer.calibration import (
    GATE,
    Calibration,
    Curves,
    Fingerprint,
    Weights,
    fit_curve,
    in_book_values,
    right_place_values,
)
from askbook.answer.confidence import JUDGED, measure
from askbook.domain import QUERY_MAX, QUERY_MIN, Chunk, Filters, SearchOutcome
from askbook.errors import InputError
from askbook.index.coverage import split_sentences
from askbook.index.keywords import split_terms
from askbook.index.search import Searcher

PROBES_MAX = 80
LESSONS_MIN, PROBES_MIN = 6, 20
DOUBLE = 0.8
"""A chunk elsewhere that holds so much of a probe's own chunk would answer it as well."""
WEIGHT = 20.0
"""What all probes weigh together: a probe is a guess at what people ask, and moves the weights but little."""
REFUSED_MOST, OPEN_MOST = 0.05, 2.0

_DEFINITION = re.compile(r"^(?:(?:A|An|The)\s+)?([\w`*-]+(?: [\w`*-]+){0,3}) (?:is|are) (?:a|an|the|used|how|what)\b")
_MARKS = re.compile(r"[`*_#>\[\]]+|\(https?:[^)]*\)")
_WORDS_MIN, _WORDS_MAX = 8, 30


@dataclass(frozen=True, slots=True)
class Probe:
    question: str
    chunk: Chunk


@dataclass(frozen=True, slots=True)
class Asked:
    """One probe, as the whole book answers it, and as the book without its lesson does."""

    probe: Probe
    found: SearchOutcome
    hidden: SearchOutcome

    @property
    def right(self) -> bool:
        return bool(self.found.passages) and self.found.passages[0].chunk.source_file == self.probe.chunk.source_file


@dataclass(frozen=True, slots=True)
class Rates:
    """What a calibration makes of the probes."""

    refused: int
    """Of those that the book answers."""
    caught: int
    """Of those whose lesson was hidden."""
    asked: int
    first_right: int


# --- making ---------------------------------------------------------------------------------------


def make_probes(chunks: Sequence[Chunk], most: int = PROBES_MAX) -> list[Probe]:
    """In turn from every lesson, and in turn by its headings, its definitions and its sentences."""
    by_lesson: defaultdict[str, list[Probe]] = defaultdict(list)
    for number, chunk in enumerate(chunks):
        makers = (_ask_heading, _ask_definition, _ask_sentence)
        questions = (make(chunk) for make in (*makers[number % 3 :], *makers[: number % 3]))
        question = next((one for one in questions if one and QUERY_MIN <= len(one) <= QUERY_MAX), None)
        if question is not None:
            by_lesson[chunk.source_file].append(Probe(question, chunk))
    turns = chain.from_iterable(zip_longest(*(by_lesson[lesson] for lesson in sorted(by_lesson))))
    probes = {probe.question: probe for probe in turns if probe is not None}
    return list(probes.values())[:most]


def _ask_heading(chunk: Chunk) -> str | None:
    title = _MARKS.sub("", chunk.section_title or "").strip()
    return f"What does the book say about {title}?" if len(split_terms(title)) > 1 else None


def _ask_definition(chunk: Chunk) -> str | None:
    found = (_DEFINITION.match(sentence) for sentence in split_sentences(chunk.text))
    names = (_MARKS.sub("", match[1]) for match in found if match)
    return next((f"What is {name}, and what is it for?" for name in names if split_terms(name)), None)


def _ask_sentence(chunk: Chunk) -> str | None:
    """Half the words of its longest plain sentence, as somebody remembers them."""
    plain = (_MARKS.sub("", sentence).split() for sentence in split_sentences(chunk.text))
    whole = [words for words in plain if _WORDS_MIN <= len(words) <= _WORDS_MAX]
    return " ".join(max(whole, key=len)[::2]) if whole else None


# --- asking ---------------------------------------------------------------------------------------


async def ask_probes(searcher: Searcher, book_id: str, probes: Sequence[Probe]) -> list[Asked]:
    """Without a reranker: a calibration reads the scores of the search itself."""
    filters = Filters(book_id)
    return [
        Asked(
            probe,
            await searcher.search(probe.question, filters, rerank=False),
            await searcher.search(probe.question, filters, hide=_hides(probe.chunk), rerank=False),
        )
        for probe in probes
    ]


def _hides(source: Chunk) -> Callable[[Chunk], bool]:
    own = set(split_terms(source.text))

    def hide(chunk: Chunk) -> bool:
        if chunk.source_file == source.source_file:
            return True
        return bool(own) and len(own & set(split_terms(chunk.text))) >= DOUBLE * len(own)

    return hide


# --- fitting --------------------------------------------------------------------------------------


def check_enough(book_id: str, lessons: int, probes: Sequence[Probe]) -> None:
    if lessons < LESSONS_MIN or len(probes) < PROBES_MIN:
        raise InputError(
            f"{book_id} is too small to calibrate on: {lessons} lessons give {len(probes)} questions, "
            f"and {LESSONS_MIN} lessons and {PROBES_MIN} questions are needed",
            "The calibration that ships is used; nothing was changed.",
        )


def fit_calibration(asked: Sequence[Asked], start: Calibration, fingerprint: Fingerprint) -> Calibration:
    """The curves that judge the book, fitted on the probes that they judge and held near `start`."""
    curves = find_curves(asked, start)
    judged = [one for one in asked if start.choose_curves(one.found.signals) is curves]
    fitted = Curves(_fit_in_book(judged, curves.in_book), _fit_right_place(judged, curves.right_place))
    changed = {"words": fitted} if curves is start.words else {"meaning": fitted}
    return replace(start, origin="book", fingerprint=fingerprint, questions=len(judged), **changed)


def find_curves(asked: Sequence[Asked], calibration: Calibration) -> Curves:
    """Those of the whole book: by meaning as soon as one probe found a vector. One that found nothing tells nothing."""
    signals = [one.found.signals for one in asked]
    return calibration.choose_curves(next((one for one in signals if one.similarity is not None), signals[0]))


def _fit_in_book(asked: Sequence[Asked], start: Weights) -> Weights:
    """Opens the gate until one in twenty probes is refused, and never closes it.

    Probes repeat the book's own words, so that they are answered proves nothing; and what is hidden is still the book's
    topic. A gate fitted to tell the two apart refused three to ten times as many real questions (decision 6).
    """
    logits = sorted(
        sum(weight * value for weight, value in zip(start, in_book_values(one.found.signals), strict=False))
        for one in asked
    )
    gate = math.log(GATE / (1 - GATE))
    missing = gate - logits[math.floor(REFUSED_MOST * len(logits))]
    opened = math.ceil(1000 * min(max(missing, 0.0), OPEN_MOST)) / 1000
    return (round(start[0] + opened, 3), *start[1:])


def _fit_right_place(asked: Sequence[Asked], start: Weights) -> Weights:
    values = [right_place_values(one.found.signals) for one in asked]
    return fit_curve(values, [one.right for one in asked], [WEIGHT / len(asked)] * len(asked), start)


def measure_probes(asked: Sequence[Asked], calibration: Calibration) -> Rates:
    return Rates(
        refused=sum(_refuses(calibration, one.found) for one in asked),
        caught=sum(_refuses(calibration, one.hidden) for one in asked),
        asked=len(asked),
        first_right=sum(one.right for one in asked),
    )


def _refuses(calibration: Calibration, outcome: SearchOutcome) -> bool:
    relevances = [calibration.relevance(outcome.signals, one) for one in outcome.passages[:JUDGED]]
    return not measure(relevances, []).should_answer
