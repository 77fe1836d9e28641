"""What is particular to SQLite: one server, one writer at a time, files that are overwritten."""

import threading
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

from sqlalchemy import Connection, Engine, event

_PRAGMAS = (
    "journal_mode=WAL",
    "synchronous=FULL",  # an acknowledged upload survives a power failure
    "secure_delete=ON",  # erased features are overwritten
    "foreign_keys=ON",
    "busy_timeout=10000",
)


class Sqlite:
    """How the one set of statements is run on a SQLite file."""

    is_shared: Final = False
    options: Mapping[str, Any] = {}
    reading: Mapping[str, Any] = {}

    def __init__(self) -> None:
        # SQLite has one writer at a time; waiting here is fair, its own waiting is by polling.
        self._one_writer = threading.Lock()

    def driver_needed(self) -> AbstractContextManager[None]:
        """The driver is a part of Python."""
        return nullcontext()

    def prepare(self, engine: Engine) -> None:
        """Have every new connection configured."""
        event.listen(engine, "connect", _configure)

    def turn(self) -> AbstractContextManager[Any]:
        """Wait for this one's turn to write."""
        return self._one_writer

    def begin_reading(self, connection: Connection) -> None:
        """One state of the database from now on."""
        _begin(connection, "BEGIN")

    def begin_writing(self, connection: Connection) -> None:
        """Nobody else writes from now on."""
        _begin(connection, "BEGIN IMMEDIATE")

    def now(self, _: Connection) -> float | None:
        """None: the database has no clock but that of its only server."""
        return None

    def keep_others_out(self, connection: Connection, what: str) -> None:
        """A transaction that writes is alone anyway."""

    def be_brief(self, connection: Connection) -> None:
        """It has no rows to wait for: it waited for its turn, and that is over."""

    def wait(self, engine: Engine, give_up: float) -> None:
        """A file is there or not."""

    def erase(self, engine: Engine) -> bool:
        """Move the write-ahead log into the database and cut it off, so that erased rows are gone.

        False if readers were in the way.
        """
        with engine.connect() as connection:
            raw = connection.connection.driver_connection
            if raw is None:
                return False
            (busy, _, _) = raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            return not busy


def _configure(connection: Any, _: Any) -> None:
    connection.isolation_level = None  # transactions begin when we say, not when sqlite3 likes
    for pragma in _PRAGMAS:
        connection.execute(f"PRAGMA {pragma}")


def _begin(connection: Connection, statement: str) -> None:
    # Past SQLAlchemy: a listener to its "begin" would make every statement look for listeners.
    driver: Any = connection.connection.driver_connection
    driver.execute(statement)
