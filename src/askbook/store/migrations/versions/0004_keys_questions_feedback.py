"""API keys; what was asked, and what readers thought of the answers."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0004"
down_revision = "0003"

utc = sa.DateTime(timezone=True)
json = sa.JSON().with_variant(JSONB(), "postgresql")


def upgrade() -> None:
    op.create_table(
        "keys",
        sa.Column("key_id", sa.String(16), primary_key=True),
        sa.Column("secret_hash", sa.String(64), nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("tenant", sa.String(24), nullable=False),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("books", json),
        sa.Column("created_at", utc, nullable=False),
        sa.Column("revoked_at", utc),
        sa.Column("last_used_at", utc),
    )
    op.create_table(
        "asked",
        sa.Column("thread_id", sa.String(36), primary_key=True),
        sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("book_id", sa.String(64), nullable=False),
        sa.Column("question", sa.Text, nullable=False),
        sa.Column("searched", sa.Text, nullable=False),
        sa.Column("refusal", sa.String(32)),
        sa.Column("confidence", sa.Float),
        sa.Column("selected", sa.Boolean, nullable=False),
        sa.Column("nearest", json),
        sa.Column("asked_at", utc, nullable=False),
        sa.ForeignKeyConstraint(
            ["thread_id", "position"], ["messages.thread_id", "messages.position"], ondelete="CASCADE"
        ),
    )
    op.create_index("asked_of_book", "asked", ["book_id", sa.text("asked_at DESC")])
    op.create_table(
        "feedback",
        sa.Column("thread_id", sa.String(36), primary_key=True),
        sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("helpful", sa.Boolean, nullable=False),
        sa.Column("comment", sa.Text),
        sa.Column("given_at", utc, nullable=False),
        sa.ForeignKeyConstraint(
            ["thread_id", "position"], ["messages.thread_id", "messages.position"], ondelete="CASCADE"
        ),
    )


def downgrade() -> None:
    for table in ("feedback", "asked", "keys"):
        op.drop_table(table)
