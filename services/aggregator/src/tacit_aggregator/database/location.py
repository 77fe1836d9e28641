"""Where the database is."""

from pathlib import Path

from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

from tacit_aggregator.errors import OperatorError

_EXPECTED = "TACIT_DATABASE_URL must name a SQLite file: sqlite:///path/to/file.db"


def database_file(url: str) -> Path:
    """The file of a SQLite database."""
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise OperatorError(_EXPECTED) from None
    file = parsed.database
    if parsed.get_backend_name() != "sqlite" or not file or file.startswith((":", "file:")):
        raise OperatorError(_EXPECTED)
    return Path(file)
