"""One database for all that SQL remembers: SQLite by default, PostgreSQL by one URL."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sqlalchemy
from sqlalchemy import ColumnElement, Connection, String, event, func, select, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DataError, DBAPIError, IntegrityError, ProgrammingError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.sql.schema import Table

from askbook.errors import StorageError
from askbook.store import sqlite as sqlite_driver
from askbook.store.schema import metadata

HEAD = "0009"
BUSY_SECONDS = 30
"""So long a writer waits for another one."""
DAMAGED = "The file is damaged: restore a backup (askbook restore), or move it away and ingest the books again."
MIGRATIONS = Path(__file__).parent / "migrations"

# What PostgreSQL cannot store: NUL, and half of a character.
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def to_storable(text: str) -> str:
    return _UNSTORABLE.sub("\ufffd", text)


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
        """One snapshot: what is read inside belongs together."""
        with _translated(self.engine):
            async with self.engine.connect() as connection:
                if self.engine.dialect.name == "postgresql":
                    await connection.execution_options(isolation_level="REPEATABLE READ")
                yield connection

    @contextlib.asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """SQLite has one writer. Whoever found it busy would sleep and look again, a tenth of a second each time."""
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

    def insert(self, table: Table) -> sqlite.Insert | postgresql.Insert:
        """An INSERT that knows ON CONFLICT, in the dialect at hand."""
        if self.engine.dialect.name == "postgresql":
            return postgresql.insert(table)
        return sqlite.insert(table)

    def now(self) -> datetime | ColumnElement[datetime]:
        """One clock for all: the clocks of many machines do not agree, so PostgreSQL's own counts."""
        return func.now() if self.engine.dialect.name == "postgresql" else datetime.now(UTC)

    async def find_damage(self) -> str:
        """What SQLite finds wrong with its file; empty where nothing is, and of PostgreSQL, which checks itself."""
        if self.engine.dialect.name != "sqlite":
            return ""
        async with self.reading() as connection:
            found = str(await connection.scalar(text("PRAGMA integrity_check(1)")))
            # That a text is stored as bytes is nothing to SQLite; nobody ever wrote one so.
            for column in (
                one for table in metadata.tables.values() for one in table.c if isinstance(one.type, String)
            ):
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
        # The usual name of the option is libpq's; asyncpg has its own.
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
        ):
            cursor.execute(f"PRAGMA {pragma}")
        # The words of a deleted conversation are overwritten, not left in the file.
        cursor.execute("PRAGMA secure_delete = ON")
        cursor.close()

    # Cancelled inside a statement, a connection is closed; but the statement it broke off would hold the lock on.
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
    revision = _current_revision(connection)
    if revision == HEAD:
        return
    if revision is not None and revision > HEAD:
        raise StorageError(
            f"the data is of a newer askbook: its schema is {revision}, and this one knows {HEAD}; nothing was changed",
            "Install the newer version, or set ASKBOOK_HOME (or DATABASE_URL) to other data.",
        )
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def _current_revision(connection: Connection) -> str | None:
    if not sqlalchemy.inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()


@contextlib.contextmanager
def _translated(engine: AsyncEngine) -> Iterator[None]:
    where = engine.url.database if engine.dialect.name == "sqlite" else engine.url.render_as_string()
    try:
        yield
    except (IntegrityError, ProgrammingError, DataError):
        raise
    except DBAPIError as error:
        # What was read of a damaged file would only fill the screen.
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
