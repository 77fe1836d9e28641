"""The database: readers, and one named transaction at a time that writes."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, create_engine, event

from tacit_aggregator.database.location import database_file

_PRAGMAS = (
    "journal_mode=WAL",
    "synchronous=FULL",  # an acknowledged upload survives a power failure
    "secure_delete=ON",  # erased features are overwritten
    "foreign_keys=ON",
    "busy_timeout=10000",
)

Observer = Callable[[str, float], None]
"""Told the name and the seconds of each transaction that was committed."""


class Database:
    """Connections to one database. Every commit of the aggregator goes through `transaction`."""

    def __init__(self, url: str) -> None:
        database_file(url)  # refuses what is not a SQLite file
        self.url = url
        self._observer: Observer | None = None
        # An error shows its statement, never the features and hashes that were its parameters.
        self._engine = create_engine(url, hide_parameters=True)
        # SQLite has one writer at a time; waiting here is fair, its own waiting is by polling.
        self._one_writer = threading.Lock()
        event.listen(self._engine, "connect", _configure)

    def observe(self, observer: Observer) -> None:
        """Tell this one about every transaction from now on."""
        self._observer = observer

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A connection that sees one state of the database and changes nothing."""
        with self._engine.connect() as connection:
            _begin(connection, "BEGIN")
            yield connection

    @contextmanager
    def transaction(self, name: str) -> Iterator[Connection]:
        """All of it or nothing, durable when this returns; `name` says what it does."""
        with self._one_writer:
            began = time.perf_counter()
            with self._engine.connect() as connection, connection.begin():
                _begin(connection, "BEGIN IMMEDIATE")
                yield connection
            seconds = time.perf_counter() - began
        if self._observer is not None:
            self._observer(name, seconds)

    def erase_log(self) -> bool:
        """Move the write-ahead log into the database and cut it off, so that erased rows are gone.

        False if readers were in the way: call again.
        """
        with self._one_writer, self._engine.connect() as connection:
            raw = connection.connection.driver_connection
            if raw is None:
                return False
            (busy, _, _) = raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            return not busy

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()


def _configure(connection: Any, _: Any) -> None:
    connection.isolation_level = None  # transactions begin when we say, not when sqlite3 likes
    for pragma in _PRAGMAS:
        connection.execute(f"PRAGMA {pragma}")


def _begin(connection: Connection, statement: str) -> None:
    # Past SQLAlchemy: a listener to its "begin" would make every statement look for listeners.
    driver: Any = connection.connection.driver_connection
    driver.execute(statement)
