"""Duty: of all servers on one database, one at a time does what needs to be done once.

That saves work. It does not make anything right: a server may be off duty without knowing it yet,
so whatever is done on duty must also be safe when two do it.
"""

import threading
from contextlib import ExitStack

import structlog
from sqlalchemy import Connection, select, text
from sqlalchemy.exc import SQLAlchemyError

from tacit_aggregator.database.engine import Database
from tacit_aggregator.database.lock import Advisory, share, take

_HANGS_AFTER_SECONDS = 15
"""Whoever is on duty asks about once a second."""

_log = structlog.get_logger("tacit_aggregator.database")


class Duty:
    """An advisory lock of PostgreSQL on a session of its own; on SQLite one is always on duty.

    The database ends that session when nobody has asked for a while: a server that hangs is off
    duty. Another session says that a server is running, once more after the database was restarted,
    so that nobody migrates under it; that one lasts while the server hangs. Ask from one thread.
    """

    def __init__(self, database: Database, what: Advisory) -> None:
        self._database = database
        self._what = what
        self._open = ExitStack()
        self._session: Connection | None = None
        self._held = False
        self._lock = threading.Lock()

    def ask(self) -> bool:
        """Whether this server is on duty now; takes the duty over if nobody has it."""
        if not self._database.is_shared:
            return True
        with self._lock:
            before = self._held
            try:
                self._held = self._look()
            except SQLAlchemyError:
                self._let_go()
            if self._held != before:
                _log.info("on duty" if self._held else "off duty", duty=self._what.name.lower())
            return self._held

    def give_up(self) -> None:
        """Let another server take over at once."""
        with self._lock:
            self._let_go()

    def _look(self) -> bool:
        if self._session is None:
            serving = self._open.enter_context(self._database.session())
            if not share(serving, Advisory.SERVING):  # it is being migrated
                self._let_go()
                return False
            self._session = self._open.enter_context(self._database.session())
            self._session.execute(text(f"SET idle_session_timeout = '{_HANGS_AFTER_SECONDS}s'"))
        if self._held:
            self._session.execute(select(1))
            return True
        return take(self._session, self._what)

    def _let_go(self) -> None:
        # Closing the session gives back all its locks, whatever state it is in.
        self._held = False
        self._session = None
        closing, self._open = self._open, ExitStack()
        try:
            closing.close()
        except SQLAlchemyError:
            _log.debug("session was gone")
