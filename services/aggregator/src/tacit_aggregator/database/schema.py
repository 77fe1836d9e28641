"""Which schema a database has, and which it should have; without Alembic, which loads slowly."""

import sqlite3
from importlib.resources import files

from sqlalchemy import column, inspect, select, table
from sqlalchemy.exc import DatabaseError

from tacit_aggregator.database.engine import Database
from tacit_aggregator.database.location import database_file
from tacit_aggregator.errors import OperatorError

_NOT_MIGRATED = "The database is not ready for this version; run: tacit-aggregator migrate"
_VERSION = table("alembic_version", column("version_num"))
"""Where Alembic writes down what it has done."""


def revisions() -> list[str]:
    """All schemas there have been, oldest first: what the migrations' files begin with."""
    versions = files("tacit_aggregator.database.migrations") / "versions"
    names = (file.name for file in versions.iterdir())
    return sorted(name.split("_")[0] for name in names if name[0].isdigit())


def revision_of(database: Database) -> str | None:
    """The schema that a database has; None if it was never migrated."""
    try:
        with database.read() as connection:
            if not inspect(connection).has_table(_VERSION.name):
                return None
            revision: str | None = connection.execute(select(_VERSION)).scalar_one_or_none()
            return revision
    except (DatabaseError, sqlite3.DatabaseError):
        if database.is_shared:
            raise
        raise OperatorError(
            f"{database_file(database.url)} cannot be read as a database; see TACIT_DATABASE_URL."
        ) from None


def is_current(database: Database) -> bool:
    """Whether a database has the newest schema; refuses one that is newer than this version."""
    known, revision = revisions(), revision_of(database)
    if revision is not None and revision not in known:
        raise OperatorError(
            "The database was made by a newer version of tacit-aggregator; install that version."
        )
    return revision == known[-1]


def check_current(database: Database) -> None:
    """Refuse a database that is not at the newest schema."""
    if not database.is_shared and not database_file(database.url).exists():
        raise OperatorError("There is no database yet; run: tacit-aggregator migrate")
    if not is_current(database):
        raise OperatorError(_NOT_MIGRATED)
