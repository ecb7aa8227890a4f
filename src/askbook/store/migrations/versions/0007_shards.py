"""Jobs are cut into shards that many workers take; a job and an index know the collection that they write to."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

OPEN = sa.text("status IN ('queued', 'running')")


def upgrade() -> None:
    op.create_table(
        "shards",
        sa.Column("job_id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("step", sa.String(16), nullable=False),
        sa.Column("files", sa.JSON, nullable=False),
        sa.Column("content", sa.LargeBinary),
        sa.Column("owner", sa.Text),
        sa.Column("heartbeat_at", sa.DateTime(timezone=True)),
    )
    op.add_column("jobs", sa.Column("collection", sa.Text, nullable=False, server_default=""))
    op.add_column("indexes", sa.Column("stored_in", sa.Text, nullable=False, server_default=""))
    _open_once("book_id", "folder", "mode", "collection")


def downgrade() -> None:
    _open_once("book_id", "folder", "mode")
    with op.batch_alter_table("indexes") as table:
        table.drop_column("stored_in")
    with op.batch_alter_table("jobs", table_kwargs={"sqlite_autoincrement": True}) as table:
        table.drop_column("collection")
    op.drop_table("shards")


def _open_once(*columns: str) -> None:
    op.drop_index("jobs_open_once", table_name="jobs")
    op.create_index("jobs_open_once", "jobs", columns, unique=True, sqlite_where=OPEN, postgresql_where=OPEN)
