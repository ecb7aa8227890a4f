"""Candidates in, ranked Passages out: meaning, words, headings and the best sentence, each on a fixed scale.

The weights were found on eight question sets: docs/decisions/0005-ranking.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
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
    # Of a book whose vectors are still to come, or without an embedder, only the words are known.
    dense = any(one.similarity is not None for one in candidates)
    score = _choose_score(candidates, words.most, dense, plain, scale or Scale())
    ordered = sorted(((score(one), one) for one in candidates), key=lambda pair: (-pair[0], pair[1].chunk.id))
    read = (replace(one, coverage=cover(one.chunk, words.rarities)) for _, one in ordered[:READ])
    scored = [*((score(one), one) for one in read), *ordered[READ:]]
    passages = sorted((_to_passage(one, its) for its, one in scored), key=lambda one: (-one.score, one.chunk.id))
    passages = list(_drop_doubles(passages))
    signals = _to_signals(passages, words)
    # A calibration is made for the scores of both sides together; one side alone shows its own.
    return rate(passages, signals, None if plain else relevance), signals


def rate(passages: list[Passage], signals: Signals, relevance: Relevance | None) -> list[Passage]:
    """Each passage with its relevance, in that order."""
    if relevance is None:
        return passages
    rated = [replace(one, relevance=relevance(signals, one)) for one in passages]
    return sorted(rated, key=lambda one: -(one.relevance or 0.0))


def reorder(passages: Sequence[Passage], scores: Sequence[float]) -> list[Passage]:
    """The first of them, as many as have a score, by that score; in a tie they stay as they were."""
    first, rest = passages[: len(scores)], passages[len(scores) :]
    chosen = sorted(zip(first, scores, strict=True), key=lambda pair: -pair[1])
    # What a relevance means was measured by place, so it stays with the place; who stands there is the reranker's.
    moved = [
        replace(one, score=place.score, relevance=place.relevance, rerank_score=score)
        for place, (one, score) in zip(first, chosen, strict=True)
    ]
    return [*moved, *rest]


def cut(outcome: SearchOutcome, limit: int, threshold: float) -> SearchOutcome:
    """Without what lies below the threshold, no more than `limit`, ranked from 1."""
    kept = [one for one in outcome.passages if one.rating >= threshold]
    ranked = (replace(one, rank=place) for place, one in enumerate(kept[:limit], start=1))
    return replace(outcome, passages=tuple(ranked), total_found=len(kept))


def average_score(ranked: Sequence[Passage]) -> float:
    first = ranked[:FIRST]
    return sum(one.score for one in first) / len(first) if first else 0.0


# --- scores ---------------------------------------------------------------------------------------

Score = Callable[[Found], float]


def _choose_score(candidates: Sequence[Found], most: float, dense: bool, plain: bool, scale: Scale) -> Score:
    if not plain:
        return lambda one: _score(one, most, scale if dense else None)
    if dense and all(one.keyword_score is None for one in candidates):
        return lambda one: _share(one.similarity or 0.0)
    return lambda one: scale_keyword(one.keyword_score, most)


def _score(one: Found, most: float, scale: Scale | None) -> float:
    words = KEYWORDS * scale_keyword(one.keyword_score, most)
    words += SENTENCE * one.coverage.sentence + HEADINGS * one.coverage.headings
    return MEANING * scale.place(one.similarity) + words if scale else words / (1 - MEANING)


def _share(value: float) -> float:
    return min(max(value, 0.0), 1.0)


def scale_keyword(keyword: float | None, most: float) -> float:
    """As a share of what a chunk full of the question's words would have: long questions do not drown the meaning."""
    return _share((keyword or 0.0) / most) if most else 0.0


# --- passages -------------------------------------------------------------------------------------


def _to_passage(one: Found, score: float) -> Passage:
    return Passage(
        one.chunk, score, 0, one.similarity, one.keyword_score, coverage=one.coverage.whole, point_id=one.point_id
    )


def _drop_doubles(passages: Iterable[Passage]) -> Iterator[Passage]:
    seen: set[str] = set()
    for passage in passages:
        if passage.chunk.content_hash not in seen:
            seen.add(passage.chunk.content_hash)
            yield passage


def _to_signals(ranked: Sequence[Passage], words: Words) -> Signals:
    first = ranked[:FIRST]
    if not first:
        return Signals(unknown_words=words.unknown, chunks=words.chunks)
    judged = first[: max(1, words.chunks // CHUNKS_PER_JUDGED)]
    similarities = [one.similarity for one in judged if one.similarity is not None]
    lesson = first[0].chunk.source_file
    other = next((one.score for one in ranked if one.chunk.source_file != lesson), 0.0)
    return Signals(
        similarity=sum(similarities) / len(similarities) if similarities else None,
        coverage=max(one.coverage for one in first),
        score=first[0].score,
        mean_score=average_score(ranked),
        lead=first[0].score - other,
        unknown_words=words.unknown,
        chunks=words.chunks,
    )
