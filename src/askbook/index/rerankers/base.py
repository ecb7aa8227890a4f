"""What askbook asks of a reranker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Reranker(Protocol):
    """Reads the question and each text together: how well the text answers it, 0 to 1, in the order of the texts."""

    @property
    def name(self) -> str: ...

    async def rerank(self, question: str, texts: Sequence[str]) -> list[float]: ...

    async def close(self) -> None: ...
