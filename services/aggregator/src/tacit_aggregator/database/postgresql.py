"""What is particular to PostgreSQL: many writers, a clock for all of them, locks by name."""

import os
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Final

import structlog
from sqlalchemy import Connection, Double, Engine, ExceptionContext, event, func, select
from sqlalchemy.exc import DBAPIError, OperationalError

from tacit_aggregator.database.location import described
from tacit_aggregator.errors import OperatorError

OLDEST, NEWEST = 15, 18

_SETTINGS = (
    "synchronous_commit = on",  # an acknowledged upload survives, whatever the server's default
    "lock_timeout = '10s'",
    "statement_timeout = '60s'",
    "idle_in_transaction_session_timeout = '30s'",  # a server that hangs must not hold locks
    "timezone = 'UTC'",
    # A machine that vanished without a word lets go of its locks after some seconds.
    "tcp_keepalives_idle = 5",
    "tcp_keepalives_interval = 3",
    "tcp_keepalives_count = 3",
)
_CONNECTING: Mapping[str, Any] = {
    "connect_timeout": 5,
    "keepalives_idle": 5,
    "keepalives_interval": 3,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
}
_POOL_SECONDS = 10
_BETWEEN_ATTEMPTS = 0.5
_NOW = select(func.extract("epoch", func.clock_timestamp()).cast(Double))


class Postgresql:
    """How the one set of statements is run on a PostgreSQL server."""

    is_shared: Final = True
    reading: Mapping[str, Any] = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}

    def __init__(self, url: str, connections: int) -> None:
        self._url = url
        self._warned = False
        self.options: Mapping[str, Any] = {
            "isolation_level": "READ COMMITTED",
            "pool_size": connections,
            "max_overflow": 0,
            "pool_timeout": _POOL_SECONDS,
            "pool_pre_ping": True,  # after the database's restart nobody gets a dead connection
            "connect_args": {**_CONNECTING, "application_name": _application_name()},
        }

    @contextmanager
    def driver_needed(self) -> Iterator[None]:
        """Say how to install psycopg if it is not there."""
        try:
            yield
        except ImportError:
            raise OperatorError(
                "PostgreSQL needs psycopg: pip install 'tacit-aggregator[postgresql]'"
            ) from None

    def prepare(self, engine: Engine) -> None:
        """Have every new connection configured, and no error show a row."""
        event.listen(engine, "connect", self._configure)
        event.listen(engine, "handle_error", _without_values)

    def turn(self) -> AbstractContextManager[Any]:
        """No waiting: the rows that matter are locked."""
        return nullcontext()

    def begin_reading(self, connection: Connection) -> None:
        """The isolation of readers, one snapshot and read only, comes with their connection."""

    def begin_writing(self, connection: Connection) -> None:
        """The driver begins with the first statement."""

    def now(self, connection: Connection) -> float | None:
        """The server's clock, which goes on within a transaction."""
        return float(connection.execute(_NOW).scalar_one())

    def keep_others_out(self, connection: Connection, what: str) -> None:
        """Hold the lock of this name until the transaction ends."""
        connection.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(what, 0))))

    def be_brief(self, connection: Connection) -> None:
        """Give a lock up soon that others hold."""
        connection.exec_driver_sql("SET LOCAL lock_timeout = '1s'")

    def wait(self, engine: Engine, give_up: float) -> None:
        """Try again until the server answers."""
        told = False
        while True:
            try:
                with engine.connect():
                    return
            except OperationalError as error:
                reason = str(error.orig).strip().splitlines()[-1]
            if time.monotonic() > give_up:
                where = described(self._url)
                raise OperatorError(f"There is no answer from {where}: {reason}") from None
            if not told:
                _log().warning("waiting for the database", reason=reason)
                told = True
            time.sleep(_BETWEEN_ATTEMPTS)

    def erase(self, engine: Engine) -> bool:
        """Vacuum the table that features wait in, as well as it goes; False if it does not.

        Vacuum frees erased rows that no transaction can see any more and gives pages at the end
        of the table back. It does not overwrite: bytes of erased rows may stay in free space of
        the table's files until new rows take it, and in the server's write-ahead log, its archive
        and its replicas until those are recycled. Only SQLite erases at once, and for good.
        """
        try:
            with engine.connect() as connection:
                outside = connection.execution_options(isolation_level="AUTOCOMMIT")
                outside.exec_driver_sql("VACUUM (SKIP_LOCKED) pending")
        except DBAPIError:
            return False
        return True

    def _configure(self, connection: Any, _: Any) -> None:
        version = connection.info.server_version // 10_000
        if version < OLDEST:
            raise OperatorError(
                f"{described(self._url)[4:]} runs version {version}; Tacit needs PostgreSQL"
                f" {OLDEST} to {NEWEST}."
            )
        if version > NEWEST and not self._warned:
            self._warned = True
            _log().warning("untested PostgreSQL", version=version, newest=NEWEST)
        autocommit = connection.autocommit
        connection.autocommit = True
        connection.execute("; ".join(f"SET {setting}" for setting in _SETTINGS))
        connection.autocommit = autocommit


def _without_values(context: ExceptionContext) -> None:
    """Leave out what PostgreSQL adds to its sentence: the values of a row that is in the way."""
    original: Any = context.original_exception
    sentence = getattr(getattr(original, "diag", None), "message_primary", None)
    if sentence is None:
        return
    original.args = (sentence,)
    if context.sqlalchemy_exception is not None:
        context.sqlalchemy_exception.args = (f"({type(original).__name__}) {sentence}",)


def _application_name() -> str:
    """What `pg_stat_activity` shows, and an operator looks for."""
    return f"tacit-aggregator {socket.gethostname()[:30]}:{os.getpid()}"


def _log() -> Any:
    # Not at import: the logger would be made before logging is configured.
    return structlog.get_logger("tacit_aggregator.database")
