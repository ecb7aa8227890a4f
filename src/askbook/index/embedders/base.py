"""What askbook asks of an embedder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float32]


class Embedder(Protocol):
    """Texts in, unit vectors out. `name` changes whenever the vectors would."""

    @property
    def name(self) -> str: ...

    @property
    def dimension(self) -> int: ...

    async def embed_passages(self, texts: Sequence[str]) -> list[Vector]: ...

    async def embed_query(self, text: str) -> Vector: ...

    async def close(self) -> None: ...


def to_unit(vector: npt.NDArray[np.floating]) -> Vector:
    """Of length one; a vector of zeros stays as it is."""
    length = float(np.linalg.norm(vector))
    return (vector / length if length else vector).astype(np.float32)
