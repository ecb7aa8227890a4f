"""How sure a search outcome makes us: seed 004's metrics and levels, and the refusals."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from askbook.answer.calibration import GATE
from askbook.answer.trust import GATE_CHANCE, Evidence
from askbook.domain import Confidence, ConfidenceLevel, Passage, Refusal, SearchOutcome
from askbook.index.embedders.base import Vector
from askbook.index.vectors.base import VectorIndex

JUDGED = 5
NEAREST = 3
NOT_IN_BOOK = "I don't have information about that in the book content"

# Seed 004: the least average relevance and the fewest passages of each level.
LEVELS: tuple[tuple[ConfidenceLevel, float, int], ...] = (("high", 0.85, 5), ("medium", 0.75, 3), ("low", GATE, 2))


async def judge(outcome: SearchOutcome, index: VectorIndex) -> Confidence:
    passages = outcome.passages[:JUDGED]
    vectors = await index.load_vectors([passage.point_id for passage in passages if passage.similarity is not None])
    whole = len(passages) == outcome.signals.chunks
    return measure([passage.rating for passage in passages], list(vectors.values()), whole)


def measure(relevances: Sequence[float], vectors: Sequence[Vector], whole_book: bool = False) -> Confidence:
    average = sum(relevances) / len(relevances) if relevances else 0.0
    # A book of one page has no second passage to ask for.
    level = find_level(average, JUDGED if whole_book and relevances else len(relevances))
    return Confidence(
        average_similarity=average,
        min_similarity=min(relevances, default=0.0),
        max_similarity=max(relevances, default=0.0),
        num_chunks=len(relevances),
        chunk_diversity=measure_diversity(vectors),
        confidence_level=level,
        should_answer=level != "insufficient",
    )


def find_level(average: float, count: int) -> ConfidenceLevel:
    for level, least, fewest in LEVELS:
        if average >= least and count >= fewest:
            return level
    return "insufficient"


def measure_diversity(vectors: Sequence[Vector]) -> float:
    """1 less the mean cosine of all pairs; 0 where there are none."""
    cosines = [float(np.dot(one, other)) for one, other in combinations(vectors, 2)]
    return min(max(1.0 - sum(cosines) / len(cosines), 0.0), 1.0) if cosines else 0.0


def refuse(outcome: SearchOutcome, confidence: Confidence, book_is_empty: bool = False) -> Refusal | None:
    """None where the book may answer."""
    if book_is_empty:
        return Refusal("index_empty", "There is nothing in the book yet", (), "Ingest it: askbook ingest FOLDER.")
    if confidence.should_answer:
        return None
    return Refusal("not_in_book", NOT_IN_BOOK, find_nearest(outcome.passages), _advise(outcome))


def name_gate(confidence: Confidence, chance_in_book: float | None, evidence: Evidence | None = None) -> str:
    """What decided, in words; without a chance where raw cosines decide."""
    count, average = confidence.num_chunks, confidence.average_similarity
    if not count:
        return "nothing was found"
    for level, least, _ in LEVELS:
        if level == confidence.confidence_level:
            return f"answered as {level}: average {average:.3f} is at least {least:.2f}, of {count} passages"
    if average >= GATE:
        return f"too few passages: {count}, and {LEVELS[-1][2]} are needed"
    if evidence is not None and evidence.chance_on_topic < GATE_CHANCE:
        return f"not in the book: the chance that it speaks of this is {evidence.chance_on_topic:.2f}"
    if evidence is not None:
        return f"not in the book: the chance that a passage answers this is {evidence.chance_answered:.2f}"
    if chance_in_book is not None and chance_in_book < GATE:
        return f"not in the book: the chance that the book answers this is {chance_in_book:.2f}, below {GATE:.2f}"
    return f"not in the book: average {average:.2f} is below {GATE:.2f}"


def find_nearest(passages: Sequence[Passage]) -> tuple[Passage, ...]:
    """The best passage of each of the three nearest sections."""
    by_section: dict[tuple[str, ...], Passage] = {}
    for passage in passages:
        by_section.setdefault((passage.chunk.source_file, *passage.chunk.heading_path), passage)
    return tuple(by_section.values())[:NEAREST]


def _advise(outcome: SearchOutcome) -> str:
    unknown = outcome.signals.unknown_words
    if not outcome.passages:
        return "Nothing was found at all: ask with other words, or with fewer filters."
    if len(outcome.passages) < LEVELS[-1][2]:
        return "Only one passage was found, and one is not enough to be sure: look into it, or use fewer filters."
    if not unknown and not outcome.signals.coverage:
        return "The question has no word to search by: name what it is about."
    if unknown:
        words = ", ".join(f"“{word}”" for word in unknown[:5])
        return f"The book never uses {words}: ask with words that it uses, or look into the nearest sections."
    if outcome.signals.coverage < 0.5:
        return "No passage holds more than half of your words together: ask for one thing at a time, or name its topic."
    return "The words are in the book, but no passage is about this: name the topic, or look into the nearest sections."
