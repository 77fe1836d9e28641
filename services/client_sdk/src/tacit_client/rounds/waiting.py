"""Patience with a server that does not answer: pauses that grow, and an end to them."""

import random
import time

from tacit_client.errors import TacitClientError

_FIRST = 0.5
_LONGEST = 30.0
_LONGEST_IDLE = 5.0


class Patience:
    """How long failures may go on, and how long to pause after each."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._since: float | None = None
        self._pause = _FIRST
        self._idle = _FIRST

    def restored(self) -> None:
        """The server has answered: the next failure is the first again."""
        self._since, self._pause = None, _FIRST

    def pause(self, error: TacitClientError) -> float:
        """The seconds to pause after a failure; raises it if failures have gone on too long."""
        now = time.monotonic()
        self._since = now if self._since is None else self._since
        left = self._since + self._seconds - now
        if left <= 0:
            raise error
        # Sites that lost a server together should not all come back in the same moment.
        pause = self._pause * random.uniform(0.5, 1.0)  # noqa: S311 -- no secret
        self._pause = min(2 * self._pause, _LONGEST)
        return min(pause, left)

    def idle(self) -> float:
        """The seconds to pause after an answer that came at once and told nothing."""
        self._idle = min(2 * self._idle, _LONGEST_IDLE)
        return self._idle
