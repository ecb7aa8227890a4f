"""An embedding service over HTTP: every answer is checked before it is believed."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal

import numpy as np

from askbook.breaker import Breaker
from askbook.errors import EmbedderUnavailable
from askbook.index.embedders.base import Vector, to_unit
from askbook.index.remote import Endpoint, Patience, Unusable, sendable

Purpose = Literal["passage", "query"]


class RemoteEmbedder:
    """A subclass says which service it is, what it asks and where the vectors stand in the answer."""

    vendor: ClassVar[str]
    service: ClassVar[str]
    key_setting: ClassVar[str]
    base_url: ClassVar[str]
    dimensions: ClassVar[Mapping[str, int]]
    """The first is the default."""
    batch: ClassVar[int]
    path: ClassVar[str]
    code: ClassVar[str]

    def __init__(
        self,
        api_key: str,
        model: str | None = None,
        base_url: str | None = None,
        patience: Patience | None = None,
        breaker: Breaker | None = None,
        query_seconds: float | None = None,
        when_measured: Callable[[int], Awaitable[None]] | None = None,
    ) -> None:
        """`query_seconds`: how long a question may wait; None: as long as a passage. `when_measured` gets the dimension
        of an unknown model before its first vectors are returned."""
        self._model = model or next(iter(self.dimensions))
        self._dimension = self.dimensions.get(self._model, 0)
        self._query_seconds = query_seconds
        self._when_measured = when_measured
        url, patience = base_url or self.base_url, patience or Patience()
        self._endpoint = Endpoint(
            self.service, url, api_key, self.key_setting, patience, EmbedderUnavailable, breaker, self.code
        )

    @abstractmethod
    def _write(self, texts: list[str], about: Purpose) -> dict[str, Any]:
        """The request."""

    @abstractmethod
    def _rows(self, answer: Any) -> Any:
        """Of the answer, or None where it has none."""

    @property
    def name(self) -> str:
        return f"{self.vendor}/{self._model}"

    @property
    def dimension(self) -> int:
        """0 until the first vectors of a model that is not known here."""
        return self._dimension

    async def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        starts = range(0, len(texts), self.batch)
        return [vector for at in starts for vector in await self._embed(texts[at : at + self.batch], "passage")]

    async def embed_query(self, text: str) -> Vector:
        return (await self._embed([text], "query"))[0]

    async def close(self) -> None:
        await self._endpoint.close()

    async def _embed(self, texts: Sequence[str], about: Purpose) -> list[Vector]:
        vectors = await self._endpoint.post(
            self.path,
            self._write([sendable(text) for text in texts], about),
            lambda answer: self._check(self._rows(answer), len(texts)),
            self._query_seconds if about == "query" else None,
        )
        if not self._dimension:
            if self._when_measured is not None:
                await self._when_measured(len(vectors[0]))
            self._dimension = len(vectors[0])
        return vectors

    def _check(self, rows: Any, count: int) -> list[Vector]:
        if not isinstance(rows, list) or len(rows) != count:
            raise Unusable(f"did not answer with {count} vectors")
        try:
            matrix = np.asarray(rows, dtype=np.float64)
        except (ValueError, TypeError) as error:
            raise Unusable("answered with something that is not a vector") from error
        if matrix.ndim != 2 or matrix.shape[1] != (self._dimension or matrix.shape[1]):
            raise Unusable(f"answered with vectors that do not have {self._dimension} dimensions")
        if not np.isfinite(matrix).all() or not matrix.any(axis=1).all():
            raise Unusable("answered with a vector that is not finite, or all zeros")
        return [to_unit(row) for row in matrix]
