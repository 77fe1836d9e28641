"""The witness: a file outside the home that remembers how far the ledger was."""

import json
import os
from dataclasses import asdict, dataclass
from math import isfinite
from pathlib import Path
from typing import Any, Self

from tacit_client.errors import LedgerError


@dataclass(frozen=True)
class Witness:
    """Which ledger it was, and what a copy from before its last drawing would have forgotten."""

    ledger: str
    sequence: int
    """The number of its last joining or drawing."""
    time: float
    """When that was, by the clock that was furthest ahead."""
    spent: int
    """The most that one person had spent, in units of 10⁻⁹ ε."""

    @classmethod
    def read(cls, path: Path) -> Self | None:
        """What the file says; None if there is none."""
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise LedgerError(f"The ledger's witness cannot be read: {error.strerror}.") from error
        try:
            return cls._of(json.loads(content))
        except (ValueError, KeyError, TypeError, OverflowError):
            # A witness that says nothing vouches for nothing: the ledger counts as restored.
            return cls("", 0, 0.0, 0)

    @classmethod
    def _of(cls, fields: Any) -> Self:
        sequence, time, spent = int(fields["sequence"]), float(fields["time"]), int(fields["spent"])
        if not isfinite(time) or not 0 <= min(sequence, spent) <= max(sequence, spent) < 2**62:
            raise ValueError
        return cls(str(fields["ledger"]), sequence, time, spent)

    def write(self, path: Path) -> None:
        """Replace the file, durably: whole, either the old one or this one."""
        temporary = path.with_name(path.name + ".new")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with temporary.open("w", encoding="utf-8") as file:
                json.dump(asdict(self), file)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
            _sync_directory(path.parent)
        except OSError as error:
            raise LedgerError(
                f"The ledger's witness cannot be written: {error.strerror}."
                " It lies beside the client's directory; make that place writable."
            ) from error


def _sync_directory(path: Path) -> None:
    if os.name == "nt":  # where a directory cannot be opened, and renaming is durable by itself
        return
    directory = os.open(path, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
