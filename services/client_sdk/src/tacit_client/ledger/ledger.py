"""The ledger: one SQLite file that one process holds, and its named transactions."""

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from filelock import FileLock
from filelock import Timeout as LockTimeout

from tacit.protocol import Campaign
from tacit_client.dates import SLACK
from tacit_client.errors import (
    LedgerCorrupt,
    LedgerError,
    LedgerInUse,
    LedgerRestored,
    LedgerTooOld,
)
from tacit_client.home import Home
from tacit_client.ledger.schema import MIGRATIONS, check_version, migrate
from tacit_client.ledger.witness import Witness

_PRAGMAS = (
    "journal_mode=WAL",
    "synchronous=FULL",  # what was drawn stays drawn after a power failure
    "secure_delete=ON",  # erased keys and bodies are overwritten
    "foreign_keys=ON",
    "recursive_triggers=ON",  # what is replaced is deleted, and the rules about that hold
    "temp_store=MEMORY",
    "busy_timeout=5000",
)


@dataclass(frozen=True, repr=False)
class Meta:
    """The ledger's own row."""

    ledger: str
    secret: bytes
    sequence: int
    latest: float
    most_nano: int
    restored_floor: float | None
    spent_floor: int


class Ledger:
    """What this site has drawn, sent and spent. Every commit goes through `transaction`.

    Records and persons are in it as keyed hashes, labels and features only inside the bodies that
    wait to be sent. A second process that opens it gets `LedgerInUse`.
    """

    def __init__(
        self,
        home: Home,
        lock: FileLock | None,
        connection: sqlite3.Connection,
        clock: Callable[[], float],
    ) -> None:
        self.home = home
        self.clock = clock
        self._lock = lock
        self._connection = connection

    @classmethod
    def open(
        cls, home: Home | str | Path | None = None, *, clock: Callable[[], float] = time.time
    ) -> Self:
        """Hold the ledger of a home, made if there is none; notice when it is a restored copy."""
        place = Home.of(home)
        place.create()
        lock = _hold(place)
        try:
            with _sqlite_errors():
                ledger = cls(place, lock, _connect(place), clock)
                try:
                    ledger._compare_with_witness(migrate(ledger._connection))
                except BaseException:
                    ledger._connection.close()
                    raise
        except BaseException:
            lock.release()
            raise
        return ledger

    @classmethod
    def reading(cls, home: Home | str | Path | None = None) -> Self:
        """Look into a ledger that another process holds; it cannot be written to.

        Nor can it be brought to this version meanwhile: `LedgerTooOld`.
        """
        place = Home.of(home)
        with _sqlite_errors():
            connection = sqlite3.connect(f"{place.ledger.as_uri()}?mode=ro", uri=True)
            try:
                if check_version(connection) < len(MIGRATIONS):
                    raise LedgerTooOld
            except BaseException:
                connection.close()
                raise
        return cls(place, None, connection, time.time)

    def close(self) -> None:
        """Let others have the ledger."""
        self._connection.close()
        if self._lock is not None:
            self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def meta(self) -> Meta:
        """The ledger's identity, its secret and how far it is."""
        (row,) = self.read(
            "SELECT ledger, secret, sequence, latest, most_nano, restored_floor, spent_floor"
            " FROM meta"
        )
        return Meta(*row)

    def read(self, statement: str, parameters: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        with _sqlite_errors():
            return self._connection.execute(statement, parameters).fetchall()

    @contextmanager
    def transaction(
        self,
        name: str,  # noqa: ARG002 -- says what is committed; tests stop the process by it
        *,
        advances: bool = False,
    ) -> Iterator[sqlite3.Connection]:
        """All of it or nothing, durable when this returns; `name` says what it does.

        With `advances` the ledger's sequence grows, and the witness is told after the commit: for
        joining and drawing, which an old copy of the ledger would not know of.
        """
        with _sqlite_errors():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                if advances:
                    self._connection.execute(
                        "UPDATE meta SET sequence = sequence + 1, latest = max(latest, ?)",
                        (float(self.clock()),),
                    )
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
        if advances:
            self._tell_witness()

    @contextmanager
    def rehearsal(self) -> Iterator[sqlite3.Connection]:
        """A transaction that is always taken back."""
        with _sqlite_errors():
            self._connection.execute("BEGIN")
            try:
                yield self._connection
            finally:
                self._connection.execute("ROLLBACK")

    def erase_log(self) -> None:
        """Cut off the write-ahead log, so that erased keys and bodies are in no file."""
        self.read("PRAGMA wal_checkpoint(TRUNCATE)")

    def check_not_restored(self, campaign: Campaign) -> None:
        """Refuse a campaign that may have been drawn for when an old copy was put in place."""
        floor = self.meta.restored_floor
        if floor is not None and campaign.opens.timestamp() <= floor + SLACK:
            raise LedgerRestored

    def check_witnessed(self) -> None:
        """See that the witness knows of all that was drawn, before any of it leaves.

        It was told after the drawing, but may not have been writable then.
        """
        witness, meta = Witness.read(self.home.witness), self.meta
        if witness is not None and _is_ahead(witness, meta):
            raise LedgerRestored
        if witness is None or witness.sequence < meta.sequence:
            self._tell_witness()

    def _tell_witness(self) -> None:
        meta = self.meta
        told = Witness(meta.ledger, meta.sequence, meta.latest, meta.most_nano)
        told.write(self.home.witness)

    def _compare_with_witness(self, new: bool) -> None:
        """Notice an old copy: behind the witness, without one, or new where another one was."""
        witness, meta = Witness.read(self.home.witness), self.meta
        # Before anything was joined there is nothing that a copy could have forgotten.
        restored = meta.sequence > 0 if witness is None else _is_ahead(witness, meta)
        if restored:
            self._note_restored(witness or Witness("", 0, 0.0, 0))
        if restored or new or witness is None or witness.sequence < meta.sequence:
            self._tell_witness()

    def _note_restored(self, witness: Witness) -> None:
        """Take what the witness remembers for all that the copy has forgotten.

        Whose the forgotten spending is, nobody knows: so it counts as everybody's.
        """
        with self.transaction("note restored copy") as connection:
            connection.execute(
                "UPDATE meta SET sequence = max(sequence, ?1) + 1, latest = max(latest, ?2, ?3),"
                " restored_floor = max(latest, ?2, ?3), spent_floor = max(spent_floor, ?4),"
                " most_nano = max(most_nano, ?4)",
                (witness.sequence, witness.time, float(self.clock()), witness.spent),
            )


def _is_ahead(witness: Witness, meta: Meta) -> bool:
    """Whether the witness knows of what this ledger does not."""
    return witness.ledger != meta.ledger or witness.sequence > meta.sequence


def _hold(home: Home) -> FileLock:
    lock = FileLock(home.lock, timeout=0, thread_local=False)
    try:
        lock.acquire()
    except LockTimeout:
        raise LedgerInUse from None
    except OSError as error:
        raise LedgerError(f"The ledger cannot be locked: {error.strerror}.") from error
    return lock


def _connect(home: Home) -> sqlite3.Connection:
    try:
        home.ledger.touch(mode=0o600)
        home.ledger.chmod(0o600)
    except OSError as error:
        raise LedgerError(f"The ledger cannot be made or used: {error.strerror}.") from error
    connection = sqlite3.connect(home.ledger, isolation_level=None, check_same_thread=False)
    for pragma in _PRAGMAS:
        connection.execute(f"PRAGMA {pragma}")
    return connection


@contextmanager
def _sqlite_errors() -> Iterator[None]:
    """SQLite's errors as the ledger's, with what to do."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise LedgerError(f"The ledger cannot be read or written: {error}.") from error
    except sqlite3.IntegrityError:
        raise  # a rule of the ledger's own, which no user can break
    except (sqlite3.ProgrammingError, sqlite3.InterfaceError) as error:
        raise LedgerError(
            "The ledger is closed, or used by two threads at once. Open it again, and use it in"
            " one thread."
        ) from error
    except sqlite3.DatabaseError as error:
        raise LedgerCorrupt from error
