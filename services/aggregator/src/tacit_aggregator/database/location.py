"""Where the database is: a SQLite file, or a PostgreSQL server."""

from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from tacit_aggregator.errors import OperatorError

_EXPECTED = (
    "TACIT_DATABASE_URL must name a SQLite file, sqlite:///path/to/file.db,"
    " or a PostgreSQL database, postgresql://user:password@host/database"
)
_POSTGRESQL = {"postgresql", "postgres", "postgresql+psycopg"}


def parsed(url: str) -> URL:
    """The URL as SQLAlchemy takes it, with the driver that is used here.

    An error never repeats the URL: it may hold a password.
    """
    try:
        found = make_url(url)
    except (ArgumentError, ValueError):  # ValueError: a port that is no number
        raise OperatorError(_EXPECTED) from None
    if found.drivername in _POSTGRESQL and found.database:
        return found.set(drivername="postgresql+psycopg")
    file = found.database
    if found.get_backend_name() != "sqlite" or not file or file.startswith((":", "file:")):
        raise OperatorError(_EXPECTED)
    return found


def is_postgresql(url: str) -> bool:
    """Whether the database is a server's, which several processes may share."""
    return parsed(url).get_backend_name() == "postgresql"


def database_file(url: str) -> Path:
    """The file of a SQLite database."""
    found = parsed(url)
    if found.get_backend_name() != "sqlite" or not found.database:
        raise OperatorError("TACIT_DATABASE_URL names no SQLite file.")
    return Path(found.database)


def described(url: str) -> str:
    """The database in words that may be shown to anybody: no user, no password."""
    found = parsed(url)
    if found.get_backend_name() == "sqlite":
        return str(found.database)
    host = found.host or found.query.get("host") or "localhost"
    host = host if isinstance(host, str) else ", ".join(host)
    port = "" if found.port is None else f" port {found.port}"
    return f"the PostgreSQL database {found.database} on {host}{port}"
