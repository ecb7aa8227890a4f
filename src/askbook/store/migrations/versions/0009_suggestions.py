"""Questions to begin with, of each book: they were asked, and the book answers them."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.create_table(
        "suggestions",
        sa.Column("book_id", sa.String(64), primary_key=True),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("questions", sa.JSON, nullable=False),
    )


def downgrade() -> None:
    op.drop_table("suggestions")
