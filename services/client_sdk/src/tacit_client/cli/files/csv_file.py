"""CSV: UTF-8, a header line, one record per line."""

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from tacit_client.cli.errors import BadFile
from tacit_client.cli.files.source import Array, Source


class CsvSource(Source):
    """A CSV file, read whole; rows are named by the line they end on."""

    typed = False

    def __init__(self, path: Path, delimiter: str) -> None:
        super().__init__(path)
        self._lines: list[int] = []
        self._rows: list[list[str]] = []
        reader = csv.reader(_lines(path), delimiter=delimiter, strict=True)
        try:
            self._names = tuple(name.strip() for name in next(reader, []))
            self._check_header()
            for row in reader:
                self._add(row, reader.line_num)
        except csv.Error:
            raise BadFile(
                f"Line {reader.line_num} of {path.name} is not CSV: check its quotes."
            ) from None

    @property
    def names(self) -> tuple[str, ...]:
        """The header."""
        return self._names

    @property
    def rows(self) -> int:
        """How many lines there are below the header, without blank ones."""
        return len(self._rows)

    def place(self, row: int) -> str:
        """The line, as an editor counts them."""
        return f"line {self._lines[row]}"

    def _values(self, name: str) -> Array:
        index = self._names.index(name)
        return np.array([row[index] for row in self._rows], dtype=str)

    def _numbers(self, names: Sequence[str]) -> Array:
        indices = [self._names.index(name) for name in names]
        try:
            return np.array([[row[i] for i in indices] for row in self._rows], dtype=np.float64)
        except ValueError:
            raise BadFile(self._what_is_no_number(indices)) from None

    def _what_is_no_number(self, indices: Sequence[int]) -> str:
        for line, row in zip(self._lines, self._rows, strict=True):
            for index in indices:
                if not _is_number(row[index]):
                    what = "not a number" if row[index].strip() else "blank"
                    return (
                        f"Line {line} of {self.path.name} is {what} in the column"
                        f" {self._names[index]}. Write numbers like 0.25, with a decimal point."
                    )
        return f"A column of {self.path.name} does not hold numbers."

    def _check_header(self) -> None:
        named = [name for name in self._names if name]
        if not named:
            raise BadFile(f"{self.path.name} is empty. It needs a header line and records.")
        if len(set(named)) != len(named):
            repeated = sorted({name for name in named if named.count(name) > 1})
            raise BadFile(
                f"{self.path.name} has two columns of one name: {', '.join(repeated)}. Rename one."
            )

    def _add(self, row: list[str], line: int) -> None:
        if not row:
            return
        if len(row) != len(self._names):
            raise BadFile(
                f"Line {line} of {self.path.name} has {len(row)} fields, the header"
                f" {len(self._names)}. Every line needs as many as the header."
            )
        self._lines.append(line)
        self._rows.append(row)


def _lines(path: Path) -> Iterator[str]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            yield from file
    except UnicodeDecodeError:
        raise BadFile(
            f"{path.name} is not UTF-8 text. Save it as CSV in UTF-8 and try again."
        ) from None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
