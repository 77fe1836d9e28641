"""The database: readers, and named transactions that write; on SQLite one at a time."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, Engine, create_engine

from tacit_aggregator.clock import Clock
from tacit_aggregator.database.location import is_postgresql, parsed
from tacit_aggregator.database.postgresql import Postgresql
from tacit_aggregator.database.sqlite import Sqlite

MOST_CONNECTIONS = 10

Observer = Callable[[str, float], None]
"""Told the name and the seconds of each transaction that was committed."""


class Database:
    """Connections to one database. Every commit of the aggregator goes through `transaction`."""

    def __init__(self, url: str, *, connections: int = MOST_CONNECTIONS) -> None:
        self.url = url
        self.clock: Clock = time.time
        """What `now` tells on SQLite, where the only server's clock is the database's."""
        self._observer: Observer | None = None
        self._dialect = Postgresql(url, connections) if is_postgresql(url) else Sqlite()
        with self._dialect.driver_needed():
            # An error shows its statement, never the features and hashes that were its parameters.
            self._engine: Engine = create_engine(
                parsed(url), hide_parameters=True, **self._dialect.options
            )
        self._dialect.prepare(self._engine)
        self._readers = self._engine.execution_options(**self._dialect.reading)

    @property
    def is_shared(self) -> bool:
        """Whether other servers may work on it at the same time."""
        return self._dialect.is_shared

    def observe(self, observer: Observer) -> None:
        """Tell this one about every transaction from now on."""
        self._observer = observer

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A connection that sees one state of the database and changes nothing."""
        with self._readers.connect() as connection:
            self._dialect.begin_reading(connection)
            yield connection

    @contextmanager
    def transaction(self, name: str) -> Iterator[Connection]:
        """All of it or nothing, durable when this returns; `name` says what it does.

        On PostgreSQL others write at the same time: lock first what the change rests on, in the
        order that the package `database` tells.
        """
        with self._dialect.turn():
            began = time.perf_counter()
            with self._engine.connect() as connection, connection.begin():
                self._dialect.begin_writing(connection)
                yield connection
            seconds = time.perf_counter() - began
        if self._observer is not None:
            self._observer(name, seconds)

    @contextmanager
    def session(self) -> Iterator[Connection]:
        """A connection of its own, outside of transactions, for locks that go with it."""
        with self._engine.connect() as connection:
            outside = connection.execution_options(isolation_level="AUTOCOMMIT")
            outside.detach()
            yield outside

    def now(self, connection: Connection) -> float:
        """The database's clock, the same for all servers: UTC seconds since 1970.

        On SQLite, with one server, it is `clock`.
        """
        told = self._dialect.now(connection)
        return self.clock() if told is None else told

    def keep_others_out(self, connection: Connection, what: str) -> None:
        """Let nobody else do this until the transaction ends, in whichever process."""
        self._dialect.keep_others_out(connection, what)

    def be_brief(self, connection: Connection) -> None:
        """Wait for no lock longer than a second in this transaction, and fail (see `is_locked`)."""
        self._dialect.be_brief(connection)

    def wait(self, seconds: float) -> None:
        """Wait until the database answers, at most for so long."""
        give_up = time.monotonic() + seconds
        self._dialect.wait(self._engine, give_up)

    def erase_log(self) -> bool:
        """Have erased rows gone from the database's files as far as the database can.

        False if others were in the way: call again. See `Sqlite.erase` and `Postgresql.erase`.
        """
        with self._dialect.turn():
            return self._dialect.erase(self._engine)

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()
