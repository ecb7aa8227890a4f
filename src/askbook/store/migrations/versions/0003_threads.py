"""Threads and their messages."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0003"
down_revision = "0002"

utc = sa.DateTime(timezone=True)
json = sa.JSON().with_variant(JSONB(), "postgresql")


def upgrade() -> None:
    op.create_table(
        "threads",
        sa.Column("thread_id", sa.String(36), primary_key=True),
        sa.Column("book_id", sa.String(64), nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("topic_summary", sa.Text),
        sa.Column("metadata", json, nullable=False),
        sa.Column("model", sa.Text),
        sa.Column("tokens_used", sa.BigInteger, nullable=False),
        sa.Column("turn_count", sa.Integer, nullable=False),
        sa.Column("created_at", utc, nullable=False),
        sa.Column("updated_at", utc, nullable=False),
        sa.Column("archived_at", utc),
    )
    op.create_index("threads_updated", "threads", [sa.text("updated_at DESC")])
    op.create_index("threads_created", "threads", [sa.text("created_at DESC")])
    op.create_index("threads_owner", "threads", ["owner", sa.text("updated_at DESC")])
    op.create_table(
        "messages",
        sa.Column("thread_id", sa.String(36), sa.ForeignKey("threads.thread_id", ondelete="CASCADE"), primary_key=True),
        sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("timestamp", utc, nullable=False),
        sa.Column("confidence", sa.Float),
        sa.Column("refusal", sa.String(32)),
        sa.Column("tool_calls", json, nullable=False),
        sa.Column("content", sa.Text, nullable=False),
        sa.Column("cited", json, nullable=False),
    )


def downgrade() -> None:
    for table in ("messages", "threads"):
        op.drop_table(table)
