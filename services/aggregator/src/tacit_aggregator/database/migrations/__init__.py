"""Alembic's scripts; `tacit_aggregator.database.migrate` runs them."""
