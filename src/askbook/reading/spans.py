"""Where a passage answers: the stretches that the model's starts and ends point at."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

SPAN_TOKENS = 40
SPANS_MAX = 4

Scores = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True, slots=True)
class Span:
    """Characters of the passage, whole words, and the chance that the answer is there."""

    start: int
    end: int
    chance: float


def score_spans(starts: Scores, ends: Scores) -> Scores:
    """A row for each first token, a column for each length; spans beyond the window score -inf."""
    beyond = np.full(SPAN_TOKENS - 1, -np.inf)
    return starts[:, None] + sliding_window_view(np.concatenate([ends, beyond]), SPAN_TOKENS)


def find_spans(scores: Scores, null: float) -> Iterator[tuple[int, int, float]]:
    """The best spans without overlap: first token, last token, and the chance among all spans and "not here"."""
    best = max(float(scores.max()), null)
    chances = np.exp(scores - best)
    chances /= chances.sum() + np.exp(null - best)
    firsts = np.arange(len(scores))[:, None]
    lasts = firsts + np.arange(SPAN_TOKENS)
    for _ in range(SPANS_MAX):
        first, further = divmod(int(chances.argmax()), SPAN_TOKENS)
        last = first + further
        # Overlapping spans are the same answer: their chances count for this one.
        same = (firsts <= last) & (lasts >= first)
        chance = float(chances[same].sum())
        if chance == 0.0:
            return
        yield first, last, min(chance, 1.0)
        chances[same] = 0.0


def keep_apart(spans: Iterable[Span]) -> tuple[Span, ...]:
    """The best spans first, without overlap: windows overlap, and two spans may share a word."""
    kept: list[Span] = []
    for span in sorted(spans, key=lambda other: (-other.chance, other.start)):
        if len(kept) < SPANS_MAX and all(span.end <= other.start or other.end <= span.start for other in kept):
            kept.append(span)
    return tuple(kept)
