"""The witness: a file outside the home that remembers how far the ledger was."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tacit_client.errors import LedgerError


@dataclass(frozen=True)
class Witness:
    """Which ledger it was, and the number of its last joining or drawing."""

    ledger: str
    sequence: int

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
            fields = json.loads(content)
            return cls(str(fields["ledger"]), int(fields["sequence"]))
        except (ValueError, KeyError, TypeError):
            # A witness that says nothing vouches for nothing: the ledger counts as restored.
            return cls("", 0)

    def write(self, path: Path) -> None:
        """Replace the file, durably: whole, either the old one or this one."""
        temporary = path.with_name(path.name + ".new")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with temporary.open("w", encoding="utf-8") as file:
                json.dump({"ledger": self.ledger, "sequence": self.sequence}, file)
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
