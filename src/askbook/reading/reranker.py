"""The reader as a reranker: what a search found, in the order in which it answers the question."""

from __future__ import annotations

import math
from collections.abc import Sequence

from askbook.reading.chances import to_chance, to_logit
from askbook.reading.reader import Reader

CHARACTERS = 1200
"""Of each text: twenty of them take about a second and a half."""
ANSWERS, RELEVANCE, PLACE = 0.4, 0.25, 1.5
"""What the chance to answer, the relevance and the place in the search weigh (docs/decisions/0011)."""


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
        """The reader is another's to close."""
