"""The reader as a reranker: orders passages by how well they answer."""

from __future__ import annotations

import math
from collections.abc import Sequence

from askbook.reading.chances import to_chance, to_logit
from askbook.reading.reader import Reader

CHARACTERS = 1200
"""Read of each text; twenty texts take about 1.5 s."""
ANSWERS, RELEVANCE, PLACE = 0.4, 0.25, 1.5
"""The weights of the chance to answer, the relevance and the place in the search (docs/decisions/0011)."""


class ReadingReranker:
    name = "reader"

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def rerank(self, question: str, texts: Sequence[str]) -> list[float]:
        readings = await self._reader.read(question, [text[:CHARACTERS] for text in texts])
        return [
            to_chance(ANSWERS * to_logit(reading.answers) + RELEVANCE * reading.relevance - PLACE * math.log1p(place))
            for place, reading in enumerate(readings)
        ]

    async def close(self) -> None:
        """The reader's owner closes it."""
