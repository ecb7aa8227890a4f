"""Keys that are good on named sites only; how sure each answer was."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.add_column("keys", sa.Column("origins", sa.JSON().with_variant(JSONB(), "postgresql")))
    op.add_column("asked", sa.Column("level", sa.String(16)))


def downgrade() -> None:
    op.drop_column("asked", "level")
    op.drop_column("keys", "origins")
