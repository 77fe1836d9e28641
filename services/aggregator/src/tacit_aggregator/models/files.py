"""Files of models as they are sent: verified once, and read piece by piece as they leave."""

import hashlib
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path

from tacit_aggregator.models.registered import RegisteredModel

_PIECE_BYTES = 2**16

_Look = tuple[str, int, int, int]
"""A file's path, when it was written, its size and its number on the disk."""


@dataclass(frozen=True)
class ModelFile:
    """The file of a model, as it was when its bytes were those that were registered."""

    model: RegisteredModel
    look: _Look

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return self.look[2]

    def pieces(self) -> Iterator[bytes]:
        """Its bytes, one piece in memory at a time; raises ModelChanged if it changes meanwhile."""
        for start in range(0, self.size, _PIECE_BYTES):
            yield self._piece(start)

    def _piece(self, start: int) -> bytes:
        # Opened for each piece: many who read slowly would otherwise hold a descriptor each.
        try:
            with Path(self.model.path).open("rb", buffering=0) as file:
                if _look(self.model, file.fileno()) != self.look:
                    raise self.model.changed()
                return os.pread(file.fileno(), _PIECE_BYTES, start)
        except OSError as error:
            raise self.model.unreadable(error) from None


class ModelFiles:
    """Which files were found to be what was registered; looked at again when they have changed."""

    def __init__(self) -> None:
        self._found: dict[_Look, str] = {}
        self._hashing = threading.Lock()

    def verified(self, model: RegisteredModel) -> ModelFile:
        """The model's file; raises ModelChanged if its bytes are not those that were registered."""
        try:
            with Path(model.path).open("rb") as file:
                look = _look(model, file.fileno())
                with self._hashing:  # one at a time: others who ask for the same file wait for it
                    if look not in self._found:
                        self._hash(model, file, look)
        except OSError as error:
            raise model.unreadable(error) from None
        if self._found.get(look) != model.digest:
            raise model.changed()
        return ModelFile(model, look)

    def _hash(self, model: RegisteredModel, file: BufferedReader, look: _Look) -> None:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        if _look(model, file.fileno()) == look:  # otherwise it was written while it was read
            self._found = {of: at for of, at in self._found.items() if of[0] != model.path}
            self._found[look] = digest


def _look(model: RegisteredModel, descriptor: int) -> _Look:
    found = os.fstat(descriptor)
    return model.path, found.st_mtime_ns, found.st_size, found.st_ino
