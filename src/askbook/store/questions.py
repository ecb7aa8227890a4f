"""What was asked, what became of it, and what readers thought of the answers. A book's gaps are found in this."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from datetime import UTC, date, datetime
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, RowMapping, and_, func, insert, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from askbook.domain import (
    Answer,
    Feedback,
    NearSection,
    OpenQuestion,
    Opinion,
    Refusal,
    Reply,
    Scope,
    Thread,
    UsageDay,
)
from askbook.errors import InputError, NotFound
from askbook.store.database import Database, to_storable
from askbook.store.schema import asked, feedback, messages, threads
from askbook.store.scopes import within

_Name = TypeVar("_Name", bound=str)

COMMENT_MAX = 1000
NEWEST = 2000
"""How many open questions are read, the latest ones."""

# The book's own gaps: an empty index or a service that is down does not count.
LEFT_OPEN = ("not_in_book", "unverified")

_ITS_THUMB = and_(feedback.c.thread_id == asked.c.thread_id, feedback.c.position == asked.c.position)


class Questions:
    def __init__(self, database: Database, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self.database = database
        self.clock = clock

    # --- writing ----------------------------------------------------------------------------------

    async def save_asked(
        self, connection: AsyncConnection, thread: Thread, question: str, searched: str, reply: Reply, selected: bool
    ) -> None:
        """In the exchange's own transaction. `thread`: as it is after the exchange."""
        row = {
            "thread_id": thread.thread_id,
            "position": 2 * thread.turn_count - 1,
            "owner": thread.owner,
            "book_id": thread.book_id,
            "question": to_storable(question),
            "searched": to_storable(searched),
            "refusal": reply.reason if isinstance(reply, Refusal) else None,
            "confidence": reply.confidence.average_similarity if reply.confidence else None,
            "selected": selected,
            "nearest": _to_nearest(reply),
            "asked_at": self.clock(),
            "level": reply.confidence.confidence_level if isinstance(reply, Answer) else None,
        }
        await connection.execute(insert(asked).values(row))

    async def save_feedback(
        self, thread_id: str, owner: str, helpful: bool, comment: str | None = None, position: int | None = None
    ) -> Feedback:
        """On the answer at that position, or on the last one. It replaces earlier feedback on the same answer."""
        said = to_storable(comment).strip() if comment else ""
        if len(said) > COMMENT_MAX:
            raise InputError(f"a comment has at most {COMMENT_MAX} characters, and this one has {len(said)}")
        values = {"helpful": helpful, "comment": said or None, "given_at": self.clock()}
        thread_id = to_storable(thread_id).lower()
        async with self.database.writing() as connection:
            mine = threads.c.thread_id == thread_id, threads.c.owner == to_storable(owner)
            # Locked, so that it is not deleted meanwhile.
            turns = await connection.scalar(select(threads.c.turn_count).where(*mine).with_for_update())
            place = 2 * (turns or 0) - 1 if position is None else position
            here = messages.c.thread_id == thread_id, messages.c.position == place, messages.c.role == "assistant"
            if turns is None or await connection.scalar(select(messages.c.position).where(*here)) is None:
                raise NotFound("there is no such answer", "Name the session, and the place of an answer in it.")
            thumb = {"thread_id": thread_id, "position": place, **values}
            await connection.execute(self.database.upsert(feedback, thumb))
        return Feedback(thread_id, place, helpful, values["comment"], values["given_at"])

    # --- reading ----------------------------------------------------------------------------------

    async def load_open(
        self, scope: Scope | None = None, book_id: str | None = None, since: datetime | None = None
    ) -> list[OpenQuestion]:
        """Refused, or thumbed down; the latest first. No scope means all tenants: only the terminal may ask so."""
        # Without a confidence it was refused unsearched, as an attempt to misuse askbook: that is no gap.
        refused = asked.c.refusal.in_(LEFT_OPEN) & ~asked.c.selected & asked.c.confidence.is_not(None)
        unhelpful = feedback.c.helpful.is_(False)
        query = (
            select(asked, feedback.c.helpful, feedback.c.comment)
            .outerjoin(feedback, _ITS_THUMB)
            .where(or_(refused, unhelpful))
            .order_by(asked.c.asked_at.desc(), asked.c.thread_id, asked.c.position)
            .limit(NEWEST)
        )
        return [_to_open(row) for row in await self.database.load(query.where(*_which(scope, book_id, since)))]

    async def load_usage(self, scope: Scope, book_id: str | None, since: datetime) -> list[UsageDay]:
        """The days on which something was asked, the oldest first."""
        # As `2026-11-16`, in UTC.
        day = func.date(asked.c.asked_at)
        if self.database.engine.dialect.name == "postgresql":
            day = func.to_char(func.timezone("UTC", asked.c.asked_at), "YYYY-MM-DD")
        kind = (day, asked.c.refusal, asked.c.level, feedback.c.helpful)
        query = select(*kind, func.count()).outerjoin(feedback, _ITS_THUMB).where(*_which(scope, book_id, since))
        days: dict[str, UsageDay] = {}
        async with self.database.reading() as connection:
            for named, refusal, level, helpful, count in await connection.execute(query.group_by(*kind).order_by(day)):
                before = days.get(named) or UsageDay(date.fromisoformat(named))
                days[named] = replace(
                    before,
                    asked=before.asked + count,
                    levels=_add(before.levels, level, count),
                    refused=_add(before.refused, refusal, count),
                    helpful=before.helpful + count * (helpful is True),
                    unhelpful=before.unhelpful + count * (helpful is False),
                )
        return list(days.values())

    async def load_opinions(self, scope: Scope, book_id: str | None, since: datetime, limit: int) -> list[Opinion]:
        """The latest first."""
        query = (
            select(asked.c.book_id, asked.c.question, feedback.c.helpful, feedback.c.comment, feedback.c.given_at)
            .join(feedback, _ITS_THUMB)
            .where(*_which(scope, book_id, since))
            .order_by(feedback.c.given_at.desc(), feedback.c.thread_id, feedback.c.position)
            .limit(limit)
        )
        return [Opinion(**row) for row in await self.database.load(query)]


def _which(scope: Scope | None, book_id: str | None, since: datetime | None) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    if scope is not None:
        conditions.append(within(scope, asked.c.book_id))
    if book_id is not None:
        conditions.append(asked.c.book_id == to_storable(book_id))
    if since is not None:
        conditions.append(asked.c.asked_at >= since)
    return conditions


# --- rows and words -------------------------------------------------------------------------------


def _to_nearest(reply: Reply) -> dict[str, str] | None:
    """The section that the answer cites first, or that comes closest to a refused question."""
    found = [source.passage for source in reply.sources] if isinstance(reply, Answer) else reply.nearest
    if not found:
        return None
    chunk = found[0].chunk
    section = NearSection(chunk.way_in_book, chunk.url, chunk.source_file, chunk.parent_doc_id)
    return {name: to_storable(value) for name, value in asdict(section).items()}


def _add(counts: Mapping[_Name, int], name: _Name | None, count: int) -> Mapping[_Name, int]:
    return {**counts, name: counts.get(name, 0) + count} if name else counts


def _to_open(row: RowMapping) -> OpenQuestion:
    nearest: Mapping[str, Any] | None = row["nearest"]
    return OpenQuestion(
        book_id=row["book_id"],
        text=row["searched"] or row["question"],
        own_words=row["question"],
        asked_at=row["asked_at"],
        refused=row["refusal"],
        unhelpful=row["helpful"] is False,
        comment=row["comment"],
        nearest=NearSection(**nearest) if nearest else None,
    )
