"""What every kind of file offers: named columns, of which each row is a record."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit_client.cli.errors import BadFile

Array = NDArray[Any]
_MOST_NAMES = 20


class Source(ABC):
    """A file with columns; its errors name columns and rows, never what stands in them."""

    column = "column"
    """What this kind of file calls a column."""
    typed = True
    """Whether numbers have a type in the file, or are text."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """The columns there are, in the file's order."""

    @property
    @abstractmethod
    def rows(self) -> int:
        """How many records the file has."""

    @abstractmethod
    def place(self, row: int) -> str:
        """Where a person finds a row, counted from 0, in the file."""

    @abstractmethod
    def _values(self, name: str) -> Array:
        """A column that exists, as text, whole numbers, or whatever it holds."""

    @abstractmethod
    def _numbers(self, names: Sequence[str]) -> Array:
        """Columns that exist, as numbers: (n, columns), or one column's own (n, …)."""

    def values(self, name: str) -> Array:
        """One value per record, as text or whole numbers, without blanks around it."""
        self._need([name])
        values = self._values(name)
        self._must_have_records(values)
        if values.ndim != 1 or values.dtype.kind not in "USiu":
            raise BadFile(
                f"The {self.column} {name} of {self.path.name} must have one text or whole number"
                f" for each record, not {values.dtype} of shape {values.shape}."
            )
        if values.dtype.kind == "S":
            try:
                values = np.char.decode(values, "utf-8")
            except UnicodeDecodeError:
                raise BadFile(f"{self._these([name])} must hold UTF-8 text.") from None
        return np.char.strip(values.astype(str))

    def numbers(self, names: Sequence[str]) -> Array:
        """Columns of numbers, side by side; a single column that holds arrays as it is."""
        self._need(names)
        found = self._numbers(names)
        self._must_have_records(found)
        if found.dtype.kind not in "fiu":
            raise BadFile(f"{self._these(names)} must hold numbers, not {found.dtype}.")
        self._must_be_finite(found, names)
        return found

    def listing(self) -> str:
        """The columns there are, in words."""
        shown = ", ".join(self.names[:_MOST_NAMES])
        return shown + (", …" if len(self.names) > _MOST_NAMES else "")

    def _need(self, names: Sequence[str]) -> None:
        missing = [name for name in names if name not in self.names]
        if missing:
            raise BadFile(
                f"{self.path.name} has no {self.column} named {', '.join(missing)}."
                f" It has: {self.listing()}."
            )

    def _must_have_records(self, found: Array) -> None:
        if len(found) == 0:
            raise BadFile(f"{self.path.name} has no records. Add at least one.")

    def _must_be_finite(self, found: Array, names: Sequence[str]) -> None:
        if found.dtype.kind != "f":
            return
        finite = np.isfinite(found).reshape(len(found), -1).all(axis=1)
        if not finite.all():
            raise BadFile(
                f"{self._these(names)} must hold finite numbers; {self.place(int(finite.argmin()))}"
                " has NaN or infinity. Leave such records out, or mend them."
            )

    def _these(self, names: Sequence[str]) -> str:
        shown = ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
        plural = "s" if len(names) > 1 else ""
        return f"The {self.column}{plural} {shown} of {self.path.name}"
