"""Identities by token, looked up in the database and remembered for a moment."""

from time import monotonic

from fastapi.concurrency import run_in_threadpool

from tacit_aggregator.database.engine import Database
from tacit_aggregator.tokens.service import Identity, identify

REMEMBERED_SECONDS = 1.0
"""A token that is revoked stays good for at most this long."""

_MOST_REMEMBERED = 10_000


class Tokens:
    """Who tokens speak for. Unknown ones are not remembered: a new token works at once.

    They expire by the database's clock, whatever this process's says.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._remembered: dict[str, tuple[Identity, float]] = {}

    async def identity(self, token: str) -> Identity | None:
        """Who the token speaks for now."""
        found, until = self._remembered.get(token, (None, 0.0))
        if found is None or monotonic() >= until:
            found, until = await run_in_threadpool(self._look_up, token)
            self._remember(token, found, until)
        return found

    def _look_up(self, token: str) -> tuple[Identity | None, float]:
        """Who the token speaks for, and how long that holds by the clock that only counts on."""
        with self._database.read() as connection:
            asked = monotonic()  # before the time is told: nobody is remembered too long
            now = self._database.now(connection)
            found = identify(connection, token, now)
        if found is None or found.expires_at is None:
            return found, asked + REMEMBERED_SECONDS
        return found, asked + min(REMEMBERED_SECONDS, found.expires_at - now)

    def _remember(self, token: str, found: Identity | None, until: float) -> None:
        if len(self._remembered) >= _MOST_REMEMBERED:
            self._remembered.clear()
        if found is None:
            self._remembered.pop(token, None)
        else:
            self._remembered[token] = (found, until)
