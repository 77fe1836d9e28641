"""NPZ: numpy arrays by name, the first axis the records. Nothing in it is ever unpickled."""

import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tacit_client.cli.errors import BadFile
from tacit_client.cli.files.source import Array, Source

_UNREADABLE = (zipfile.BadZipFile, OSError, ValueError, KeyError, EOFError)


class NpzSource(Source):
    """An NPZ file; arrays are read when they are asked for."""

    column = "array"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        try:
            archive = np.load(path, allow_pickle=False)
        except _UNREADABLE:
            raise BadFile(f"{path.name} is not an NPZ file. Write it with numpy.savez.") from None
        if not isinstance(archive, np.lib.npyio.NpzFile):
            raise BadFile(f"{path.name} is a single array. Write an NPZ file with numpy.savez.")
        self._archive = archive
        if not self.names:
            raise BadFile(f"{path.name} is empty. Write arrays into it with numpy.savez.")
        self._length: int | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The arrays' names."""
        return tuple(self._archive.files)

    @property
    def rows(self) -> int:
        """The length that the arrays read so far have."""
        return self._length or 0

    def place(self, row: int) -> str:
        """The index along the first axis."""
        return f"row {row} (counted from 0)"

    def _values(self, name: str) -> Array:
        return self._array(name)

    def _numbers(self, names: Sequence[str]) -> Array:
        if len(names) == 1:
            return self._array(names[0])
        columns = [self._array(name) for name in names]
        if any(column.ndim != 1 for column in columns):
            raise BadFile(f"{self._these(names)} must be one-dimensional to stand side by side.")
        return np.stack(columns, axis=1)

    def _array(self, name: str) -> Array:
        try:
            array: Array = self._archive[name]
        except _UNREADABLE:
            raise BadFile(
                f"The array {name} of {self.path.name} cannot be read: it is damaged or holds"
                " Python objects, which are never loaded. Save it as text or numbers."
            ) from None
        if array.ndim == 0:
            raise BadFile(f"The array {name} of {self.path.name} is one value, not one per record.")
        if self._length is not None and len(array) != self._length:
            raise BadFile(
                f"The arrays of {self.path.name} differ in length: {name} has {len(array)} rows,"
                f" others {self._length}."
            )
        self._length = len(array)
        return array
