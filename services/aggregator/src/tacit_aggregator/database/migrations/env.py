"""What Alembic runs: the migrations, inside the transaction that it was handed."""

from alembic import context

from tacit_aggregator.database.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,  # SQLite changes a table by copying it
)
context.run_migrations()
