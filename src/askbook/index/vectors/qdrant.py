"""What Qdrant does in this process and on a server alike: checks, batches, and words for points and questions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from askbook.domain import Filters
from askbook.index.embedders.base import Vector
from askbook.index.vectors.base import Hit, Point, Sparse
from askbook.index.vectors.checks import check_points, check_sparse, check_vector, split_batches, to_hits
from askbook.index.vectors.payload import DENSE, KEYWORDS, build_filter, filter_embedded, is_edge, to_payload


class QdrantIndex:
    page: ClassVar[int]
    """How many points are read or forgotten at once."""

    def __init__(self, dimension: int) -> None:
        self._dimension = dimension

    # --- what the engines do each in their own way

    @property
    @abstractmethod
    def _words(self) -> Any:
        """qdrant_edge or qdrant_client.models: they name their values alike."""

    @abstractmethod
    async def _upsert(self, points: list[Any]) -> None: ...

    @abstractmethod
    async def _overwrite_known(self, vectors: Mapping[str, Any]) -> None:
        """Of the points that are there: one missing point fails an update, after some of it was applied."""

    @abstractmethod
    async def _delete(self, point_ids: list[str]) -> None: ...

    @abstractmethod
    async def _retrieve(self, point_ids: list[str]) -> Iterable[Any]:
        """With their dense vectors."""

    @abstractmethod
    async def _nearest(self, query: Any, using: str, wanted: Any, limit: int, exact: bool) -> Iterable[Any]: ...

    @abstractmethod
    async def _scroll(self, wanted: Any, offset: Any) -> tuple[Iterable[Any], Any]:
        """A page of points, and where the next one begins."""

    # --- writing

    async def save_points(self, points: Sequence[Point]) -> None:
        check_points(points, self._dimension)
        for batch in split_batches(points):
            await self._upsert([self._to_point(point) for point in batch])

    async def save_vectors(self, vectors: Mapping[str, Vector]) -> None:
        for vector in vectors.values():
            check_vector(vector, self._dimension)
        for batch in split_batches(vectors):
            await self._overwrite_known({point_id: {DENSE: vectors[point_id].tolist()} for point_id in batch})

    async def forget_points(self, point_ids: Sequence[str]) -> None:
        for batch in split_batches(point_ids, self.page):
            await self._delete(batch)

    # --- reading

    async def load_vectors(self, point_ids: Sequence[str]) -> dict[str, Vector]:
        loaded: dict[str, Vector] = {}
        for batch in split_batches(point_ids, self.page) if self._dimension else ():
            for record in await self._retrieve(batch):
                if record.vector and DENSE in record.vector:
                    loaded[str(record.id)] = np.asarray(record.vector[DENSE], dtype=np.float32)
        return loaded

    async def find_dense(
        self, vector: Vector, filters: Filters, limit: int, among: Sequence[str] | None = None
    ) -> list[Hit]:
        check_vector(vector, self._dimension)
        wanted = build_filter(self._words, filters, among)
        return to_hits(await self._nearest(vector.tolist(), DENSE, wanted, limit, exact=among is not None))

    async def find_keywords(
        self, keywords: Sparse, filters: Filters, limit: int, among: Sequence[str] | None = None
    ) -> list[Hit]:
        check_sparse(keywords)
        if not keywords.indices:
            return []
        wanted = build_filter(self._words, filters, among)
        return to_hits(await self._nearest(self._to_sparse(keywords), KEYWORDS, wanted, limit, exact=True))

    async def scroll_points(self, book_id: str) -> AsyncIterator[tuple[str, bool]]:
        words, offset = self._words, None
        of_book = build_filter(words, Filters(book_id))
        while True:
            records, offset = await self._scroll(of_book, offset)
            point_ids, embedded = [str(record.id) for record in records], frozenset[str]()
            if self._dimension and point_ids:
                with_vector = filter_embedded(words, point_ids)
                embedded = frozenset(str(record.id) for record in (await self._scroll(with_vector, None))[0])
            for point_id in point_ids:
                yield point_id, point_id in embedded
            if offset is None:
                return

    # --- words

    def _to_point(self, point: Point) -> Any:
        vectors: dict[str, Any] = {KEYWORDS: self._to_sparse(point.keywords)}
        if point.dense is not None:
            vectors[DENSE] = point.dense.tolist()
        words = self._words
        kind = words.Point if is_edge(words) else words.PointStruct
        return kind(id=point.point_id, vector=vectors, payload=to_payload(point.chunk))

    def _to_sparse(self, sparse: Sparse) -> Any:
        return self._words.SparseVector(indices=list(sparse.indices), values=list(sparse.values))
