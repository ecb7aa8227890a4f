"""SQLite in a thread of its own, with one trip there for a statement.

aiosqlite makes four: for a cursor, the statement, its rows, and the cursor's end. A question has some twenty
statements, and when fifty readers ask at once the trips cost more than the work.
"""

from __future__ import annotations

import sqlite3
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import aiosqlite

ROWS_AT_ONCE = 1000

Row = tuple[Any, ...]
T = TypeVar("T")


def connect(path: str, **options: Any) -> Connection:
    """For SQLAlchemy's dialect, which asks for one of aiosqlite's."""
    connection = Connection(lambda: sqlite3.connect(path, **options), ROWS_AT_ONCE)
    connection._thread.daemon = True
    return connection


class Connection(aiosqlite.Connection):
    begin: str = ""
    """How the next statement opens its transaction: on the same trip."""

    def cursor(self) -> Cursor:  # pyright: ignore[reportIncompatibleMethodOverride]
        return Cursor(self)

    async def commit(self) -> None:
        await self._end(super().commit)

    async def rollback(self) -> None:
        await self._end(super().rollback)

    async def _end(self, end: Callable[[], Awaitable[None]]) -> None:
        """Nothing to end where no statement has opened the transaction."""
        if self.begin:
            self.begin = ""
        else:
            await end()

    async def do(self, work: Callable[..., T], *given: Any) -> T:
        """In SQLite's thread."""
        return await self._execute(work, *given)

    def run(self, work: Callable[[sqlite3.Connection], sqlite3.Cursor]) -> _Result:
        if self.begin:
            self._conn.execute(self.begin)
            self.begin = ""
        cursor = work(self._conn)
        rows = cursor.fetchmany(ROWS_AT_ONCE) if cursor.description else []
        rest = cursor if len(rows) == ROWS_AT_ONCE else None
        result = _Result(cursor.description, cursor.rowcount, cursor.lastrowid, rows, rest)
        if rest is None:
            cursor.close()
        return result


@dataclass(frozen=True, slots=True)
class _Result:
    description: tuple[Any, ...] | None
    rowcount: int
    lastrowid: int | None
    rows: list[Row]
    rest: sqlite3.Cursor | None
    """Where there are more."""


class Cursor:
    """What SQLAlchemy asks of one."""

    arraysize = 1

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._take(_Result(None, -1, None, [], None))

    async def __aenter__(self) -> Cursor:
        return self

    async def execute(self, sql: str, parameters: Sequence[Any] = ()) -> None:
        await self._run(lambda connection: connection.execute(sql, parameters))

    async def executemany(self, sql: str, parameters: Iterable[Sequence[Any]]) -> None:
        await self._run(lambda connection: connection.executemany(sql, parameters))

    async def _run(self, work: Callable[[sqlite3.Connection], sqlite3.Cursor]) -> None:
        self._take(await self._connection.do(self._connection.run, work))

    def _take(self, result: _Result) -> None:
        self.description, self.rowcount, self.lastrowid = result.description, result.rowcount, result.lastrowid
        self._rows, self._rest = deque(result.rows), result.rest

    async def fetchall(self) -> list[Row]:
        if self._rest is not None:
            self._rows.extend(await self._connection.do(self._rest.fetchall))
            await self.close()
        rows = list(self._rows)
        self._rows.clear()
        return rows

    async def fetchmany(self, size: int | None = None) -> list[Row]:
        wanted = size or self.arraysize
        if self._rest is not None and len(self._rows) < wanted:
            self._rows.extend(await self._connection.do(self._rest.fetchmany, max(wanted, ROWS_AT_ONCE)))
        return [self._rows.popleft() for _ in range(min(wanted, len(self._rows)))]

    async def fetchone(self) -> Row | None:
        return next(iter(await self.fetchmany(1)), None)

    async def close(self) -> None:
        if self._rest is not None:
            rest, self._rest = self._rest, None
            await self._connection.do(rest.close)
