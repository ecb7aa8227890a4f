"""What a point must be before any index is touched: an index that refuses the third of ten has already kept two."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, pairwise
from typing import Protocol, TypeVar
from uuid import UUID

import numpy as np

from askbook.errors import IndexMismatch
from askbook.index.embedders.base import Vector
from askbook.index.vectors.base import Hit, Point, Sparse

BATCH = 64
OFF_LENGTH = 0.01
"""Of a vector that was rounded on its way; what was written over is further off."""
T = TypeVar("T")


class Scored(Protocol):
    @property
    def id(self) -> object: ...

    @property
    def score(self) -> float: ...


def check_points(points: Sequence[Point], dimension: int) -> None:
    for point in points:
        check_id(point.point_id)
        check_sparse(point.keywords)
        if point.dense is not None:
            check_vector(point.dense, dimension)


def check_id(point_id: str) -> None:
    if str(UUID(point_id)) != point_id:
        raise ValueError(f"{point_id!r} is not a UUID in its usual form")


def check_vector(vector: Vector, dimension: int) -> None:
    if vector.shape != (dimension,):
        raise ValueError(f"a vector of shape {vector.shape} in an index of {dimension} dimensions")
    if not np.isfinite(vector).all():
        raise ValueError("a vector that is not finite")


def is_sound(vector: Vector) -> bool:
    """As the embedders make them and the engines keep them: finite, and of length one."""
    return bool(abs(np.linalg.norm(vector.astype(np.float64)) - 1) < OFF_LENGTH)


def check_sparse(sparse: Sparse) -> None:
    if len(sparse.indices) != len(sparse.values):
        raise ValueError("a sparse vector with more indices than values, or fewer")
    if any(left >= right for left, right in pairwise(sparse.indices)):
        raise ValueError("a sparse vector whose indices do not ascend")
    if sparse.indices and not (sparse.indices[0] >= 0 and sparse.indices[-1] < 2**32):
        raise ValueError("a sparse vector with an index beyond 32 bits")
    if not np.isfinite(sparse.values).all():
        raise ValueError("a sparse vector that is not finite")


def check_dimension(stored: int, asked: int) -> None:
    """An index without dense vectors can be given them; zero asked means that only its keywords are wanted."""
    if stored and asked and stored != asked:
        raise IndexMismatch(
            f"The index holds vectors of {stored} dimensions, the embedder makes {asked}",
            "Choose the embedder that built the index, or run `askbook ingest --mode recreate`.",
        )


def split_batches(items: Iterable[T], size: int = BATCH) -> Iterator[list[T]]:
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch


def to_hits(found: Iterable[Scored]) -> list[Hit]:
    """Best first, ties by id: no engine promises the order of ties."""
    return sorted(
        (Hit(str(point.id), float(point.score)) for point in found), key=lambda hit: (-hit.score, hit.point_id)
    )
