"""What askbook asks of a vector index: points in, scored point ids out.

A point is one chunk of one version of a lesson and never changes its payload: a new version of a lesson is
written as new points beside the old ones. Which of them readers see is not the index's business but the ledger's.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from askbook.domain import Chunk, Filters
from askbook.index.embedders.base import Vector


@dataclass(frozen=True, slots=True)
class Sparse:
    """Term ids (32-bit, ascending, no doubles) and their weights."""

    indices: tuple[int, ...]
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Point:
    point_id: str
    chunk: Chunk
    keywords: Sparse
    dense: Vector | None = None


@dataclass(frozen=True, slots=True)
class Hit:
    point_id: str
    score: float


LOST = "Run `askbook verify --repair`: the index is built anew from what the database holds."


class VectorIndex(Protocol):
    async def take_dimension(self, dimension: int) -> None:
        """Of the vectors to come, where it was not known when the index was opened."""
        ...

    async def save_points(self, points: Sequence[Point]) -> None:
        """Insert or overwrite. A point without a dense vector is found by its keywords alone."""
        ...

    async def save_vectors(self, vectors: Mapping[str, Vector]) -> None:
        """Give existing points their dense vector; a point that is gone is passed over."""
        ...

    async def load_vectors(self, point_ids: Sequence[str]) -> dict[str, Vector]:
        """The dense vectors of those points that have one."""
        ...

    async def forget_points(self, point_ids: Sequence[str]) -> None: ...

    async def find_dense(
        self, vector: Vector, filters: Filters, limit: int, among: Sequence[str] | None = None
    ) -> list[Hit]:
        """Best first by cosine, ties by id. `among` keeps the search to these points."""
        ...

    async def find_keywords(
        self, keywords: Sparse, filters: Filters, limit: int, among: Sequence[str] | None = None
    ) -> list[Hit]: ...

    def scroll_points(self, book_id: str) -> AsyncIterator[tuple[str, bool]]:
        """Every point of a book: its id, and whether it has a dense vector."""
        ...

    async def flush(self) -> None:
        """Return only when everything written so far is on disk."""
        ...

    async def optimize(self) -> None:
        """Rebuild what makes large indexes fast. Never while serving."""
        ...

    async def drop(self) -> None:
        """Remove the index with every point of every book. It is closed then."""
        ...

    async def ping(self) -> None:
        """Raise IndexUnavailable when the index does not answer."""
        ...

    async def close(self) -> None: ...


async def load_some(index: VectorIndex, book_id: str, most: int) -> list[tuple[str, bool]]:
    """The first points of a book, each with whether it has a dense vector."""
    points: list[tuple[str, bool]] = []
    async for point in index.scroll_points(book_id):
        points.append(point)
        if len(points) == most:
            break
    return points
