"""What was asked, what became of it, and what readers thought of the answers: what the gaps of a book are read from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import RowMapping, and_, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from askbook.domain import Answer, Chunk, Feedback, NearSection, OpenQuestion, Refusal, Reply, Scope, Thread
from askbook.errors import InputError, NotFound
from askbook.store.database import Database, to_storable
from askbook.store.schema import asked, feedback, messages, threads
from askbook.store.scopes import within

COMMENT_MAX = 1000
NEWEST = 2000
"""So many open questions are looked at, the latest ones."""

# The book's own gaps: an empty index or a service that was down says nothing of what the book lacks.
LEFT_OPEN = ("not_in_book", "unverified")


class Questions:
    def __init__(self, database: Database, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self.database = database
        self.clock = clock

    # --- writing ----------------------------------------------------------------------------------

    async def save_asked(self, thread: Thread, question: str, searched: str, reply: Reply, selected: bool) -> None:
        """`thread`: as its exchange was saved. Where somebody has deleted it since, nothing is kept."""
        place = {"thread_id": thread.thread_id, "position": 2 * thread.turn_count - 1}
        row = {
            **place,
            "owner": thread.owner,
            "book_id": thread.book_id,
            "question": to_storable(question),
            "searched": to_storable(searched),
            "refusal": reply.reason if isinstance(reply, Refusal) else None,
            "confidence": reply.confidence.average_similarity if reply.confidence else None,
            "selected": selected,
            "nearest": _to_nearest(reply),
            "asked_at": self.clock(),
        }
        async with self.database.writing() as connection:
            if await _has_answer(connection, thread.owner, **place):
                insert = self.database.insert(asked).values(row)
                await connection.execute(insert.on_conflict_do_nothing())

    async def save_feedback(
        self, thread_id: str, owner: str, helpful: bool, comment: str | None = None, position: int | None = None
    ) -> Feedback:
        """On the answer at that position, or on the last one. Given again, it replaces what was said before."""
        said = to_storable(comment).strip() if comment else ""
        if len(said) > COMMENT_MAX:
            raise InputError(f"a comment has at most {COMMENT_MAX} characters, and this one has {len(said)}")
        values = {"helpful": helpful, "comment": said or None, "given_at": self.clock()}
        thread_id = to_storable(thread_id).lower()
        async with self.database.writing() as connection:
            if position is None:
                position = await _last_answer(connection, thread_id, owner)
            if position is None or not await _has_answer(connection, owner, thread_id, position):
                raise NotFound("there is no such answer", "Name the session, and the place of an answer in it.")
            insert = self.database.insert(feedback).values(thread_id=thread_id, position=position, **values)
            await connection.execute(
                insert.on_conflict_do_update(index_elements=["thread_id", "position"], set_=values)
            )
        return Feedback(thread_id, position, helpful, values["comment"], values["given_at"])

    # --- reading ----------------------------------------------------------------------------------

    async def load_open(
        self, scope: Scope | None = None, book_id: str | None = None, since: datetime | None = None
    ) -> list[OpenQuestion]:
        """Refused, or thumbed down; the latest first. Without a scope of all tenants, which is the terminal's right alone."""
        # Without a confidence it was refused unsearched: an attempt to turn askbook from its book is no gap in it.
        refused = asked.c.refusal.in_(LEFT_OPEN) & ~asked.c.selected & asked.c.confidence.is_not(None)
        unhelpful = feedback.c.helpful.is_(False)
        query = (
            select(asked, feedback.c.helpful, feedback.c.comment)
            .outerjoin(
                feedback, and_(feedback.c.thread_id == asked.c.thread_id, feedback.c.position == asked.c.position)
            )
            .where(or_(refused, unhelpful))
            .order_by(asked.c.asked_at.desc(), asked.c.thread_id, asked.c.position)
            .limit(NEWEST)
        )
        if scope is not None:
            query = query.where(within(scope, asked.c.book_id))
        if book_id is not None:
            query = query.where(asked.c.book_id == to_storable(book_id))
        if since is not None:
            query = query.where(asked.c.asked_at >= since)
        async with self.database.reading() as connection:
            return [_to_open(row) for row in (await connection.execute(query)).mappings()]


# --- inside a transaction -------------------------------------------------------------------------


async def _has_answer(connection: AsyncConnection, owner: str, thread_id: str, position: int) -> bool:
    """An answer of somebody else is not there. Locked, so that nobody deletes it meanwhile."""
    mine = select(threads.c.thread_id).where(threads.c.thread_id == thread_id, threads.c.owner == to_storable(owner))
    if await connection.scalar(mine.with_for_update()) is None:
        return False
    answer = select(messages.c.position).where(
        messages.c.thread_id == thread_id, messages.c.position == position, messages.c.role == "assistant"
    )
    return await connection.scalar(answer) is not None


async def _last_answer(connection: AsyncConnection, thread_id: str, owner: str) -> int | None:
    query = select(threads.c.turn_count).where(threads.c.thread_id == thread_id, threads.c.owner == to_storable(owner))
    turns = await connection.scalar(query)
    return 2 * turns - 1 if turns else None


# --- rows and words -------------------------------------------------------------------------------


def _to_nearest(reply: Reply) -> dict[str, str] | None:
    chunk = _nearest_chunk(reply)
    if chunk is None:
        return None
    section = NearSection(" › ".join(chunk.heading_path[1:]), chunk.url, chunk.source_file, chunk.parent_doc_id)
    return {name: to_storable(value) for name, value in asdict(section).items()}


def _nearest_chunk(reply: Reply) -> Chunk | None:
    if isinstance(reply, Answer):
        return reply.sources[0].passage.chunk if reply.sources else None
    return reply.nearest[0].chunk if reply.nearest else None


def _to_open(row: RowMapping) -> OpenQuestion:
    nearest: Mapping[str, Any] | None = row["nearest"]
    return OpenQuestion(
        book_id=row["book_id"],
        text=row["searched"] or row["question"],
        asked_at=row["asked_at"],
        refused=row["refusal"],
        unhelpful=row["helpful"] is False,
        comment=row["comment"],
        nearest=NearSection(**nearest) if nearest else None,
    )
