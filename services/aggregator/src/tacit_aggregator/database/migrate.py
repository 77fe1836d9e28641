"""Bring a database to the newest schema, and see whether it is there."""

import os
import sqlite3

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import text
from sqlalchemy.exc import DatabaseError

from tacit_aggregator.database.engine import Database
from tacit_aggregator.database.location import database_file
from tacit_aggregator.database.lock import no_server, one_migration
from tacit_aggregator.errors import OperatorError

_NOT_MIGRATED = "The database is not ready for this version; run: tacit-aggregator migrate"


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
        _refuse_newer(database)
        if _revision(database) == _head():
            return
        with one_migration(database):
            if _revision(database) != _head():
                _migrate(database)
    finally:
        database.close()


def _migrate(database: Database) -> None:
    with no_server(database), database.transaction("migrate") as connection:
        if database.is_shared:
            connection.execute(text("SET LOCAL statement_timeout = 0"))
        config = _config()
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def check_current(database: Database) -> None:
    """Refuse a database that is not at the newest schema."""
    if not database.is_shared and not database_file(database.url).exists():
        raise OperatorError("There is no database yet; run: tacit-aggregator migrate")
    _refuse_newer(database)
    if _revision(database) != _head():
        raise OperatorError(_NOT_MIGRATED)


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", "tacit_aggregator.database:migrations")
    return config


def _head() -> str | None:
    return ScriptDirectory.from_config(_config()).get_current_head()


def _revision(database: Database) -> str | None:
    try:
        with database.read() as connection:
            return MigrationContext.configure(connection).get_current_revision()
    except (DatabaseError, sqlite3.DatabaseError):
        if database.is_shared:
            raise
        raise OperatorError(
            f"{database_file(database.url)} cannot be read as a database; see TACIT_DATABASE_URL."
        ) from None


def _refuse_newer(database: Database) -> None:
    revision = _revision(database)
    scripts = ScriptDirectory.from_config(_config())
    if revision is not None and revision not in {one.revision for one in scripts.walk_revisions()}:
        raise OperatorError(
            "The database was made by a newer version of tacit-aggregator; install that version."
        )


def _create(url: str) -> None:
    # Before SQLite does: pending features are nobody's but the operator's to read.
    file = database_file(url)
    try:
        os.close(os.open(file, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as error:
        raise OperatorError(f"The database {file} cannot be opened: {error.strerror}.") from None
