"""Books, lessons, chunks, terms, doomed points, indexes, jobs."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

utc = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "books",
        sa.Column("book_id", sa.String(64), primary_key=True),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("folder", sa.Text, nullable=False),
        sa.Column("facets", sa.JSON, nullable=False),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("total_chunks", sa.Integer, nullable=False),
        sa.Column("last_full_ingest", utc),
        sa.Column("last_incremental_update", utc),
    )
    op.create_table(
        "lessons",
        sa.Column("book_id", sa.String(64), primary_key=True),
        sa.Column("source_file", sa.Text, primary_key=True),
        sa.Column("file_hash", sa.String(64), nullable=False),
        sa.Column("fingerprint", sa.String(64), nullable=False),
        sa.Column("module", sa.Text, nullable=False),
        sa.Column("chapter", sa.Integer, nullable=False),
        sa.Column("lesson", sa.Integer, nullable=False),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("parent_doc_id", sa.String(36), nullable=False),
        sa.Column("chunk_ids", sa.JSON, nullable=False),
        sa.Column("ingested_at", utc, nullable=False),
    )
    op.create_index("lessons_parent", "lessons", ["book_id", "parent_doc_id"])
    op.create_table(
        "chunks",
        sa.Column("point_id", sa.String(36), primary_key=True),
        sa.Column("book_id", sa.String(64), nullable=False),
        sa.Column("chunk_id", sa.String(36), nullable=False),
        sa.Column("source_file", sa.Text, nullable=False),
        sa.Column("parent_doc_id", sa.String(36), nullable=False),
        sa.Column("chunk_index", sa.Integer, nullable=False),
        sa.Column("content_hash", sa.String(64), nullable=False),
        sa.Column("embed_hash", sa.String(64), nullable=False),
        sa.Column("embedded", sa.Boolean, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("created_at", utc, nullable=False),
        sa.Column("updated_at", utc, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("embed_text", sa.Text, nullable=False),
        sa.Column("details", sa.JSON, nullable=False),
    )
    op.create_index("chunks_id", "chunks", ["book_id", "chunk_id"])
    op.create_index("chunks_lesson", "chunks", ["book_id", "source_file"])
    op.create_index("chunks_embed", "chunks", ["book_id", "embed_hash"])
    unembedded = sa.text("NOT embedded")
    op.create_index(
        "chunks_unembedded", "chunks", ["book_id", "point_id"], sqlite_where=unembedded, postgresql_where=unembedded
    )
    op.create_table(
        "terms",
        sa.Column("book_id", sa.String(64), primary_key=True),
        sa.Column("term_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("chunks", sa.Integer, nullable=False),
    )
    op.create_table(
        "doomed_points",
        sa.Column("point_id", sa.String(36), primary_key=True),
        sa.Column("book_id", sa.String(64), nullable=False, index=True),
    )
    op.create_table(
        "indexes",
        sa.Column("collection", sa.Text, primary_key=True),
        sa.Column("embedder", sa.Text, nullable=False),
        sa.Column("dimension", sa.Integer, nullable=False),
    )
    op.create_table(
        "jobs",
        sa.Column("job_id", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("book_id", sa.String(64), nullable=False),
        sa.Column("folder", sa.Text, nullable=False),
        sa.Column("mode", sa.String(16), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("phase", sa.String(32), nullable=False),
        sa.Column("files_processed", sa.Integer, nullable=False),
        sa.Column("files_skipped", sa.Integer, nullable=False),
        sa.Column("files_total", sa.Integer, nullable=False),
        sa.Column("chunks_created", sa.Integer, nullable=False),
        sa.Column("chunks_deleted", sa.Integer, nullable=False),
        sa.Column("chunks_embedded", sa.Integer, nullable=False),
        sa.Column("chunks_to_embed", sa.Integer, nullable=False),
        sa.Column("problems", sa.JSON, nullable=False),
        sa.Column("created_at", utc, nullable=False),
        sa.Column("started_at", utc),
        sa.Column("completed_at", utc),
        sa.Column("heartbeat_at", utc),
        sa.Column("owner", sa.Text),
        sa.Column("error_message", sa.Text),
        sqlite_autoincrement=True,
    )
    open_job = sa.text("status IN ('queued', 'running')")
    op.create_index(
        "jobs_open_once",
        "jobs",
        ["book_id", "folder", "mode"],
        unique=True,
        sqlite_where=open_job,
        postgresql_where=open_job,
    )


def downgrade() -> None:
    for table in ("jobs", "indexes", "doomed_points", "terms", "chunks", "lessons", "books"):
        op.drop_table(table)
