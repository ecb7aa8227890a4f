"""Qdrant's engine in this process, on a folder of this machine.

No graph is ever built: a search scans, and misses nothing after heavy rewriting. Of a large index `optimize()` rounds
the vectors to a byte a number. The scan then takes .4 of the time, and what it finds is scored again by the exact
vectors: docs/decisions/0009-qdrant-edge-searches-exactly.md.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import qdrant_edge as edge

from askbook.errors import AskbookError, DataInUse, IndexUnavailable, StorageError
from askbook.index.vectors.base import LOST
from askbook.index.vectors.checks import check_dimension
from askbook.index.vectors.payload import DENSE, INDEXED, KEYWORDS, IndexKind
from askbook.index.vectors.qdrant import QdrantIndex

CONFIG = "edge_config.json"
ROUNDED_FROM, OVERSAMPLING = 50_000, 4.0
"""Points from which on `optimize()` rounds vectors, and how many times more are found by those than are asked for."""
NEVER = 2**40
ROOM = 64 * 2**20
"""Free bytes that a write needs: on a full disk the engine's memory maps kill the process (SIGBUS)."""

T = TypeVar("T")
Update = edge.UpdateOperation


class EdgeIndex(QdrantIndex):
    """One process owns the folder, and one thread enters the shard."""

    page = 256

    def __init__(self, path: Path, dimension: int, rounded_from: int = ROUNDED_FROM) -> None:
        super().__init__(dimension)
        self._path = path
        self._rounded_from = rounded_from
        self._thread = ThreadPoolExecutor(1, "qdrant-edge")
        self._lock: int | None = None
        self._shard: edge.EdgeShard | None = None

    @classmethod
    async def open(cls, path: Path, dimension: int, anew: bool = False, rounded_from: int = ROUNDED_FROM) -> EdgeIndex:
        """`dimension` 0: keywords only, whatever vectors the folder holds. `anew`: what it holds is deleted."""
        index = cls(path, dimension, rounded_from)
        try:
            await index._run(partial(index._open, anew))
        except BaseException:
            await index.close()
            raise
        return index

    # --- writing

    async def take_dimension(self, dimension: int) -> None:
        await self._run(lambda: self._fit(self._open_shard, dimension))

    async def flush(self) -> None:
        await self._run(lambda: self._open_shard.flush())

    async def optimize(self) -> None:
        def optimize() -> None:
            _check_room(self._path, needed=sum(file.stat().st_blocks * 512 for file in self._path.rglob("*")))
            self._open_shard.optimize()

        await self._run(optimize)

    async def drop(self) -> None:
        await self.close()
        await asyncio.to_thread(shutil.rmtree, self._path)

    # --- points

    @property
    def _words(self) -> Any:
        return edge

    async def _upsert(self, points: list[edge.Point]) -> None:
        await self._update(Update.upsert_points(points))

    async def _overwrite_known(self, vectors: Mapping[str, Any]) -> None:
        def overwrite() -> None:
            _check_room(self._path)
            known = [str(record.id) for record in self._open_shard.retrieve(list(vectors), False, False)]
            if known:
                named = [edge.PointVectors(point_id, vectors[point_id]) for point_id in known]
                self._open_shard.update(Update.update_vectors(named))

        await self._run(overwrite)

    async def _delete(self, point_ids: list[str]) -> None:
        await self._update(Update.delete_points(list(point_ids)))

    async def _update(self, operation: edge.UpdateOperation) -> None:
        def update() -> None:
            _check_room(self._path)
            self._open_shard.update(operation)

        await self._run(update)

    async def _retrieve(self, point_ids: list[str]) -> Iterable[Any]:
        return await self._run(lambda: self._open_shard.retrieve(list(point_ids), False, [DENSE]))

    async def _nearest(self, query: Any, using: str, wanted: Any, limit: int, exact: bool) -> Iterable[Any]:
        rounded = edge.QuantizationSearchParams(rescore=True, oversampling=OVERSAMPLING)
        request = edge.QueryRequest(
            query=edge.Query.Nearest(query, using=using),
            filter=wanted,
            limit=limit,
            params=edge.SearchParams(exact=True) if exact else edge.SearchParams(quantization=rounded),
            with_payload=False,
        )
        return await self._run(lambda: self._open_shard.query(request))

    async def _scroll(self, wanted: Any, offset: Any) -> tuple[Iterable[Any], Any]:
        request = edge.ScrollRequest(
            offset=offset, limit=self.page, filter=wanted, with_payload=False, with_vector=False
        )
        return await self._run(lambda: self._open_shard.scroll(request))

    async def ping(self) -> None:
        await self._run(lambda: self._open_shard.info())

    async def close(self) -> None:
        try:
            if self._lock is not None:
                await self._run(self._close)
        finally:
            self._thread.shutdown(wait=False)

    # --- on the thread

    async def _run(self, work: Callable[[], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, _translated, work)
        except RuntimeError as error:
            raise IndexUnavailable("The index is closed") from error

    @property
    def _open_shard(self) -> edge.EdgeShard:
        if self._shard is None:
            raise IndexUnavailable("The index is closed")
        return self._shard

    def _open(self, anew: bool) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = _lock(self._path)
        _check_room(self._path.parent)
        # A killed optimize() leaves half-built segments, a killed create half an index.
        shutil.rmtree(self._path / "temp_segments", ignore_errors=True)
        shutil.rmtree(_beside(self._path, "new"), ignore_errors=True)
        shutil.rmtree(_beside(self._path, "old"), ignore_errors=True)
        if anew or not _holds_index(self._path):
            _create(self._path, self._config(self._dimension))
        stored = _stored_dimension(self._path)
        if stored is None:
            # Half-written: without it the engine reads the same from its segments.
            (self._path / CONFIG).unlink(missing_ok=True)
        self._shard = _load(self._path, None if stored is None else self._config(stored))
        self._fit(self._shard, self._dimension)

    def _fit(self, shard: edge.EdgeShard, dimension: int) -> None:
        stored = _stored_dimension(self._path) or 0
        check_dimension(stored, dimension)
        missing = INDEXED.keys() - shard.info().payload_schema.keys()
        for name in missing:
            shard.update(Update.create_field_index(name, _index_params(INDEXED[name])))
        if dimension and not stored:
            shard.update(Update.create_dense_vector(DENSE, dimension, edge.Distance.Cosine))
        if missing or stored != dimension:
            shard.flush()
        if dimension and not stored:
            # How its vectors are rounded is told when a shard is loaded.
            shard.close()
            self._shard = _load(self._path, self._config(dimension))
        self._dimension = dimension

    def _config(self, dimension: int) -> edge.EdgeConfig:
        params = edge.EdgeVectorParams(
            size=dimension,
            distance=edge.Distance.Cosine,
            quantization_config=edge.ScalarQuantizationConfig(edge.ScalarType.Int8, always_ram=True),
            hnsw_config=edge.HnswIndexConfig(m=0, ef_construct=4, full_scan_threshold=0),
        )
        kilobytes = self._rounded_from * dimension * 4 // 1024
        return edge.EdgeConfig(
            vectors={DENSE: params} if dimension else None,
            sparse_vectors={KEYWORDS: edge.EdgeSparseVectorParams()},
            optimizers=edge.EdgeOptimizersConfig(indexing_threshold=kilobytes or NEVER),
            wal_enabled=True,
        )

    def _close(self) -> None:
        shard, self._shard = self._shard, None
        lock, self._lock = self._lock, None
        try:
            if shard is not None:
                shard.flush()
                shard.close()
        finally:
            if lock is not None:
                os.close(lock)


def _translated(work: Callable[[], T]) -> T:
    """The engine raises plain Exceptions, and panics that are no Exception at all."""
    try:
        return work()
    except (AskbookError, ValueError):
        raise
    except BaseException as error:
        message = str(error)
        if "No space left" in message or "os error 28" in message:
            raise _full() from error
        if "WouldBlock" in message:
            raise _in_use() from error
        if isinstance(error, OSError):
            raise StorageError(f"The disk refused: {error.strerror}", "Check the data folder.") from error
        raise IndexUnavailable(
            "The index on disk cannot be read or written", f"Is its folder writable, and sound? {LOST}"
        ) from error


def _check_room(path: Path, needed: int = 0) -> None:
    if shutil.disk_usage(path).free < ROOM + needed:
        raise _full()


def _full() -> StorageError:
    return StorageError("The disk is full", "Free some space; nothing that was confirmed is lost.")


def _in_use() -> DataInUse:
    return DataInUse("Another process has the index open", "Stop it, or go through its HTTP API.")


def _lock(path: Path) -> int:
    """Held before anything is cleaned up: the leftovers of another process may be its work in progress."""
    held = os.open(_beside(path, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(held)
        raise _in_use() from error
    return held


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(f"{path.name}.{suffix}")


def _load(path: Path, config: edge.EdgeConfig | None) -> edge.EdgeShard:
    try:
        return edge.EdgeShard.load(str(path), config)
    except Exception as error:  # the engine knows no other type
        if "No space left" in str(error) or "WouldBlock" in str(error):
            raise
        raise IndexUnavailable("The index on disk is damaged", LOST) from error


def _holds_index(path: Path) -> bool:
    if not path.exists() or not any(path.iterdir()):
        return False
    if _stored_dimension(path) is not None or any(path.glob("segments/*")):
        return True
    if not {entry.name for entry in path.iterdir()} <= {CONFIG, "wal", "segments"}:
        raise StorageError("The index folder holds something else", "Move it away, or choose another data folder.")
    return False


def _create(path: Path, config: edge.EdgeConfig) -> None:
    """Built beside and moved into place, so that a folder at `path` is always whole."""
    unfinished = _beside(path, "new")
    shard = edge.EdgeShard.create(str(unfinished), config)
    shard.flush()
    shard.close()
    shutil.rmtree(path, ignore_errors=True)
    unfinished.rename(path)


def _stored_dimension(path: Path) -> int | None:
    """None when the folder's own description cannot be read."""
    try:
        vectors = json.loads((path / CONFIG).read_text()).get("vectors") or {}
        return int(vectors[DENSE]["size"]) if DENSE in vectors else 0
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        return None


def _index_params(kind: IndexKind) -> Any:
    if kind == "integer":
        return edge.PayloadSchemaType.Integer
    return edge.KeywordIndexParams(is_tenant=kind == "tenant", prefix=kind == "prefix")
