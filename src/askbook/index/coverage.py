"""How much of a question a chunk holds, in a sentence, in the headings and in all: words count by their rarity."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache

from askbook.domain import Chunk
from askbook.index.keywords import different_terms

LOCATED = 2048
"""How many chunks are remembered with the places of their terms: at most 30 MB."""

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")

Rarities = Mapping[int, float]
"""Every term of a question, also those that the book never uses, and how rare each is."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """Shares of the question's weight, 0 to 1. The headings count with every sentence below them."""

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

    headings = rarities.keys() & _heading_terms(chunk.heading_path)
    places = _locate_terms(chunk.text)
    found = rarities.keys() & places.keys()
    sentences: dict[int, set[int]] = {}
    for term in found:
        for number in places[term]:
            sentences.setdefault(number, set(headings)).add(term)
    return Coverage(
        share(headings), max(map(share, sentences.values()), default=share(headings)), share(headings | found)
    )


@lru_cache(maxsize=LOCATED)
def _heading_terms(path: tuple[str, ...]) -> frozenset[int]:
    return frozenset(different_terms(" ".join(path)))


@lru_cache(maxsize=LOCATED)
def _locate_terms(text: str) -> dict[int, list[int]]:
    """Each term with the numbers of the sentences that contain it."""
    places: dict[int, list[int]] = {}
    for number, sentence in enumerate(split_sentences(text)):
        for term in different_terms(sentence):
            places.setdefault(term, []).append(number)
    return places
