"""Threads: conversations about a book, each kept for its owner.

A message is a row of its own, not a part of one JSON document: an exchange appends two rows and rewrites nothing, and
the last fifty are read without the rest.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import RowMapping, Select, delete, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from askbook.domain import LIVE_MESSAGES, Cited, Message, MetadataValue, Quote, Reader, Retrieval, Thread
from askbook.errors import InputError, NotFound
from askbook.store.database import Database, map_json, to_storable
from askbook.store.schema import messages, threads
from askbook.store.topics import describe_topics

IDLE = timedelta(hours=1)
"""How long a silent thread stays out of the archive."""
TITLE_MAX = 80
SUMMARY_FROM = 5
"""How many exchanges a thread has before it gets a topic."""
METADATA_BYTES = 4096
READER_NAMES = frozenset(field.name for field in fields(Reader))
READER_BYTES = 1024
"""Room of their own, which the caller's metadata cannot fill."""

Along = Callable[[AsyncConnection, Thread], Awaitable[None]]
"""Writes in the same transaction as an exchange; gets the thread as it is after it."""


class Threads:
    def __init__(self, database: Database, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self.database = database
        self.clock = clock

    # --- a conversation as it goes on -------------------------------------------------------------

    async def open(
        self,
        thread_id: str | None,
        book_id: str,
        owner: str = "",
        metadata: Mapping[str, MetadataValue] | None = None,
    ) -> Thread:
        """The thread of that id, or a new one. Nothing is written before its first exchange."""
        if thread_id is None:
            return self._start(str(uuid.uuid4()), book_id, owner, metadata)
        thread_id = _read_id(thread_id)
        async with self.database.reading() as connection:
            row = await _find_row(connection, thread_id)
            if row is None:
                return self._start(thread_id, book_id, owner, metadata)
            thread = await self._load(connection, _own(row, thread_id, owner, book_id))
        return replace(thread, metadata=_merge(thread.metadata, metadata))

    async def save_exchange(
        self,
        thread: Thread,
        question: Message,
        answer: Message,
        *,
        tokens_used: int = 0,
        model: str | None = None,
        metadata: Mapping[str, MetadataValue] | None = None,
        along: Along | None = None,
    ) -> Thread:
        """Both messages or neither, after what others have saved meanwhile. An archived thread resumes."""
        _check_exchange(question, answer, tokens_used)
        async with self.database.writing() as connection:
            if not thread.turn_count:
                first = {
                    "thread_id": thread.thread_id,
                    "book_id": thread.book_id,
                    "owner": thread.owner,
                    "title": _to_title(question.content),
                    "metadata": {},
                    "tokens_used": 0,
                    "turn_count": 0,
                    "created_at": question.timestamp,
                    "updated_at": question.timestamp,
                }
                new = self.database.insert(threads).values(first)
                await connection.execute(new.on_conflict_do_nothing(index_elements=["thread_id"]))
            found = await _find_row(connection, thread.thread_id, lock=True)
            row = _own(found, thread.thread_id, thread.owner, thread.book_id)
            # Of two questions asked at once, the slower is saved after the faster one's answer: no time runs backwards.
            asked_at = max(row["updated_at"], question.timestamp)
            answered_at = max(asked_at, answer.timestamp)
            exchange = replace(question, timestamp=asked_at), replace(answer, timestamp=answered_at)
            await connection.execute(insert(messages), _message_rows(row, exchange))
            changes = {
                "turn_count": row["turn_count"] + 1,
                "updated_at": answered_at,
                "archived_at": None,
                "tokens_used": row["tokens_used"] + tokens_used,
                "model": row["model"] if model is None else to_storable(model),
                "metadata": _merge(row["metadata"], thread.metadata, metadata),
            }
            saved = await self._load(connection, {**row, **changes})
            if saved.turn_count >= SUMMARY_FROM:
                changes["topic_summary"] = describe_topics(saved.messages)
                saved = replace(saved, topic_summary=changes["topic_summary"])
            await connection.execute(update(threads).where(threads.c.thread_id == thread.thread_id).values(changes))
            if along is not None:
                await along(connection, saved)
            return saved

    # --- reading ----------------------------------------------------------------------------------

    async def load(self, thread_id: str, owner: str = "") -> Thread:
        """With its live messages."""
        async with self.database.reading() as connection:
            return await self._load(connection, await _find_own_row(connection, thread_id, owner))

    async def load_history(self, thread_id: str, owner: str = "", last: int | None = None) -> tuple[Message, ...]:
        """All messages, or those of the last turns, with the archived ones; the oldest first."""
        async with self.database.reading() as connection:
            row = await _find_own_row(connection, thread_id, owner)
            turns = row["turn_count"]
            since = 0 if last is None else 2 * max(0, turns - last)
            return await _load_messages(connection, row["thread_id"], turns, since)

    async def load_all(self, owner: str = "", book_id: str | None = None, limit: int = 50) -> list[Thread]:
        """The latest first; with their counts, without their messages."""
        query = select(threads).where(threads.c.owner == to_storable(owner))
        if book_id is not None:
            query = query.where(threads.c.book_id == to_storable(book_id))
        query = query.order_by(threads.c.updated_at.desc(), threads.c.thread_id).limit(limit)
        return [self._to_thread(row) for row in await self.database.load(query)]

    async def find_id(self, beginning: str, owner: str = "") -> str:
        """The id of the one thread whose id begins so."""
        named = threads.c.thread_id.startswith(to_storable(beginning.strip().lower()), autoescape=True)
        query = select(threads.c.thread_id).where(threads.c.owner == to_storable(owner), named).limit(2)
        found = await self.database.load(query) if beginning.strip() else ()
        if len(found) > 1:
            raise InputError(f"several threads begin with {beginning}", "Give more of the id.")
        if not found:
            raise _no_thread(beginning)
        return found[0]["thread_id"]

    # --- keeping ----------------------------------------------------------------------------------

    async def change(
        self,
        thread_id: str,
        owner: str = "",
        title: str | None = None,
        metadata: Mapping[str, MetadataValue] | None = None,
    ) -> Thread:
        """Another name, and metadata laid over what it has; None takes a name out of it."""
        name = None if title is None else to_storable(" ".join(title.split()))
        if name is not None and not 1 <= len(name) <= TITLE_MAX:
            raise InputError(f"a thread's name has 1 to {TITLE_MAX} characters, not {len(name)}")
        async with self.database.writing() as connection:
            row = await _find_own_row(connection, thread_id, owner, lock=True)
            merged = _merge(row["metadata"], metadata)
            kept = {key: value for key, value in merged.items() if key not in (metadata or {}) or value is not None}
            values = {"metadata": kept, "title": row["title"] if name is None else name}
            await connection.execute(update(threads).where(threads.c.thread_id == row["thread_id"]).values(values))
            return await self._load(connection, {**row, **values})

    async def delete(self, thread_id: str, owner: str = "") -> None:
        """For good, and its messages with it."""
        async with self.database.writing() as connection:
            row = await _find_own_row(connection, thread_id, owner)
            await connection.execute(delete(threads).where(threads.c.thread_id == row["thread_id"]))

    async def archive_idle(self, idle: timedelta = IDLE) -> int:
        """Mark the threads that have been silent for this long, and return how many."""
        now = self.clock()
        silent = update(threads).where(threads.c.archived_at.is_(None), threads.c.updated_at < now - idle)
        return await self.database.save(silent.values(archived_at=now))

    # --- rows to words ----------------------------------------------------------------------------

    def _start(self, thread_id: str, book_id: str, owner: str, metadata: Mapping[str, MetadataValue] | None) -> Thread:
        now = self.clock()
        return Thread(thread_id, to_storable(book_id), to_storable(owner), (), now, now, metadata=_merge(metadata))

    async def _load(self, connection: AsyncConnection, row: RowMapping | dict[str, Any]) -> Thread:
        thread_id, turns = row["thread_id"], row["turn_count"]
        first = _first_live(turns)
        live = await _load_messages(connection, thread_id, turns, since=first)
        calls: list[Retrieval] = []
        if first:
            query = select(messages.c.tool_calls).where(messages.c.thread_id == thread_id, messages.c.position < first)
            archived = (await connection.execute(query.order_by(messages.c.position))).scalars()
            calls = [_to_retrieval(call) for message in archived for call in message]
        calls += [call for message in live for call in message.tool_calls]
        return replace(self._to_thread(row), messages=live, retrieval_history=tuple(calls))

    def _to_thread(self, row: RowMapping | dict[str, Any]) -> Thread:
        # A silent thread is archived, whether or not `archive_idle` came by.
        silent_from = row["updated_at"] + IDLE
        archived_at = row["archived_at"] or (silent_from if silent_from < self.clock() else None)
        archived = _first_live(row["turn_count"])
        return Thread(**{**row, "archived_at": archived_at}, messages=(), archived_messages=archived)


# --- what is asked of a thread --------------------------------------------------------------------


def _read_id(text: str) -> str:
    try:
        read = uuid.UUID(text)
    except ValueError:
        read = None
    if read is None or read.version != 4 or str(read) != text.lower():
        raise InputError(
            f"{to_storable(text)[:TITLE_MAX]!r} is not the id of a thread",
            "An id is a UUID4; leave it out for a new thread.",
        )
    return str(read)


def _no_thread(thread_id: str) -> NotFound:
    return NotFound(f"there is no thread {to_storable(thread_id)[:TITLE_MAX]}", "`askbook threads` lists them.")


def _check_exchange(question: Message, answer: Message, tokens_used: int) -> None:
    if (question.role, answer.role) != ("user", "assistant"):
        raise InputError(f"an exchange is a question and its answer, not {question.role} and {answer.role}")
    if not question.content.strip() or not answer.content.strip():
        raise InputError("an exchange needs the words of both, the question and its answer")
    if question.confidence is not None or question.tool_calls or question.cited:
        raise InputError("only an answer has a confidence, sources and searches")
    if tokens_used < 0:
        raise InputError(f"tokens_used is 0 or more, not {tokens_used}")


def _merge(*parts: Mapping[str, MetadataValue] | None) -> dict[str, MetadataValue]:
    """The parts laid over each other, as JSON reads them back, so that a saved thread equals a loaded one."""
    try:
        given = json.dumps({name: value for part in parts if part for name, value in part.items()}, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"metadata must be JSON: {error}") from error
    merged = _clean_json(json.loads(given))
    own = {name: value for name, value in merged.items() if name in READER_NAMES}
    kept = {name: value for name, value in merged.items() if name not in READER_NAMES}
    for part, room in ((kept, METADATA_BYTES), (own, READER_BYTES)):
        if len(json.dumps(part, ensure_ascii=False).encode()) > room:
            raise InputError(f"a thread's metadata may take {room} bytes, and this takes more", "Keep less in it.")
    return merged


def _clean_json(value: Any) -> Any:
    return map_json(value, lambda inner: to_storable(inner) if isinstance(inner, str) else inner)


# --- words to rows --------------------------------------------------------------------------------


def _to_title(question: str) -> str:
    line = to_storable(" ".join(question.split()))
    return line if len(line) <= TITLE_MAX else f"{line[: TITLE_MAX - 1].rstrip()}…"


def _message_rows(row: RowMapping, exchange: Sequence[Message]) -> list[dict[str, Any]]:
    return [
        {
            "thread_id": row["thread_id"],
            "position": position,
            "role": message.role,
            "content": to_storable(message.content),
            "timestamp": message.timestamp,
            "confidence": message.confidence,
            "cited": [_clean_json(asdict(cited)) for cited in message.cited],
            "tool_calls": [
                _clean_json({**asdict(call), "timestamp": call.timestamp.astimezone(UTC).isoformat()})
                for call in message.tool_calls
            ],
            "refusal": message.refusal,
        }
        for position, message in enumerate(exchange, start=2 * row["turn_count"])
    ]


# --- rows -----------------------------------------------------------------------------------------


async def _find_row(connection: AsyncConnection, thread_id: str, lock: bool = False) -> RowMapping | None:
    query: Select[Any] = select(threads).where(threads.c.thread_id == thread_id)
    # SQLite ignores FOR UPDATE; its writers lock the whole file.
    return (await connection.execute(query.with_for_update() if lock else query)).mappings().first()


async def _find_own_row(connection: AsyncConnection, thread_id: str, owner: str, lock: bool = False) -> RowMapping:
    return _own(await _find_row(connection, _read_id(thread_id), lock), thread_id, owner)


def _own(row: RowMapping | None, thread_id: str, owner: str, book_id: str | None = None) -> RowMapping:
    """A thread of another owner or another book is reported as missing."""
    if (
        row is None
        or row["owner"] != to_storable(owner)
        or (book_id is not None and row["book_id"] != to_storable(book_id))
    ):
        raise _no_thread(thread_id)
    return row


async def _load_messages(
    connection: AsyncConnection, thread_id: str, turns: int, since: int = 0
) -> tuple[Message, ...]:
    query = select(messages).where(messages.c.thread_id == thread_id, messages.c.position >= since)
    rows = (await connection.execute(query.order_by(messages.c.position))).mappings()
    return tuple(_to_message(row, archived=row["position"] < _first_live(turns)) for row in rows)


def _first_live(turns: int) -> int:
    """The position of the oldest live message, which is also how many are archived."""
    return max(0, 2 * turns - LIVE_MESSAGES)


def _to_message(row: RowMapping, archived: bool) -> Message:
    plain = {name: row[name] for name in ("role", "content", "timestamp", "confidence", "refusal")}
    cited = tuple(
        Cited(**{**saved, "quotes": tuple(Quote(**quote) for quote in saved.get("quotes", ()))})
        for saved in row["cited"]
    )
    return Message(**plain, cited=cited, tool_calls=tuple(map(_to_retrieval, row["tool_calls"])), archived=archived)


def _to_retrieval(call: Mapping[str, Any]) -> Retrieval:
    return Retrieval(**{**call, "timestamp": datetime.fromisoformat(call["timestamp"])})
