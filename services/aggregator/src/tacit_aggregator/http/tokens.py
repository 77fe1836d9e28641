"""Identities by token, looked up in the database and remembered for a moment."""

import time

from fastapi.concurrency import run_in_threadpool

from tacit_aggregator.database.engine import Database
from tacit_aggregator.tokens.service import Identity, identify

REMEMBERED_SECONDS = 1.0
"""A token that is revoked stays good for at most this long."""

_MOST_REMEMBERED = 10_000


class Tokens:
    """Who tokens speak for. Unknown ones are not remembered: a new token works at once."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._remembered: dict[str, tuple[Identity, float]] = {}

    async def identity(self, token: str, now: float) -> Identity | None:
        """Who the token speaks for now."""
        found, until = self._remembered.get(token, (None, 0.0))
        if found is None or time.monotonic() >= until:
            until = time.monotonic() + REMEMBERED_SECONDS
            found = await run_in_threadpool(self._look_up, token, now)
            self._remember(token, found, until)
        if found is not None and found.expires_at is not None and found.expires_at <= now:
            return None
        return found

    def _look_up(self, token: str, now: float) -> Identity | None:
        with self._database.read() as connection:
            return identify(connection, token, now)

    def _remember(self, token: str, found: Identity | None, until: float) -> None:
        if len(self._remembered) >= _MOST_REMEMBERED:
            self._remembered.clear()
        if found is None:
            self._remembered.pop(token, None)
        else:
            self._remembered[token] = (found, until)
