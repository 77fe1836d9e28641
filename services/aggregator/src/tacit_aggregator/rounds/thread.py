"""The thread that moves searches on, and reads for those who wait."""

import threading

import structlog

from tacit_aggregator.rounds.moving import Mover
from tacit_aggregator.rounds.watch import Read, Watch

_POLL_SECONDS = 0.5
_AFTER_TROUBLE = 1.0

_log = structlog.get_logger("tacit_aggregator.rounds")


class Rounds:
    """Does what is due at once when woken, and otherwise looks every half second.

    Others may have moved a search, and time alone does: so it looks also when nobody wakes it.
    """

    def __init__(self, mover: Mover, watch: Watch, read: Read) -> None:
        self._mover = mover
        self._watch = watch
        self._read = read
        self._woken = threading.Event()
        self._failing = False
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rounds", daemon=True)

    @property
    def trouble(self) -> str | None:
        """Why no search, or not every one, is moved on; None if all is well."""
        if not self._thread.is_alive() or self._stopping.is_set():
            return "Rounds are not moved on now."
        if self._failing or self._mover.failing:
            return "A search cannot be moved on; the log says what is in its way."
        return None

    def start(self) -> None:
        """Begin with whatever is due."""
        self._thread.start()

    def wake(self) -> None:
        """Something has changed that may make a step due."""
        self._woken.set()

    def stop(self) -> None:
        """Take no further step; what is due is found by whoever comes next."""
        self._stopping.set()
        self._woken.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._woken.clear()
            try:
                moved = self._mover.move()
                self._refresh()
            except Exception as error:
                # Only what kind of error: the text of a database error may hold the row.
                _log.error("rounds not moved", error=type(error).__name__)
                self._failing = True
                self._stopping.wait(_AFTER_TROUBLE)
                continue
            self._failing = False
            if not moved:
                self._woken.wait(_POLL_SECONDS)

    def _refresh(self) -> None:
        watched = self._watch.watched()
        if watched:
            self._watch.publish(self._read(watched))
