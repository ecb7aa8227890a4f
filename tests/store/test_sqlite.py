"""SQLite by one trip a statement: long results, streamed ones, failures."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from askbook.errors import StorageError
from askbook.store.database import Database, open_database
from askbook.store.sqlite import ROWS_AT_ONCE

MANY = 2 * ROWS_AT_ONCE + 500
NUMBERS = text("SELECT number FROM numbers ORDER BY number")


@pytest.fixture
async def numbers(tmp_path: Path) -> AsyncIterator[Database]:
    opened = await open_database(f"sqlite:///{tmp_path / 'askbook.db'}")
    async with opened.writing() as connection:
        await connection.execute(text("CREATE TABLE numbers (number INTEGER PRIMARY KEY)"))
        await connection.execute(
            text("INSERT INTO numbers VALUES (:number)"), [{"number": number} for number in range(MANY)]
        )
    yield opened
    await opened.close()


@pytest.mark.parametrize("count", [0, 1, ROWS_AT_ONCE - 1, ROWS_AT_ONCE, ROWS_AT_ONCE + 1, MANY])
async def test_a_result_is_whole_however_long(numbers: Database, count: int) -> None:
    limited = text("SELECT number FROM numbers ORDER BY number LIMIT :count").bindparams(count=count)
    async with numbers.reading() as connection:
        assert list((await connection.execute(limited)).scalars()) == list(range(count))


async def test_a_result_may_be_streamed_and_left(numbers: Database) -> None:
    async with numbers.reading() as connection:
        found = await connection.stream(NUMBERS, execution_options={"yield_per": 300})
        assert [row.number async for row in found] == list(range(MANY))
        found = await connection.stream(NUMBERS, execution_options={"yield_per": 300})
        assert (await anext(aiter(found))).number == 0
        await found.close()
    async with numbers.writing() as connection:
        assert (await connection.execute(text("DELETE FROM numbers WHERE number > 5"))).rowcount == MANY - 6


async def test_what_is_read_together_belongs_together(numbers: Database) -> None:
    async with numbers.reading() as connection:
        before = len((await connection.execute(NUMBERS)).all())
        async with numbers.writing() as writer:
            await writer.execute(text("DELETE FROM numbers"))
        assert len((await connection.execute(NUMBERS)).all()) == before
    async with numbers.reading() as connection:
        assert (await connection.execute(NUMBERS)).all() == []


async def test_a_transaction_that_fails_leaves_nothing(numbers: Database) -> None:
    with pytest.raises(ZeroDivisionError):
        async with numbers.writing() as connection:
            await connection.execute(text("DELETE FROM numbers"))
            raise ZeroDivisionError
    async with numbers.reading() as connection:
        assert len((await connection.execute(NUMBERS)).all()) == MANY


async def test_writers_take_turns(numbers: Database) -> None:
    async def add(number: int) -> None:
        async with numbers.writing() as connection:
            most = (await connection.execute(text("SELECT max(number) FROM numbers"))).scalar_one()
            await asyncio.sleep(0.001 * (number % 3))
            await connection.execute(text("INSERT INTO numbers VALUES (:number)"), {"number": most + 1})

    await asyncio.gather(*(add(number) for number in range(30)))
    async with numbers.reading() as connection:
        assert len((await connection.execute(NUMBERS)).all()) == MANY + 30


async def test_a_transaction_that_could_not_begin_does_nothing(numbers: Database) -> None:
    """Neither does its second statement, where somebody goes on after the first one failed."""
    busy = await open_database(numbers.engine.url)
    async with numbers.writing() as connection:
        await connection.execute(text("DELETE FROM numbers WHERE number = 0"))
        async with busy.engine.connect() as other:
            await other.execution_options(askbook_writes=True)
            driver: Any = (await other.get_raw_connection()).driver_connection
            await driver.do(driver._conn.execute, "PRAGMA busy_timeout = 0")
            for _ in range(2):
                with pytest.raises(OperationalError, match="locked"):
                    await other.execute(text("DELETE FROM numbers"))
    await busy.close()
    async with numbers.reading() as connection:
        assert len((await connection.execute(NUMBERS)).all()) == MANY - 1


async def test_a_transaction_without_a_statement_leaves_nothing_behind(numbers: Database) -> None:
    async with numbers.writing() as connection:
        driver: Any = (await connection.get_raw_connection()).driver_connection
        assert driver.begin == "BEGIN IMMEDIATE"
    assert driver.begin == ""


async def test_a_writer_that_waits_in_vain_says_so(numbers: Database) -> None:
    hurried = Database(numbers.engine, busy_seconds=0.1)
    async with hurried.writing():
        with pytest.raises(StorageError, match="is busy"):
            async with hurried.writing():
                pass
