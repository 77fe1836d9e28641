"""What is accepted and not counted yet: how much of it, and whether something changed."""

import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from tacit_aggregator.metrics import Metrics


class Sized(Protocol):
    """An upload by its numbers."""

    @property
    def records(self) -> int:
        """How many records."""

    @property
    def size(self) -> int:
        """How many bytes."""


@dataclass(frozen=True)
class Amount:
    """Uploads, their records and their bytes."""

    uploads: int = 0
    records: int = 0
    size: int = 0

    @classmethod
    def of(cls, uploads: Sequence[Sized]) -> "Amount":
        """The amount that these are."""
        return cls(
            len(uploads),
            sum(upload.records for upload in uploads),
            sum(upload.size for upload in uploads),
        )


class Backlog:
    """Shared by ingest, which fills it, and counting, which empties it."""

    def __init__(self, most_bytes: int, metrics: Metrics) -> None:
        self._most_bytes = most_bytes
        self._metrics = metrics
        self._lock = threading.Lock()
        self._records = 0
        self._size = 0
        self._woken = threading.Event()
        self.erased = threading.Event()
        """Set when rows were erased: the log still holds them until it is cut off."""

    @property
    def size(self) -> int:
        """Bytes that wait."""
        return self._size

    @property
    def room(self) -> int:
        """Bytes that may still be added; any upload finds room when nothing else waits."""
        return self._most_bytes - self._size if self._size > 0 else sys.maxsize

    def found(self, amount: Amount) -> None:
        """This waits already when the server starts."""
        self._change(amount.records, amount.size)

    def is_now(self, amount: Amount) -> None:
        """This waits, of all that every server has accepted."""
        with self._lock:
            self._records, self._size = amount.records, amount.size
            self._metrics.pending_records.set(self._records)

    def accepted(self, uploads: Sequence[Sized]) -> None:
        """These were stored."""
        if not uploads:
            return
        amount = Amount.of(uploads)
        self._change(amount.records, amount.size)
        self._metrics.uploads("accepted", amount.uploads, amount.records)
        self.wake()

    def counted(self, amount: Amount) -> None:
        """This was counted and erased."""
        self._gone("counted", amount)

    def dropped(self, amount: Amount) -> None:
        """This was erased without being counted."""
        self._gone("dropped", amount)
        self.wake()

    def wake(self) -> None:
        """Have the counting look at once."""
        self._woken.set()

    def wait(self, seconds: float) -> None:
        """Until something changed, or for so long."""
        self._woken.wait(seconds)
        self._woken.clear()

    def _gone(self, state: str, amount: Amount) -> None:
        if amount.uploads:
            self._change(-amount.records, -amount.size)
            self._metrics.uploads(state, amount.uploads, amount.records)
        self.erased.set()

    def _change(self, records: int, size: int) -> None:
        with self._lock:
            # Not below nothing: another server may have counted before this one looked.
            self._records = max(0, self._records + records)
            self._size = max(0, self._size + size)
            self._metrics.pending_records.set(self._records)
