"""What is known of the reader: the tier filters, the level and the layer are preferred."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace

from askbook.domain import PROFICIENCY_LEVELS, Filters, Passage, Reader

STEP = 0.02
"""A passage's loss for each level it is off, and for another layer; a clearly better match still wins."""


def narrow_to_tier(filters: Filters, reader: Reader | None) -> Filters:
    """Nothing that needs more hardware than the reader has."""
    tiers = [tier for tier in (filters.hardware_tier, reader and reader.hardware_tier) if tier is not None]
    return replace(filters, hardware_tier=min(tiers, default=None))


def prefer(passages: Sequence[Passage], reader: Reader | None) -> list[Passage]:
    """Reorders the passages for the reader; each rank keeps its relevance and score."""
    if reader is None or (reader.proficiency_level is None and reader.layer is None):
        return list(passages)

    def weigh(passage: Passage) -> float:
        levels = [reader.proficiency_level, passage.chunk.proficiency_level]
        known = [PROFICIENCY_LEVELS.index(level) for level in levels if level in PROFICIENCY_LEVELS]
        apart = abs(known[0] - known[1]) if len(known) == 2 else 0
        return (apart + (reader.layer is not None and reader.layer != passage.chunk.layer)) * STEP - passage.score

    return [
        replace(liked, relevance=place.relevance, score=place.score, rank=place.rank)
        for liked, place in zip(sorted(passages, key=weigh), passages, strict=True)
    ]


def to_metadata(reader: Reader | None) -> dict[str, str | int]:
    """What a thread remembers of its reader."""
    return {name: value for name, value in asdict(reader).items() if value is not None} if reader else {}
