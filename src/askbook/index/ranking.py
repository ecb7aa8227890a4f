"""Candidates in, ranked Passages out: meaning, words, headings and the best sentence, each on a fixed scale.

The weights were found on eight question sets: docs/decisions/0005-ranking.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from askbook.domain import LIMIT_MAX, Chunk, Passage, SearchOutcome, Signals
from askbook.index.coverage import NOTHING, Coverage, Rarities, cover

MEANING, KEYWORDS, SENTENCE, HEADINGS = 0.5, 0.3, 0.1, 0.1
READ: Final = 30
"""How many of the best candidates are read sentence by sentence."""
FIRST: Final = 5
CHUNKS_PER_JUDGED: Final = 20
"""In a small book few passages can be about one question: of forty chunks the two best tell whether it is in there."""
RERANKED: Final = LIMIT_MAX
"""How many of the best are reranked: as many as can be shown, so that no list is ordered by two rules."""

BETWEEN, SPREAD = 0.25, 0.10
"""MiniLM's cosines, with which the weights were found: their mean between chunks, their spread around a question."""
SPREAD_MIN: Final = 1e-3

Relevance = Callable[[Signals, Passage], float]


@dataclass(frozen=True, slots=True)
class Scale:
    """Where an embedder's cosines lie in a book, so that those of any embedder mean the same."""

    between: float = BETWEEN
    """The mean between two chunks of the book: as near as things are that share no more than a book."""
    spread: float = SPREAD
    """How far the cosines of the question with any chunks differ."""

    def place(self, similarity: float | None) -> float:
        """0 to 1: the cosine that MiniLM would have given."""
        if similarity is None:
            return 0.0
        return _share(BETWEEN + SPREAD * (similarity - self.between) / max(self.spread, SPREAD_MIN))


@dataclass(frozen=True, slots=True)
class Words:
    """The question's words: how rare each is in the book, and those that it never uses."""

    rarities: Rarities
    unknown: tuple[str, ...]
    most: float = 0.0
    """The BM25 score that no chunk can pass."""
    chunks: int = 0
    """How many chunks the book has."""


@dataclass(frozen=True, slots=True)
class Found:
    """A candidate with its raw scores; None where that side has none."""

    point_id: str
    chunk: Chunk
    similarity: float | None
    keyword_score: float | None
    coverage: Coverage = NOTHING


def rank(
    candidates: Sequence[Found], words: Words, plain: bool, relevance: Relevance | None, scale: Scale | None = None
) -> tuple[list[Passage], Signals]:
    """`plain`: one side alone was asked for, and its own score decides."""
    # Without an embedder, or until its vectors are there, a book is ranked by its words alone.
    dense = any(found.similarity is not None for found in candidates)
    score = _choose_score(candidates, words.most, dense, plain, scale or Scale())
    ordered = sorted(candidates, key=lambda found: (-score(found), found.chunk.id))
    read = [replace(found, coverage=cover(found.chunk, words.rarities)) for found in ordered[:READ]]
    different: dict[str, Passage] = {}
    for found in sorted([*read, *ordered[READ:]], key=lambda found: (-score(found), found.chunk.id)):
        if found.chunk.content_hash not in different:
            different[found.chunk.content_hash] = Passage(
                found.chunk,
                score(found),
                0,
                found.similarity,
                found.keyword_score,
                coverage=found.coverage.whole,
                point_id=found.point_id,
            )
    passages = list(different.values())
    signals = _to_signals(passages, words)
    # A calibration is made for the scores of both sides together; one side alone shows its own.
    return rate(passages, signals, None if plain else relevance), signals


def rate(passages: list[Passage], signals: Signals, relevance: Relevance | None) -> list[Passage]:
    """Each passage with its relevance, in that order."""
    if relevance is None:
        return passages
    rated = [replace(passage, relevance=relevance(signals, passage)) for passage in passages]
    return sorted(rated, key=lambda passage: -(passage.relevance or 0.0))


def reorder(passages: Sequence[Passage], scores: Sequence[float]) -> list[Passage]:
    """The first of them, as many as have a score, by that score; in a tie they stay as they were."""
    first, rest = passages[: len(scores)], passages[len(scores) :]
    chosen = sorted(zip(first, scores, strict=True), key=lambda pair: -pair[1])
    # Each rank keeps its calibrated relevance; the reranker picks the passage.
    moved = [
        replace(passage, score=rank.score, relevance=rank.relevance, rerank_score=score)
        for rank, (passage, score) in zip(first, chosen, strict=True)
    ]
    return [*moved, *rest]


def cut(outcome: SearchOutcome, limit: int, threshold: float) -> SearchOutcome:
    """At most `limit` passages, none below the threshold, ranked from 1."""
    kept = [passage for passage in outcome.passages if passage.rating >= threshold]
    ranked = (replace(passage, rank=rank) for rank, passage in enumerate(kept[:limit], start=1))
    return replace(outcome, passages=tuple(ranked), total_found=len(kept))


def average_score(ranked: Sequence[Passage]) -> float:
    first = ranked[:FIRST]
    return sum(passage.score for passage in first) / len(first) if first else 0.0


# --- scores ---------------------------------------------------------------------------------------


def _choose_score(
    candidates: Sequence[Found], most: float, dense: bool, plain: bool, scale: Scale
) -> Callable[[Found], float]:
    def blend(found: Found) -> float:
        words = KEYWORDS * scale_keyword(found.keyword_score, most)
        words += SENTENCE * found.coverage.sentence + HEADINGS * found.coverage.headings
        return MEANING * scale.place(found.similarity) + words if dense else words / (1 - MEANING)

    if not plain:
        return blend
    if dense and all(found.keyword_score is None for found in candidates):
        return lambda found: _share(found.similarity or 0.0)
    return lambda found: scale_keyword(found.keyword_score, most)


def _share(value: float) -> float:
    return min(max(value, 0.0), 1.0)


def scale_keyword(keyword: float | None, most: float) -> float:
    """As a share of what a chunk full of the question's words would have: long questions do not drown the meaning."""
    return _share((keyword or 0.0) / most) if most else 0.0


def _to_signals(ranked: Sequence[Passage], words: Words) -> Signals:
    first = ranked[:FIRST]
    if not first:
        return Signals(unknown_words=words.unknown, chunks=words.chunks)
    judged = first[: max(1, words.chunks // CHUNKS_PER_JUDGED)]
    similarities = [passage.similarity for passage in judged if passage.similarity is not None]
    lesson = first[0].chunk.source_file
    return Signals(
        similarity=sum(similarities) / len(similarities) if similarities else None,
        coverage=max(passage.coverage for passage in first),
        score=first[0].score,
        mean_score=average_score(ranked),
        lead=first[0].score - next((other.score for other in ranked if other.chunk.source_file != lesson), 0.0),
        unknown_words=words.unknown,
        chunks=words.chunks,
    )
