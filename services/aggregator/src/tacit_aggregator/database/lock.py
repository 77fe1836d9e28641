"""Locks on a whole database: who serves it, and no migration under a server.

A SQLite file has one server: it holds a lock beside the file. A PostgreSQL database has any number:
each holds an advisory lock together with the others, on a session of its own, and a migration needs
that lock for itself. So the session must be the database's own: a pooler that hands sessions from
transaction to transaction cannot stand between.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum

from filelock import FileLock, Timeout
from sqlalchemy import Connection, func, select, text

from tacit_aggregator.database.engine import Database
from tacit_aggregator.database.location import database_file
from tacit_aggregator.errors import OperatorError

TACIT = 0x7AC17
"""The first number of all our advisory locks; the second says which."""

_PATIENCE_SECONDS = 5.0
_BETWEEN_ATTEMPTS = 0.1
_SERVERS = text(
    "SELECT DISTINCT application_name FROM pg_locks JOIN pg_stat_activity USING (pid)"
    " WHERE locktype = 'advisory' AND granted AND mode = 'ShareLock'"
    " AND pg_locks.database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    " AND classid = :tacit AND objid = :which ORDER BY application_name"
)


class Advisory(IntEnum):
    """What an advisory lock is for."""

    SERVING = 1
    MIGRATING = 2
    SCORING = 3


@contextmanager
def serving(database: Database) -> Iterator[None]:
    """Hold the database for a server, or refuse; it goes with the process, however that ends."""
    if not database.is_shared:
        with only_server(database.url):
            yield
        return
    with database.session() as session:
        if not share(session, Advisory.SERVING):
            raise OperatorError("The database is being migrated; start the server afterwards.")
        yield


@contextmanager
def one_migration(database: Database) -> Iterator[None]:
    """Wait for others that migrate; whoever comes next may find that there is nothing to do."""
    if not database.is_shared:
        yield
        return
    with database.session() as session:
        session.execute(text("SET lock_timeout = 0"))
        session.execute(text("SET statement_timeout = 0"))
        session.execute(select(func.pg_advisory_lock(TACIT, Advisory.MIGRATING.value)))
        yield


@contextmanager
def no_server(database: Database) -> Iterator[None]:
    """Let no server run while this lasts, or say which ones must be stopped first."""
    if not database.is_shared:
        with only_server(database.url):
            yield
        return
    with database.session() as session:
        _keep_servers_out(session)
        yield


@contextmanager
def only_server(url: str) -> Iterator[None]:
    """Hold the lock beside a SQLite file, or refuse; it goes with the process."""
    file = database_file(url)
    lock = FileLock(file.with_name(file.name + ".lock"))
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise OperatorError(
            f"Another server is running on {file}; stop it first, or set TACIT_DATABASE_URL."
        ) from None
    except OSError as error:
        raise OperatorError(f"{lock.lock_file} cannot be locked: {error.strerror}.") from None
    try:
        yield
    finally:
        lock.release()


def share(session: Connection, which: Advisory) -> bool:
    """Hold an advisory lock with others as long as the session lasts; False if one has it alone."""
    taken = session.execute(select(func.pg_try_advisory_lock_shared(TACIT, which.value)))
    return bool(taken.scalar_one())


def take(session: Connection, which: Advisory) -> bool:
    """Hold an advisory lock alone as long as the session lasts; False if others have it."""
    taken = session.execute(select(func.pg_try_advisory_lock(TACIT, which.value)))
    return bool(taken.scalar_one())


def _keep_servers_out(session: Connection) -> None:
    give_up = time.monotonic() + _PATIENCE_SECONDS
    while not take(session, Advisory.SERVING):
        if time.monotonic() > give_up:
            values = {"tacit": TACIT, "which": Advisory.SERVING.value}
            servers = ", ".join(session.execute(_SERVERS, values).scalars())
            raise OperatorError(
                "Servers of another version are running on this database; stop them first:"
                f" {servers}."
            )
        time.sleep(_BETWEEN_ATTEMPTS)
