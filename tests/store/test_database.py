"""The database: migrations on both engines, and errors that say what to do."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import select, text, update

from askbook.domain import Book
from askbook.errors import StorageError
from askbook.store.database import HEAD, Database, open_database
from askbook.store.ledger import Ledger
from askbook.store.schema import books, metadata


async def test_migrations_lead_to_the_schema_in_the_code(database: Database) -> None:
    async with database.writing() as connection:
        assert await connection.run_sync(lambda c: MigrationContext.configure(c).get_current_revision()) == HEAD
        assert await connection.run_sync(lambda c: compare_metadata(MigrationContext.configure(c), metadata)) == []


async def test_data_from_before_the_first_release_is_refused_and_left_alone(database: Database) -> None:
    await Ledger(database).save_book(Book("book", "One"), "folder")
    async with database.writing() as connection:
        await connection.execute(text("UPDATE alembic_version SET version_num = '0008'"))
    with pytest.raises(StorageError, match="before its first release: its schema is 0008") as refused:
        await open_database(database.engine.url)
    assert "ASKBOOK_HOME" in (refused.value.hint or "")
    async with database.reading() as connection:
        assert await connection.scalar(select(books.c.title)) == "One"
        assert await connection.scalar(text("SELECT version_num FROM alembic_version")) == "0008"


async def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "askbook.db"
    file.write_text("my diary, not a database" * 50)
    with pytest.raises(StorageError, match="not a database"):
        await open_database(f"sqlite:///{file}")
    assert file.read_text().startswith("my diary")


@pytest.mark.parametrize("url", ["not an address", "mysql://host/name"])
async def test_an_unusable_address_says_what_to_write(url: str) -> None:
    with pytest.raises(StorageError) as refused:
        await open_database(url)
    assert "postgresql://" in (refused.value.hint or "")


async def test_an_option_that_the_driver_does_not_know_is_named() -> None:
    with pytest.raises(StorageError, match="channel_binding") as refused:
        await open_database("postgresql://me:s3cret@127.0.0.1:9/none?sslmode=require&channel_binding=require")
    assert "Leave them out" in (refused.value.hint or "")


async def test_an_unreachable_server_says_so_without_the_password() -> None:
    with pytest.raises(StorageError) as refused:
        await open_database("postgresql://me:s3cret@127.0.0.1:9/none")
    assert "127.0.0.1" in refused.value.message
    assert "s3cret" not in f"{refused.value.message} {refused.value.hint}"


async def test_what_is_read_in_one_block_belongs_together(database: Database) -> None:
    """A commit between two statements of a reader is not seen by the second, on either engine."""
    ledger = Ledger(database)
    await ledger.save_book(Book("book", "One"), "folder")
    title = select(books.c.title)
    async with database.reading() as connection:
        assert await connection.scalar(title) == "One"
        await ledger.save_book(Book("book", "Two"), "folder")
        assert await connection.scalar(title) == "One"
    async with database.reading() as connection:
        assert await connection.scalar(title) == "Two"


async def test_a_cancelled_writer_lets_the_next_one_in(database: Database) -> None:
    """Wherever it was: a broken-off statement must not hold SQLite's lock until somebody collects it."""

    await Ledger(database).save_book(Book("book", "One"), "folder")

    async def write() -> None:
        async with database.writing() as connection:
            for _ in range(5):
                await connection.execute(update(books).values(title="Two"))
                await connection.execute(select(books))

    for tenth_ms in range(60):
        task = asyncio.create_task(write())
        await asyncio.sleep(tenth_ms / 10_000)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        async with asyncio.timeout(10):
            await write()


async def test_a_folder_of_any_name_holds_the_database(tmp_path: Path) -> None:
    from askbook.settings import Settings
    from askbook.wiring import open_store

    home = tmp_path / "100%41 of ?x=1 & é"
    async with open_store(Settings.model_validate({"askbook_home": home})) as store:
        assert await store.ledger.load_books() == []
    assert (home / "askbook.db").is_file()
    assert [path.name for path in tmp_path.iterdir()] == [home.name]
