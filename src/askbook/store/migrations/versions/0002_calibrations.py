"""Calibrations: how sure a book's answers are, as `askbook calibrate` measured it."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_table(
        "calibrations",
        sa.Column("book_id", sa.String(64), primary_key=True),
        sa.Column("embedder", sa.Text, primary_key=True),
        sa.Column("calibration", sa.Text, nullable=False),
        sa.Column("made_at", sa.DateTime(timezone=True), nullable=False),
    )


def downgrade() -> None:
    op.drop_table("calibrations")
