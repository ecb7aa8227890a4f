"""A Qdrant server or cluster, over its HTTP API."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
import stamina

from askbook.domain import Filters
from askbook.errors import AskbookError, IndexUnavailable
from askbook.index.embedders.base import Vector
from askbook.index.vectors.base import Hit, Point, Sparse
from askbook.index.vectors.checks import (
    check_dimension,
    check_points,
    check_sparse,
    check_vector,
    split_batches,
    to_hits,
)
from askbook.index.vectors.payload import DENSE, INDEXED, KEYWORDS, IndexKind, build_filter, to_payload

if TYPE_CHECKING:
    from qdrant_client import AsyncQdrantClient

PAGE = 1000
Quantization = Literal["none", "scalar"]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Seconds for one call, its retries included."""

    read: float = 2.5
    write: float = 60.0


@dataclass(frozen=True, slots=True)
class Layout:
    """How a new collection lies in a cluster; one that is there already stays as it is."""

    shards: int = 1
    replicas: int = 1
    on_disk: bool = False
    quantization: Quantization = "none"


class ServerIndex:
    def __init__(
        self,
        client: AsyncQdrantClient,
        collection: str,
        dimension: int,
        layout: Layout | None = None,
        deadlines: Deadlines | None = None,
    ) -> None:
        self._client = client
        self._collection = collection
        self._dimension = dimension
        self._layout = layout or Layout()
        self._deadlines = deadlines or Deadlines()

    @classmethod
    async def open(
        cls,
        url: str,
        api_key: str | None,
        collection: str,
        dimension: int,
        layout: Layout | None = None,
        deadlines: Deadlines | None = None,
    ) -> ServerIndex:
        """`dimension` 0: keywords only, whatever vectors the collection holds."""
        try:
            from qdrant_client import AsyncQdrantClient
        except ImportError as error:
            raise IndexUnavailable(
                "QDRANT_URL is set, and the Qdrant client is not installed", "Run `pip install 'askbook[server]'`."
            ) from error

        # The version check would be a blocking request, and the deadlines are kept here.
        client = AsyncQdrantClient(url=url, api_key=api_key, timeout=600, check_compatibility=False)
        return await cls.over(client, collection, dimension, layout, deadlines)

    @classmethod
    async def over(
        cls,
        client: AsyncQdrantClient,
        collection: str,
        dimension: int,
        layout: Layout | None = None,
        deadlines: Deadlines | None = None,
    ) -> ServerIndex:
        """On a client that is open already, such as one in local mode. The index closes it."""
        index = cls(client, collection, dimension, layout, deadlines)
        try:
            await index._prepare()
        except BaseException:
            await index.close()
            raise
        return index

    # --- writing

    async def take_dimension(self, dimension: int) -> None:
        before, self._dimension = self._dimension, dimension
        try:
            await self._prepare()
        except BaseException:
            self._dimension = before
            raise

    async def save_points(self, points: Sequence[Point]) -> None:
        check_points(points, self._dimension)
        for batch in split_batches(points):
            structs = [_to_struct(point) for point in batch]
            await self._write(lambda structs=structs: self._client.upsert(self._collection, structs, wait=True))

    async def save_vectors(self, vectors: Mapping[str, Vector]) -> None:
        for vector in vectors.values():
            check_vector(vector, self._dimension)
        for batch in split_batches(vectors):
            await self._write(lambda batch=batch: self._save_vectors({one: vectors[one] for one in batch}))

    async def _save_vectors(self, vectors: Mapping[str, Vector]) -> None:
        from qdrant_client import models

        # One missing point fails the whole update.
        records = await self._client.retrieve(self._collection, list(vectors), with_payload=False)
        known = [str(record.id) for record in records]
        if known:
            named = [models.PointVectors(id=one, vector={DENSE: vectors[one].tolist()}) for one in known]
            await self._client.update_vectors(self._collection, named, wait=True)

    async def forget_points(self, point_ids: Sequence[str]) -> None:
        for batch in split_batches(point_ids, PAGE):
            await self._write(lambda batch=batch: self._client.delete(self._collection, list(batch), wait=True))

    async def flush(self) -> None:
        """Every write was waited for: the server has it in its log."""

    async def optimize(self) -> None:
        """The server does it by itself."""

    async def drop(self) -> None:
        await self._write(lambda: self._client.delete_collection(self._collection))
        await self.close()

    # --- reading

    async def load_vectors(self, point_ids: Sequence[str]) -> dict[str, Vector]:
        if not self._dimension:
            return {}
        loaded: dict[str, Vector] = {}
        for batch in split_batches(point_ids, PAGE):
            records = await self._read(
                lambda batch=batch: self._client.retrieve(
                    self._collection, list(batch), with_payload=False, with_vectors=[DENSE]
                )
            )
            named: list[tuple[str, Any]] = [(str(record.id), record.vector) for record in records]
            loaded |= {one: np.asarray(v[DENSE], dtype=np.float32) for one, v in named if v and DENSE in v}
        return loaded

    async def find_dense(
        self, vector: Vector, filters: Filters, limit: int, among: Sequence[str] | None = None
    ) -> list[Hit]:
        check_vector(vector, self._dimension)
        return await self._find(vector.tolist(), DENSE, filters, limit, among)

    async def find_keywords(
        self, keywords: Sparse, filters: Filters, limit: int, among: Sequence[str] | None = None
    ) -> list[Hit]:
        check_sparse(keywords)
        return await self._find(_to_sparse(keywords), KEYWORDS, filters, limit, among)

    async def _find(
        self, query: Any, using: str, filters: Filters, limit: int, among: Sequence[str] | None
    ) -> list[Hit]:
        from qdrant_client import models

        if using == KEYWORDS and not query.indices:
            return []
        wanted = build_filter(models, filters, among)
        # Quantised vectors find the candidates; the score is that of the vectors themselves.
        exactly = models.QuantizationSearchParams(rescore=True, oversampling=2.0)
        quantised = using == DENSE and self._layout.quantization != "none"
        found = await self._read(
            lambda: self._client.query_points(
                self._collection,
                query=query,
                using=using,
                query_filter=wanted,
                search_params=models.SearchParams(quantization=exactly) if quantised else None,
                limit=limit,
                with_payload=False,
            )
        )
        return to_hits(found.points)

    async def scroll_points(self, book_id: str) -> AsyncIterator[tuple[str, bool]]:
        from qdrant_client import models

        of_book = build_filter(models, Filters(book_id))
        offset: Any = None
        while True:
            point_ids, offset = await self._page(of_book, offset)
            embedded = await self._embedded(point_ids) if self._dimension and point_ids else frozenset[str]()
            for point_id in point_ids:
                yield point_id, point_id in embedded
            if offset is None:
                return

    async def _embedded(self, point_ids: list[str]) -> frozenset[str]:
        from qdrant_client import models

        conditions = [models.HasIdCondition(has_id=list(point_ids)), models.HasVectorCondition(has_vector=DENSE)]
        return frozenset((await self._page(models.Filter(must=list(conditions)), None))[0])

    async def _page(self, wanted: Any, offset: Any) -> tuple[list[str], Any]:
        records, following = await self._read(
            lambda: self._client.scroll(
                self._collection, scroll_filter=wanted, limit=PAGE, offset=offset, with_payload=False
            )
        )
        return [str(record.id) for record in records], following

    async def ping(self) -> None:
        await self._read(lambda: self._client.get_collection(self._collection))

    async def close(self) -> None:
        await self._client.close()

    # --- the collection

    async def _prepare(self) -> None:
        if not await self._read(lambda: self._client.collection_exists(self._collection)):
            await self._create()
        info = await self._read(lambda: self._client.get_collection(self._collection))
        dense: Any = info.config.params.vectors
        stored = int(dense[DENSE].size) if isinstance(dense, dict) and DENSE in dense else 0
        check_dimension(stored, self._dimension)
        if self._dimension and not stored:
            await self._add_dense()
        for name in INDEXED.keys() - (info.payload_schema or {}).keys():
            await self._write(lambda name=name: self._index_field(name))

    async def _create(self) -> None:
        from qdrant_client import models

        layout = self._layout
        dense = {DENSE: models.VectorParams(**self._dense(), on_disk=layout.on_disk)}
        try:
            await self._write(
                lambda: self._client.create_collection(
                    self._collection,
                    vectors_config=dense if self._dimension else {},
                    sparse_vectors_config={
                        KEYWORDS: models.SparseVectorParams(index=models.SparseIndexParams(on_disk=layout.on_disk))
                    },
                    shard_number=layout.shards,
                    replication_factor=layout.replicas,
                    quantization_config=_quantization(layout),
                )
            )
        except IndexUnavailable:
            # Another process may have made it between the look and the leap.
            if not await self._read(lambda: self._client.collection_exists(self._collection)):
                raise

    async def _add_dense(self) -> None:
        from qdrant_client import models

        config = models.DenseVectorNameConfig(dense=models.DenseVectorConfig(**self._dense()))
        await self._write(lambda: self._client.create_vector_name(self._collection, DENSE, config))

    def _dense(self) -> Any:
        from qdrant_client import models

        return {"size": self._dimension, "distance": models.Distance.COSINE}

    async def _index_field(self, name: str) -> None:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Payload indexes have no effect in the local Qdrant")
            await self._client.create_payload_index(self._collection, name, _index_params(INDEXED[name]), wait=True)

    # --- one retry layer, one place where foreign errors end

    async def _read(self, call: Callable[[], Awaitable[T]]) -> T:
        return await self._patiently(call, self._deadlines.read, tries=2)

    async def _write(self, call: Callable[[], Awaitable[T]]) -> T:
        """Every write may be sent twice: points are named by the caller and overwrite themselves."""
        return await self._patiently(call, self._deadlines.write, tries=3)

    async def _patiently(self, call: Callable[[], Awaitable[T]], deadline: float, tries: int) -> T:
        attempts = stamina.retry_context(
            on=_worth_a_retry, attempts=tries, timeout=None, wait_initial=0.2, wait_max=2.0, wait_jitter=0.2
        )
        try:
            async with asyncio.timeout(deadline):
                async for attempt in attempts:
                    with attempt:
                        return await call()
        except AskbookError:
            raise
        except TimeoutError as error:
            raise _unavailable(f"gave no answer within {deadline:g} s") from error
        except Exception as error:
            raise _unavailable(_reason(error)) from error
        raise AssertionError("an attempt returns or raises")


def _worth_a_retry(error: Exception) -> bool | float:
    """A number: after so many seconds, as the server asked."""
    from httpx import TransportError
    from qdrant_client.common.client_exceptions import ResourceExhaustedResponse
    from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

    if isinstance(error, UnexpectedResponse):
        return error.status_code is None or error.status_code == 429 or error.status_code >= 500
    if isinstance(error, ResponseHandlingException):
        return isinstance(error.source, TransportError)
    return float(error.retry_after_s) if isinstance(error, ResourceExhaustedResponse) else False


def _reason(error: Exception) -> str:
    from httpx import TransportError
    from qdrant_client.common.client_exceptions import ResourceExhaustedResponse
    from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

    if isinstance(error, UnexpectedResponse) and error.status_code in (401, 403):
        return "refused the key"
    if isinstance(error, UnexpectedResponse):
        return f"answered {error.status_code}"
    if isinstance(error, ResourceExhaustedResponse):
        return "answered 429"
    if isinstance(error, ResponseHandlingException) and isinstance(error.source, TransportError):
        return "cannot be reached"
    return f"failed ({type(error).__name__})"


def _unavailable(what: str) -> IndexUnavailable:
    return IndexUnavailable(f"The Qdrant server {what}", "Check QDRANT_URL, QDRANT_API_KEY and that it is running.")


def _quantization(layout: Layout) -> Any:
    from qdrant_client import models

    if layout.quantization == "none":
        return None
    scalar = models.ScalarQuantizationConfig(type=models.ScalarType.INT8, quantile=0.99, always_ram=True)
    return models.ScalarQuantization(scalar=scalar)


def _index_params(kind: IndexKind) -> Any:
    from qdrant_client import models

    if kind == "integer":
        return models.IntegerIndexParams(type=models.IntegerIndexType.INTEGER, lookup=True, range=True)
    return models.KeywordIndexParams(
        type=models.KeywordIndexType.KEYWORD,
        is_tenant=True if kind == "tenant" else None,
        prefix=True if kind == "prefix" else None,
    )


def _to_struct(point: Point) -> Any:
    from qdrant_client import models

    vectors: dict[str, Any] = {KEYWORDS: _to_sparse(point.keywords)}
    if point.dense is not None:
        vectors[DENSE] = point.dense.tolist()
    return models.PointStruct(id=point.point_id, vector=vectors, payload=to_payload(point.chunk))


def _to_sparse(sparse: Sparse) -> Any:
    from qdrant_client import models

    return models.SparseVector(indices=list(sparse.indices), values=list(sparse.values))
