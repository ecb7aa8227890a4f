"""A Qdrant server or cluster, over its HTTP API."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import stamina

from askbook.errors import AskbookError, IndexUnavailable
from askbook.index.vectors.checks import check_dimension
from askbook.index.vectors.payload import DENSE, INDEXED, KEYWORDS, IndexKind
from askbook.index.vectors.qdrant import QdrantIndex

if TYPE_CHECKING:
    from qdrant_client import AsyncQdrantClient

Quantization = Literal["none", "scalar"]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Seconds for one call, its retries included."""

    read: float = 2.5
    write: float = 60.0


@dataclass(frozen=True, slots=True)
class Layout:
    """How a new collection is spread over a cluster; an existing one is left unchanged."""

    shards: int = 1
    replicas: int = 1
    on_disk: bool = False
    quantization: Quantization = "none"


class ServerIndex(QdrantIndex):
    page = 1000

    def __init__(
        self,
        client: AsyncQdrantClient,
        collection: str,
        dimension: int,
        layout: Layout | None = None,
        deadlines: Deadlines | None = None,
    ) -> None:
        super().__init__(dimension)
        self._client = client
        self._collection = collection
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

    async def flush(self) -> None:
        """Every write was waited for: the server has it in its log."""

    async def optimize(self) -> None:
        """The server does it by itself."""

    async def drop(self) -> None:
        await self._write(lambda: self._client.delete_collection(self._collection))
        await self.close()

    # --- points

    @property
    def _words(self) -> Any:
        from qdrant_client import models

        return models

    async def _upsert(self, points: list[Any]) -> None:
        await self._write(lambda: self._client.upsert(self._collection, points, wait=True))

    async def _overwrite_known(self, vectors: Mapping[str, Any]) -> None:
        async def overwrite() -> None:
            records = await self._client.retrieve(self._collection, list(vectors), with_payload=False)
            known = [str(record.id) for record in records]
            if known:
                named = [self._words.PointVectors(id=point_id, vector=vectors[point_id]) for point_id in known]
                await self._client.update_vectors(self._collection, named, wait=True)

        await self._write(overwrite)

    async def _delete(self, point_ids: list[str]) -> None:
        await self._write(lambda: self._client.delete(self._collection, list(point_ids), wait=True))

    async def _retrieve(self, point_ids: list[str]) -> Iterable[Any]:
        return await self._read(
            lambda: self._client.retrieve(self._collection, point_ids, with_payload=False, with_vectors=[DENSE])
        )

    async def _nearest(self, query: Any, using: str, wanted: Any, limit: int, exact: bool) -> Iterable[Any]:
        # Quantised vectors find the candidates; the score is that of the vectors themselves.
        exactly = self._words.QuantizationSearchParams(rescore=True, oversampling=2.0)
        quantised = using == DENSE and self._layout.quantization != "none"
        found = await self._read(
            lambda: self._client.query_points(
                self._collection,
                query=query,
                using=using,
                query_filter=wanted,
                search_params=self._words.SearchParams(quantization=exactly) if quantised else None,
                limit=limit,
                with_payload=False,
            )
        )
        return found.points

    async def _scroll(self, wanted: Any, offset: Any) -> tuple[Iterable[Any], Any]:
        return await self._read(
            lambda: self._client.scroll(
                self._collection, scroll_filter=wanted, limit=self.page, offset=offset, with_payload=False
            )
        )

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
            config = self._words.DenseVectorNameConfig(dense=self._words.DenseVectorConfig(**self._dense()))
            await self._write(lambda: self._client.create_vector_name(self._collection, DENSE, config))
        for name in INDEXED.keys() - (info.payload_schema or {}).keys():
            await self._write(lambda name=name: self._index_field(name))

    async def _create(self) -> None:
        layout, words = self._layout, self._words
        dense = {DENSE: words.VectorParams(**self._dense(), on_disk=layout.on_disk)}
        sparse = words.SparseVectorParams(index=words.SparseIndexParams(on_disk=layout.on_disk))
        scalar = words.ScalarQuantizationConfig(type=words.ScalarType.INT8, quantile=0.99, always_ram=True)
        quantization = None if layout.quantization == "none" else words.ScalarQuantization(scalar=scalar)
        try:
            await self._write(
                lambda: self._client.create_collection(
                    self._collection,
                    vectors_config=dense if self._dimension else {},
                    sparse_vectors_config={KEYWORDS: sparse},
                    shard_number=layout.shards,
                    replication_factor=layout.replicas,
                    quantization_config=quantization,
                )
            )
        except IndexUnavailable:
            # Another process may have made it between the look and the leap.
            if not await self._read(lambda: self._client.collection_exists(self._collection)):
                raise

    def _dense(self) -> dict[str, Any]:
        return {"size": self._dimension, "distance": self._words.Distance.COSINE}

    async def _index_field(self, name: str) -> None:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Payload indexes have no effect in the local Qdrant")
            params = _index_params(self._words, INDEXED[name])
            await self._client.create_payload_index(self._collection, name, params, wait=True)

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


def _index_params(words: Any, kind: IndexKind) -> Any:
    if kind == "integer":
        return words.IntegerIndexParams(type=words.IntegerIndexType.INTEGER, lookup=True, range=True)
    return words.KeywordIndexParams(
        type=words.KeywordIndexType.KEYWORD,
        is_tenant=True if kind == "tenant" else None,
        prefix=True if kind == "prefix" else None,
    )
