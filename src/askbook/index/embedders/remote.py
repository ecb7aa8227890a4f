"""An embedding service over HTTP: every answer is checked before it is believed."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np

from askbook.errors import EmbedderUnavailable
from askbook.index.embedders.base import Vector, to_unit
from askbook.index.remote import Endpoint, Patience, sendable

Purpose = Literal["passage", "query"]


class RemoteEmbedder:
    """A subclass says which service it is, what it asks and where the vectors stand in the answer."""

    vendor: ClassVar[str]
    service: ClassVar[str]
    key_setting: ClassVar[str]
    dimensions: ClassVar[Mapping[str, int]]
    batch: ClassVar[int]

    def __init__(self, api_key: str, model: str, base_url: str, patience: Patience) -> None:
        self._model = model
        self._dimension = self.dimensions.get(model, 0)
        self._endpoint = Endpoint(self.service, base_url, api_key, self.key_setting, patience, EmbedderUnavailable)

    @abstractmethod
    async def _ask(self, texts: list[str], about: Purpose) -> Any:
        """The rows of the answer, or None where it has none."""

    @property
    def name(self) -> str:
        return f"{self.vendor}/{self._model}"

    @property
    def dimension(self) -> int:
        return self._dimension

    async def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        starts = range(0, len(texts), self.batch)
        return [one for at in starts for one in await self._embed(texts[at : at + self.batch], "passage")]

    async def embed_query(self, text: str) -> Vector:
        return (await self._embed([text], "query"))[0]

    async def close(self) -> None:
        await self._endpoint.close()

    async def _learn_dimension(self) -> Self:
        """Of a model it does not know, the dimension is asked by embedding a word."""
        if not self._dimension:
            try:
                self._dimension = len((await self._embed(["dimension"], "passage"))[0])
            except BaseException:
                await self.close()
                raise
        return self

    async def _embed(self, texts: Sequence[str], about: Purpose) -> list[Vector]:
        rows = await self._ask([sendable(text) for text in texts], about)
        return self._check(rows, len(texts))

    def _check(self, rows: Any, count: int) -> list[Vector]:
        failed = self._endpoint.failed
        if not isinstance(rows, list) or len(rows) != count:
            raise failed(f"did not answer with {count} vectors")
        try:
            matrix = np.asarray(rows, dtype=np.float64)
        except (ValueError, TypeError) as error:
            raise failed("answered with something that is not a vector") from error
        if matrix.ndim != 2 or matrix.shape[1] != (self._dimension or matrix.shape[1]):
            raise failed(f"answered with vectors that do not have {self._dimension} dimensions")
        if not np.isfinite(matrix).all() or not matrix.any(axis=1).all():
            raise failed("answered with a vector that is not finite, or all zeros")
        return [to_unit(row) for row in matrix]
