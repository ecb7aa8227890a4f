"""Run by alembic with the connection that `open_database` hands over."""

from alembic import context

from askbook.store.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
