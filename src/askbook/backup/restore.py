"""Puts holdings into engines that hold nothing yet. Nothing is embedded.

As in an ingestion, points are noted before they are written, and one commit makes everything live: a restore that was
killed has left nothing but noted points, which the next one removes.
"""

from __future__ import annotations

import asyncio

from sqlalchemy import Table, delete, func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from askbook.backup.holdings import CARRIED, Engines, Holdings, Row, Watcher, to_values, to_vector
from askbook.errors import InputError
from askbook.index.keywords import keyword_text, weigh_chunk
from askbook.index.vectors.base import Point, load_some
from askbook.store.database import Database
from askbook.store.ledger import slices, strike_doomed, to_chunk
from askbook.store.schema import books, chunks, doomed_points, indexes


async def restore(holdings: Holdings, engines: Engines, watch: Watcher) -> None:
    await _refuse_what_is_in_use(engines.database)
    await _forget_leftovers(engines)
    await _refuse_foreign_points(holdings, engines)
    try:
        await _write_points(holdings, engines, watch)
        await _write_tables(holdings, engines, watch)
    except (KeyError, ValueError, TypeError) as error:
        raise InputError(
            "there is a row that this askbook cannot read", "Nothing was restored; take an earlier backup."
        ) from error
    except IntegrityError as error:
        raise InputError(
            "somebody else has written into the place meanwhile", "Name one that nobody uses yet."
        ) from error


async def _refuse_what_is_in_use(database: Database) -> None:
    async with database.reading() as connection:
        filled = [table.name for table in CARRIED if (await connection.execute(select(table).limit(1))).first()]
    if filled:
        raise InputError(
            f"what is there already would be mixed with it: {', '.join(filled)}",
            "Name an empty place: a new folder as ASKBOOK_HOME, or a new database as DATABASE_URL.",
        )


async def _forget_leftovers(engines: Engines) -> None:
    async with engines.database.reading() as connection:
        leftovers = list(await connection.scalars(select(doomed_points.c.point_id)))
    for some in slices(leftovers):
        await engines.index.forget_points(some)
    await engines.index.flush()
    async with engines.database.writing() as connection:
        await strike_doomed(connection, leftovers)


async def _refuse_foreign_points(holdings: Holdings, engines: Engines) -> None:
    async for rows in holdings.rows(books):
        for book in rows:
            if await load_some(engines.index, book["book_id"], 1):
                raise InputError(
                    f"the collection {engines.collection} holds points of the book {book['book_id']}"
                    " that this database does not know",
                    "They may be another database's: set QDRANT_COLLECTION_NAME to a new name.",
                )


async def _write_points(holdings: Holdings, engines: Engines, watch: Watcher) -> None:
    done = 0
    async for rows in holdings.rows(chunks):
        noted = [{"point_id": row["point_id"], "book_id": row["book_id"]} for row in rows]
        async with engines.database.writing() as connection:
            await connection.execute(engines.database.insert(doomed_points).on_conflict_do_nothing(), noted)
        await engines.index.save_points(await asyncio.to_thread(lambda rows=rows: [_to_point(row) for row in rows]))
        done += len(rows)
        watch("points", done, holdings.header.rows[chunks.name])
    await engines.index.flush()


def _to_point(row: Row) -> Point:
    chunk = to_chunk(to_values(chunks, row))
    return Point(row["point_id"], chunk, weigh_chunk(keyword_text(chunk)), to_vector(row))


async def _write_tables(holdings: Holdings, engines: Engines, watch: Watcher) -> None:
    done, header = 0, holdings.header
    async with engines.database.writing() as connection:
        for table in CARRIED:
            async for rows in holdings.rows(table):
                await connection.execute(table.insert(), [to_values(table, row) for row in rows])
                done += len(rows)
                watch("tables", done, header.total)
            await _count_on(connection, table)
        await connection.execute(delete(doomed_points))
        if header.embedder is not None:
            made = {"embedder": header.embedder, "dimension": header.dimension, "stored_in": engines.stored_in}
            await connection.execute(engines.database.upsert(indexes, {"collection": engines.collection, **made}))


async def _count_on(connection: AsyncConnection, table: Table) -> None:
    """PostgreSQL does not learn from given numbers which one comes next."""
    column = table.autoincrement_column
    if column is None or connection.dialect.name != "postgresql":
        return
    sequence = func.pg_get_serial_sequence(table.name, column.name)
    await connection.execute(select(func.setval(sequence, func.max(column))))
