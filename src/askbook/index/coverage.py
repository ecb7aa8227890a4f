"""How much of a question a chunk holds: its words weighed by their rarity, in one sentence, in the headings, in all of it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from askbook.domain import Chunk
from askbook.index.keywords import find_terms

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")

Rarities = Mapping[int, float]
"""Every term of a question, also those that the book never uses, and how rare each is."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """Shares of the question's weight, 0 to 1. The headings count with every sentence that stands below them."""

    headings: float
    sentence: float
    whole: float


NOTHING = Coverage(0.0, 0.0, 0.0)


def split_sentences(text: str) -> list[str]:
    """Roughly: at every stop and every line's end."""
    return _SENTENCE_END.split(text)


def cover(chunk: Chunk, rarities: Rarities) -> Coverage:
    total = sum(rarities.values())
    if not total:
        return NOTHING

    def share(terms: Collection[int]) -> float:
        return min(sum(rarities[term] for term in terms) / total, 1.0)

    headings = find_terms(" ".join(chunk.heading_path), rarities)
    found = (find_terms(sentence, rarities) for sentence in split_sentences(chunk.text))
    sentences = [headings | terms for terms in found if terms]
    return Coverage(
        share(headings), max(map(share, sentences), default=share(headings)), share(headings.union(*sentences))
    )
