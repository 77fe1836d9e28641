"""Bring a database to the newest schema."""

import os

from alembic import command
from alembic.config import Config
from sqlalchemy import text

from tacit_aggregator.database.engine import Database
from tacit_aggregator.database.location import database_file
from tacit_aggregator.database.lock import no_server, one_migration
from tacit_aggregator.database.schema import is_current
from tacit_aggregator.errors import OperatorError


def upgrade(url: str, wait_seconds: float = 0.0) -> None:
    """Bring the database to the newest schema, making it if there is none; safe to repeat.

    Not under a running server, which would find other tables than it knows. On PostgreSQL it waits
    for a server that starts, and any number may migrate at the same time: one does it.
    """
    database = Database(url)
    try:
        if not database.is_shared:
            _create(url)
        database.wait(wait_seconds)
        if is_current(database):
            return
        with one_migration(database):
            if not is_current(database):
                _migrate(database)
    finally:
        database.close()


def configuration() -> Config:
    """Alembic's, with where the migrations are."""
    config = Config()
    config.set_main_option("script_location", "tacit_aggregator.database:migrations")
    return config


def _migrate(database: Database) -> None:
    with no_server(database), database.transaction("migrate") as connection:
        if database.is_shared:
            connection.execute(text("SET LOCAL statement_timeout = 0"))
        config = configuration()
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def _create(url: str) -> None:
    # Before SQLite does: pending features are nobody's but the operator's to read.
    file = database_file(url)
    try:
        os.close(os.open(file, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as error:
        raise OperatorError(f"The database {file} cannot be opened: {error.strerror}.") from None
