"""One database for all that SQL remembers: SQLite by default, PostgreSQL by one URL."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sqlalchemy
from sqlalchemy import ColumnElement, Connection, Executable, RowMapping, String, event, func, select, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DataError, DBAPIError, IntegrityError, ProgrammingError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.sql.schema import Table

from askbook.errors import StorageError
from askbook.store import sqlite as sqlite_driver
from askbook.store.schema import metadata

FIRST, HEAD = "0009", "0009"
"""The oldest schema that can be brought up to date, and today's."""
BUSY_SECONDS = 30
"""How long a writer waits for another."""
DAMAGED = "The file is damaged: restore a backup (askbook restore), or move it away and ingest the books again."
MIGRATIONS = Path(__file__).parent / "migrations"

# PostgreSQL cannot store NUL and lone surrogates.
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def to_storable(text: str) -> str:
    return _UNSTORABLE.sub("\ufffd", text)


def map_json(value: Any, change: Callable[[Any], Any]) -> Any:
    """The same JSON with each name and each single value changed."""
    match value:
        case list() | tuple():
            return [map_json(inner, change) for inner in value]
        case dict():
            return {change(name): map_json(inner, change) for name, inner in value.items()}
        case _:
            return change(value)


class Database:
    def __init__(self, engine: AsyncEngine, busy_seconds: float = BUSY_SECONDS) -> None:
        self.engine = engine
        self._busy_seconds = busy_seconds
        self._writer = asyncio.Lock()

    @contextlib.asynccontextmanager
    async def writing(self) -> AsyncIterator[AsyncConnection]:
        """One transaction, committed at the end or not at all."""
        with _translated(self.engine):
            async with self._turn(), self.engine.connect() as connection:
                await connection.execution_options(askbook_writes=True)
                async with connection.begin():
                    yield connection

    @contextlib.asynccontextmanager
    async def reading(self) -> AsyncIterator[AsyncConnection]:
        """One snapshot: all queries inside see the same data."""
        with _translated(self.engine):
            async with self.engine.connect() as connection:
                if self.engine.dialect.name == "postgresql":
                    await connection.execution_options(isolation_level="REPEATABLE READ")
                yield connection

    @contextlib.asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """SQLite has one writer. Waiting here is quicker than in its busy handler, which polls ten times a second."""
        if self.engine.dialect.name != "sqlite":
            yield
            return
        try:
            async with asyncio.timeout(self._busy_seconds):
                await self._writer.acquire()
        except TimeoutError as error:
            where = self.engine.url.database
            raise StorageError(f"the database {where} is busy", _hint("locked")) from error
        try:
            yield
        finally:
            self._writer.release()

    async def load(self, query: Executable) -> Sequence[RowMapping]:
        """The rows of one query, by the names of their columns."""
        async with self.reading() as connection:
            return (await connection.execute(query)).mappings().all()

    async def load_value(self, query: Executable) -> Any:
        """The first value of the first row; None where there is no row."""
        async with self.reading() as connection:
            return await connection.scalar(query)

    async def save(self, statement: Executable) -> int:
        """One statement that writes, as a transaction. How many rows it touched."""
        async with self.writing() as connection:
            return (await connection.execute(statement)).rowcount

    def insert(self, table: Table) -> sqlite.Insert | postgresql.Insert:
        """An INSERT with ON CONFLICT, in the database's dialect."""
        return (postgresql if self.engine.dialect.name == "postgresql" else sqlite).insert(table)

    def upsert(self, table: Table, row: Mapping[str, Any]) -> sqlite.Insert | postgresql.Insert:
        """An INSERT that takes the place of the row with the same primary key."""
        key = [column.name for column in table.primary_key]
        rest = {name: value for name, value in row.items() if name not in key}
        return self.insert(table).values({**row}).on_conflict_do_update(index_elements=key, set_=rest)

    def now(self) -> datetime | ColumnElement[datetime]:
        """One clock for all workers: PostgreSQL's own, because the clocks of several machines differ."""
        return func.now() if self.engine.dialect.name == "postgresql" else datetime.now(UTC)

    async def find_damage(self) -> str:
        """What SQLite finds wrong with its file; empty where nothing is, and for PostgreSQL, which checks itself."""
        if self.engine.dialect.name != "sqlite":
            return ""
        async with self.reading() as connection:
            found = str(await connection.scalar(text("PRAGMA integrity_check(1)")))
            # SQLite accepts bytes in a text column; askbook never writes them.
            columns = (column for table in metadata.tables.values() for column in table.c)
            for column in (column for column in columns if isinstance(column.type, String)):
                if await connection.scalar(select(column).where(func.typeof(column) == "blob").limit(1)) is not None:
                    found = f"{column} holds no text"
        return "" if found == "ok" else found

    async def close(self) -> None:
        await self.engine.dispose()


async def open_database(url: str | URL) -> Database:
    """Connect, and bring the tables up to date."""
    engine = _create_engine(url)
    try:
        with _translated(engine):
            async with engine.connect() as connection:
                await connection.execution_options(askbook_writes=True)
                async with connection.begin():
                    await connection.run_sync(_migrate)
    except BaseException:
        await engine.dispose()
        raise
    return Database(engine)


def _create_engine(url: str | URL) -> AsyncEngine:
    try:
        parsed = make_url(url.replace("postgres://", "postgresql://", 1) if isinstance(url, str) else url)
    except ArgumentError as error:
        raise StorageError(
            "DATABASE_URL is not a database address", "Write it as postgresql://user:password@host/name."
        ) from error
    if parsed.get_backend_name() == "postgresql":
        # `sslmode` is libpq's name of the option, `ssl` is asyncpg's.
        query = {"ssl" if name == "sslmode" else name: value for name, value in parsed.query.items()}
        _check_options(query)
        return create_async_engine(parsed.set(drivername="postgresql+asyncpg", query=query), pool_pre_ping=True)
    if parsed.get_backend_name() != "sqlite":
        raise StorageError(
            f"DATABASE_URL names {parsed.get_backend_name()}, which askbook does not speak",
            "Use sqlite:///path/to/file.db or postgresql://user:password@host/name.",
        )
    engine = create_async_engine(
        parsed.set(drivername="sqlite+aiosqlite"), connect_args={"async_creator_fn": sqlite_driver.connect}
    )

    # pysqlite would open transactions late and by guesswork; askbook says BEGIN itself.
    @event.listens_for(engine.sync_engine, "connect")
    def _(dbapi_connection: Any, _record: object) -> None:
        dbapi_connection.isolation_level = None
        cursor = dbapi_connection.cursor()
        # FULL: a lesson's old points are removed only after the commit that replaced them is on disk.
        for pragma in (
            f"busy_timeout = {BUSY_SECONDS * 1000}",
            "journal_mode = WAL",
            "synchronous = FULL",
            "foreign_keys = ON",
            "cache_size = -8192",
            # The words of a deleted conversation are overwritten, not left in the file.
            "secure_delete = ON",
        ):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    # A connection that was cancelled inside a statement is closed, but the statement would still hold the lock.
    @event.listens_for(engine.sync_engine, "invalidate")
    def _(dbapi_connection: Any, _record: object, _error: object) -> None:
        dbapi_connection.rollback()

    @event.listens_for(engine.sync_engine, "begin")
    def _(connection: Connection) -> None:
        writes = connection.get_execution_options().get("askbook_writes", False)
        driver: Any = connection.connection.driver_connection
        driver.begin = "BEGIN IMMEDIATE" if writes else "BEGIN"

    return engine


def _check_options(query: Mapping[str, object]) -> None:
    try:
        import asyncpg
    except ImportError as error:
        raise StorageError(
            "DATABASE_URL names PostgreSQL, and its driver is not installed", "Run: pip install 'askbook[postgres]'"
        ) from error
    unknown = sorted(query.keys() - inspect.signature(asyncpg.connect).parameters.keys())
    if unknown:
        raise StorageError(
            f"DATABASE_URL has options that its driver does not know: {', '.join(unknown)}",
            "Leave them out; sslmode, and what asyncpg.connect takes, may stay.",
        )


def _migrate(connection: Connection) -> None:
    revision = None
    if sqlalchemy.inspect(connection).has_table("alembic_version"):
        revision = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    if revision == HEAD:
        return
    if revision is not None and revision > HEAD:
        raise StorageError(
            f"the data is of a newer askbook: its schema is {revision}, and this one knows {HEAD}; nothing was changed",
            "Install the newer version, or set ASKBOOK_HOME (or DATABASE_URL) to other data.",
        )
    if revision is not None and revision < FIRST:
        raise StorageError(
            f"the data is of an askbook before its first release: its schema is {revision}, and {FIRST} is the oldest "
            "that this one reads; nothing was changed",
            "Ingest the books again, with ASKBOOK_HOME (or DATABASE_URL) set to a new place.",
        )
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    if revision is None:
        metadata.create_all(connection)
        command.stamp(config, "head")
    else:
        command.upgrade(config, "head")


@contextlib.contextmanager
def _translated(engine: AsyncEngine) -> Iterator[None]:
    where = engine.url.database if engine.dialect.name == "sqlite" else engine.url.render_as_string()
    try:
        yield
    except (IntegrityError, ProgrammingError, DataError):
        raise
    except DBAPIError as error:
        # Without the content of the damaged file.
        why = str(error.orig).partition(" with text ")[0]
        raise StorageError(f"the database {where} refused: {why}", _hint(why)) from error
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise StorageError(f"the database {where} holds what askbook never wrote", DAMAGED) from error
    except OSError as error:
        raise StorageError(
            f"the database {where} cannot be reached: {error}", "Is it running, and is DATABASE_URL right?"
        ) from error


def _hint(message: str) -> str:
    if "full" in message or "disk I/O" in message:
        return "Free some disk space, then run the same command again: nothing that was saved is lost."
    if "locked" in message:
        return "Another process is writing; try again in a moment."
    if any(sign in message for sign in ("not a database", "malformed", "decode to UTF-8")):
        return DAMAGED
    if "readonly" in message or "unable to open" in message:
        return "Check that the folder exists and may be written, or set ASKBOOK_HOME to another one."
    return "Try again; `askbook doctor` says what works."
