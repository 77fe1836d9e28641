"""Parquet, with the extra `parquet`: scalar columns, and list columns for arrays."""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from tacit_client.cli.errors import BadFile, MissingPart
from tacit_client.cli.files.source import Array, Source


class ParquetSource(Source):
    """A Parquet file, read whole."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        try:
            self._arrow: Any = import_module("pyarrow")
            parquet: Any = import_module("pyarrow.parquet")
        except ImportError:
            raise MissingPart(
                "Reading Parquet needs pyarrow: install tacit-client[parquet]."
            ) from None
        try:
            self._table = parquet.ParquetFile(path).read()
        except (self._arrow.ArrowException, OSError):
            raise BadFile(f"{path.name} is not a Parquet file, or it is damaged.") from None

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the schema."""
        return tuple(self._table.column_names)

    @property
    def rows(self) -> int:
        """How many rows the file has."""
        return int(self._table.num_rows)

    def place(self, row: int) -> str:
        """The index of the row."""
        return f"row {row} (counted from 0)"

    def _values(self, name: str) -> Array:
        column = self._column(name)
        if self._arrow.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if self._arrow.types.is_string(column.type) or self._arrow.types.is_large_string(
            column.type
        ):
            return np.array(column.to_pylist(), dtype=str)
        return self._flat(column, name)

    def _numbers(self, names: Sequence[str]) -> Array:
        columns = [self._array(name) for name in names]
        if len(columns) == 1:
            return columns[0]
        if any(column.ndim != 1 for column in columns):
            raise BadFile(f"{self._these(names)} must hold single numbers to stand side by side.")
        return np.stack(columns, axis=1)

    def _array(self, name: str) -> Array:
        """A column of numbers, or of lists that all have one shape."""
        column, shape = self._column(name), [self.rows]
        while _is_list(self._arrow.types, column.type):
            lengths = set(self._lengths(column))
            if len(lengths) > 1:
                raise BadFile(f"The lists in {name} of {self.path.name} differ in length.")
            shape.append(lengths.pop() if lengths else 0)
            column = column.flatten()
            self._no_nulls(column, name)
        return self._flat(column, name).reshape(shape)

    def _lengths(self, column: Any) -> list[int]:
        compute: Any = import_module("pyarrow.compute")
        lengths: list[int] = compute.list_value_length(column).unique().to_pylist()
        return lengths

    def _flat(self, column: Any, name: str) -> Array:
        try:
            return np.asarray(column.to_numpy(zero_copy_only=False))
        except (self._arrow.ArrowException, TypeError, ValueError):
            raise BadFile(f"{self._these([name])} does not hold text or numbers.") from None

    def _column(self, name: str) -> Any:
        column = self._table.column(name).combine_chunks()
        if isinstance(column, self._arrow.ChunkedArray):  # none or several chunks, by version
            column = self._arrow.concat_arrays(column.chunks)
        self._no_nulls(column, name)
        return column

    def _no_nulls(self, column: Any, name: str) -> None:
        if column.null_count:
            raise BadFile(
                f"{self._these([name])} has {column.null_count} nulls. Leave such records out."
            )


def _is_list(types: Any, kind: Any) -> bool:
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))
