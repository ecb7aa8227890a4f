"""When and by what each chunk was embedded. Of those there are, the last change is the nearest that is known, and where more than
one embedder made indexes here, which of them embedded a chunk is not."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    op.add_column("chunks", sa.Column("embedded_at", sa.DateTime(timezone=True)))
    op.add_column("chunks", sa.Column("embedding_model", sa.Text()))
    op.execute(
        "UPDATE chunks SET embedded_at = updated_at, embedding_model = "
        "(SELECT CASE WHEN min(embedder) = max(embedder) THEN min(embedder) END FROM indexes) WHERE embedded"
    )


def downgrade() -> None:
    op.drop_column("chunks", "embedding_model")
    op.drop_column("chunks", "embedded_at")
