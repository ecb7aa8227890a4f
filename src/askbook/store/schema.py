"""The tables, the same on SQLite and PostgreSQL. A new database is made from them; migrations/ updates an older one."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Dialect,
    Float,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
)
from sqlalchemy.dialects.postgresql import JSONB

from askbook.domain import Job


class UtcDateTime(TypeDecorator[datetime]):
    """Aware datetimes in, aware UTC datetimes out; SQLite would drop the zone."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        return value.astimezone(UTC) if value is not None else None

    def process_result_value(self, value: Any | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


metadata = MetaData()

books = Table(
    "books",
    metadata,
    Column("book_id", String(64), primary_key=True),
    Column("title", Text, nullable=False),
    Column("folder", Text, nullable=False),
    Column("facets", JSON, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("total_chunks", Integer, nullable=False),
    Column("last_full_ingest", UtcDateTime),
    Column("last_incremental_update", UtcDateTime),
)

lessons = Table(
    "lessons",
    metadata,
    Column("book_id", String(64), primary_key=True),
    Column("source_file", Text, primary_key=True),
    Column("file_hash", String(64), nullable=False),
    Column("fingerprint", String(64), nullable=False),
    Column("module", Text, nullable=False),
    Column("chapter", Integer, nullable=False),
    Column("lesson", Integer, nullable=False),
    Column("title", Text, nullable=False),
    Column("url", Text, nullable=False),
    Column("parent_doc_id", String(36), nullable=False),
    Column("chunk_ids", JSON, nullable=False),
    Column("ingested_at", UtcDateTime, nullable=False),
)
Index("lessons_parent", lessons.c.book_id, lessons.c.parent_doc_id)

chunks = Table(
    "chunks",
    metadata,
    Column("point_id", String(36), primary_key=True),
    Column("book_id", String(64), nullable=False),
    Column("chunk_id", String(36), nullable=False),
    Column("source_file", Text, nullable=False),
    Column("parent_doc_id", String(36), nullable=False),
    Column("chunk_index", Integer, nullable=False),
    Column("content_hash", String(64), nullable=False),
    Column("embed_hash", String(64), nullable=False),
    Column("embedded", Boolean, nullable=False),
    Column("embedded_at", UtcDateTime),
    Column("embedding_model", Text),
    Column("version", Integer, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    Column("text", Text, nullable=False),
    Column("embed_text", Text, nullable=False),
    Column("details", JSON, nullable=False),
)
# Not unique: the point's id is. A lesson that moved may be live at its new place before the job forgets the old one, in
# another commit or on another machine, and both have the chunk's id until then.
Index("chunks_id", chunks.c.book_id, chunks.c.chunk_id)
Index("chunks_lesson", chunks.c.book_id, chunks.c.source_file)
Index("chunks_embed", chunks.c.book_id, chunks.c.embed_hash)
Index(
    "chunks_unembedded",
    chunks.c.book_id,
    chunks.c.point_id,
    sqlite_where=~chunks.c.embedded,
    postgresql_where=~chunks.c.embedded,
)

terms = Table(
    "terms",
    metadata,
    Column("book_id", String(64), primary_key=True),
    Column("term_id", BigInteger, primary_key=True, autoincrement=False),
    Column("chunks", Integer, nullable=False),
)

doomed_points = Table(
    "doomed_points",
    metadata,
    Column("point_id", String(36), primary_key=True),
    Column("book_id", String(64), nullable=False, index=True),
)

indexes = Table(
    "indexes",
    metadata,
    Column("collection", Text, primary_key=True),
    Column("embedder", Text, nullable=False),
    Column("dimension", Integer, nullable=False),
    Column("stored_in", Text, nullable=False, server_default=""),
)

calibrations = Table(
    "calibrations",
    metadata,
    Column("book_id", String(64), primary_key=True),
    Column("embedder", Text, primary_key=True),
    Column("calibration", Text, nullable=False),
    Column("made_at", UtcDateTime, nullable=False),
)

suggestions = Table(
    "suggestions",
    metadata,
    Column("book_id", String(64), primary_key=True),
    # The book's revision when they were tried: once it changes, they are void.
    Column("revision", Integer, nullable=False),
    Column("questions", JSON, nullable=False),
)

COUNTS = tuple(name for name in Job.__slots__ if name.startswith(("files_", "chunks_")))
"""What a job counts."""

jobs = Table(
    "jobs",
    metadata,
    Column("job_id", Integer, primary_key=True, autoincrement=True),
    Column("book_id", String(64), nullable=False),
    Column("folder", Text, nullable=False),
    Column("mode", String(16), nullable=False),
    Column("status", String(16), nullable=False),
    Column("phase", String(32), nullable=False),
    *(Column(name, Integer, nullable=False) for name in COUNTS),
    Column("problems", JSON, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("started_at", UtcDateTime),
    Column("completed_at", UtcDateTime),
    Column("heartbeat_at", UtcDateTime),
    Column("owner", Text),
    Column("error_message", Text),
    Column("collection", Text, nullable=False, server_default=""),
    sqlite_autoincrement=True,
)
OPEN_JOB = jobs.c.status.in_(["queued", "running"])
Index(
    "jobs_open_once",
    jobs.c.book_id,
    jobs.c.folder,
    jobs.c.mode,
    jobs.c.collection,
    unique=True,
    sqlite_where=OPEN_JOB,
    postgresql_where=OPEN_JOB,
)

shards = Table(
    "shards",
    metadata,
    Column("job_id", Integer, primary_key=True, autoincrement=False),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("step", String(16), nullable=False),
    Column("files", JSON, nullable=False),
    Column("content", LargeBinary),
    Column("owner", Text),
    Column("heartbeat_at", UtcDateTime),
)

JSONB_WHERE_KNOWN = JSON().with_variant(JSONB(), "postgresql")
# NULL, not a JSON null, where there is nothing.
JSON_OR_NULL = JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")

threads = Table(
    "threads",
    metadata,
    Column("thread_id", String(36), primary_key=True),
    Column("book_id", String(64), nullable=False),
    Column("owner", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("topic_summary", Text),
    Column("metadata", JSONB_WHERE_KNOWN, nullable=False),
    Column("model", Text),
    Column("tokens_used", BigInteger, nullable=False),
    Column("turn_count", Integer, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    Column("archived_at", UtcDateTime),
)
Index("threads_updated", threads.c.updated_at.desc())
Index("threads_created", threads.c.created_at.desc())
Index("threads_owner", threads.c.owner, threads.c.updated_at.desc())

messages = Table(
    "messages",
    metadata,
    Column("thread_id", String(36), ForeignKey("threads.thread_id", ondelete="CASCADE"), primary_key=True),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("role", String(16), nullable=False),
    Column("timestamp", UtcDateTime, nullable=False),
    Column("confidence", Float),
    Column("refusal", String(32)),
    Column("tool_calls", JSONB_WHERE_KNOWN, nullable=False),
    Column("content", Text, nullable=False),
    Column("cited", JSONB_WHERE_KNOWN, nullable=False),
)

deliveries = Table(
    "deliveries",
    metadata,
    Column("delivery_id", String(128), primary_key=True),
    Column("received_at", UtcDateTime, nullable=False),
)

keys = Table(
    "keys",
    metadata,
    Column("key_id", String(16), primary_key=True),
    Column("secret_hash", String(64), nullable=False),
    Column("name", Text, nullable=False),
    Column("tenant", String(24), nullable=False),
    Column("role", String(16), nullable=False),
    # NULL where a key may read all books.
    Column("books", JSON_OR_NULL),
    Column("created_at", UtcDateTime, nullable=False),
    Column("revoked_at", UtcDateTime),
    Column("last_used_at", UtcDateTime),
    # NULL for a key that is its bearer's secret.
    Column("origins", JSON_OR_NULL),
)


def _of_an_answer() -> ForeignKeyConstraint:
    """Deleted with the thread: nothing of a conversation outlives it."""
    return ForeignKeyConstraint(
        ["thread_id", "position"], ["messages.thread_id", "messages.position"], ondelete="CASCADE"
    )


asked = Table(
    "asked",
    metadata,
    Column("thread_id", String(36), primary_key=True),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("owner", Text, nullable=False),
    Column("book_id", String(64), nullable=False),
    Column("question", Text, nullable=False),
    Column("searched", Text, nullable=False),
    Column("refusal", String(32)),
    Column("confidence", Float),
    Column("selected", Boolean, nullable=False),
    Column("nearest", JSON_OR_NULL),
    Column("asked_at", UtcDateTime, nullable=False),
    Column("level", String(16)),
    _of_an_answer(),
)
Index("asked_of_book", asked.c.book_id, asked.c.asked_at.desc())

feedback = Table(
    "feedback",
    metadata,
    Column("thread_id", String(36), primary_key=True),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("helpful", Boolean, nullable=False),
    Column("comment", Text),
    Column("given_at", UtcDateTime, nullable=False),
    _of_an_answer(),
)
