"""All that askbook holds, engine by engine the same: the rows of every table, each chunk with its vector.

What is derived is left behind: the points are made anew from chunk and vector, and no point waits to be forgotten
where none was written yet.
"""

from __future__ import annotations

import base64
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

import numpy as np
from sqlalchemy import RowMapping, Table, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from askbook import __version__
from askbook.index.embedders.base import Vector
from askbook.index.vectors.base import VectorIndex
from askbook.store.database import HEAD, Database
from askbook.store.schema import UtcDateTime, chunks, indexes, jobs, metadata

FORMAT = 1
ROWS_AT_ONCE = 256
VECTOR = "vector"
LEFT_BEHIND = {"doomed_points", "indexes", "shards"}
CARRIED = tuple(table for table in metadata.sorted_tables if table.name not in LEFT_BEHIND)
"""In the order in which they can be filled."""

Row = dict[str, Any]
"""A row as JSON has it: times as text, the vector as base64 of little-endian float32."""
Watcher = Callable[[str, int, int], None]
"""Told the step, how much of it is done, and of how much."""


@dataclass(frozen=True, slots=True)
class Engines:
    """The database and the vector index."""

    database: Database
    index: VectorIndex
    collection: str
    stored_in: str = ""


@dataclass(frozen=True, slots=True)
class Header:
    format: int
    schema: str
    askbook: str
    made_at: str
    embedder: str | None
    dimension: int
    rows: dict[str, int]

    @property
    def total(self) -> int:
        return sum(self.rows.values())


class Holdings(Protocol):
    """Read as often as one likes, always with the same rows."""

    @property
    def header(self) -> Header: ...

    def rows(self, table: Table) -> AsyncIterator[list[Row]]: ...


@contextlib.asynccontextmanager
async def read_holdings(engines: Engines) -> AsyncIterator[Holdings]:
    """One snapshot of the database; the vectors are those of the points that are live in it."""
    async with engines.database.reading() as connection:
        rows = {table.name: await connection.scalar(select(func.count()).select_from(table)) or 0 for table in CARRIED}
        embedder, dimension = await _load_origin(connection, engines.collection)
        now = datetime.now(UTC).isoformat()
        yield _Live(Header(FORMAT, HEAD, __version__, now, embedder, dimension, rows), connection, engines.index)


@dataclass(frozen=True, slots=True)
class _Live:
    header: Header
    connection: AsyncConnection
    index: VectorIndex

    async def rows(self, table: Table) -> AsyncIterator[list[Row]]:
        query = select(table).order_by(*table.primary_key)
        found = await self.connection.stream(query, execution_options={"yield_per": ROWS_AT_ONCE})
        async for some in found.mappings().partitions(ROWS_AT_ONCE):
            rows = [_to_row(table, values) for values in some]
            if table is chunks:
                vectors = await self.index.load_vectors([row["point_id"] for row in rows])
                for row in rows:
                    vector = vectors.get(row["point_id"])
                    # A job that runs meanwhile may have forgotten the point: its text is embedded by the next one.
                    row["embedded"] = row["embedded"] and vector is not None
                    row[VECTOR] = None if vector is None else base64.b64encode(vector.astype("<f4").tobytes()).decode()
            yield rows


async def load_dimension(database: Database, collection: str) -> int:
    """Of the vectors in the index; 0 where none were made."""
    async with database.reading() as connection:
        return (await _load_origin(connection, collection))[1]


async def _load_origin(connection: AsyncConnection, collection: str) -> tuple[str | None, int]:
    """Which embedder made the vectors, and of how many dimensions."""
    query = select(indexes.c.embedder, indexes.c.dimension).where(indexes.c.collection == collection)
    embedder, dimension = (await connection.execute(query)).first() or (None, 0)
    return embedder, dimension


# --- rows as JSON ---------------------------------------------------------------------------------


def _to_row(table: Table, values: RowMapping) -> Row:
    row = {name: value.isoformat() if isinstance(value, datetime) else value for name, value in values.items()}
    if table is jobs and row["status"] in ("queued", "running"):
        # Where it comes to, nobody runs it: the next worker goes on with it.
        row |= {"status": "queued", "phase": "queued", "owner": None, "started_at": None, "heartbeat_at": None}
        row["collection"] = ""
    return row


def to_vector(row: Row) -> Vector | None:
    encoded = row[VECTOR]
    return None if encoded is None else np.frombuffer(base64.b64decode(encoded), "<f4").astype(np.float32)


def to_values(table: Table, row: Row) -> Row:
    """What the table takes."""
    return {
        column.name: datetime.fromisoformat(row[column.name])
        if isinstance(column.type, UtcDateTime) and row[column.name] is not None
        else row[column.name]
        for column in table.columns
    }
