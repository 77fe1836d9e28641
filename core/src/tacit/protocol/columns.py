"""Columns: arrays on the wire as base64 of little-endian bytes, with their type and shape."""

import base64
import binascii
import math
from typing import Annotated, Literal, Self, cast, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from tacit.errors import InvalidColumn
from tacit.protocol.wire import Wire

Dtype = Literal[
    "uint8",
    "uint16",
    "uint32",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "float32",
    "float64",
]
Extent = Annotated[int, Field(ge=0, lt=2**31)]
_NOT_BASE64 = "A column's data must be base64, padded and unbroken."
Shape = Annotated[tuple[Extent, ...], Field(min_length=1, max_length=8)]


def little_endian(dtype: Dtype) -> np.dtype[np.generic]:
    """The numpy type of a column's bytes."""
    return np.dtype(dtype).newbyteorder("<")


class Column(Wire):
    """An array, first axis the records, as C-ordered little-endian bytes in base64."""

    dtype: Dtype
    shape: Shape
    data: Annotated[str, Field(repr=False)]

    @classmethod
    def of(cls, array: NDArray[np.generic], dtype: Dtype | None = None) -> Self:
        """The column of an array, in its own type or the one given, if that holds its values.

        Numbers may be rounded to a smaller float, but no integer may change and none overflow.
        """
        name = cast("Dtype", dtype or array.dtype.name)
        if name not in get_args(Dtype) or array.dtype.kind not in "iuf" or not array.ndim:
            raise InvalidColumn(
                f"A column has at least one axis and is of {', '.join(get_args(Dtype))}."
            )
        with np.errstate(over="ignore", invalid="ignore"):
            values = np.ascontiguousarray(array, dtype=little_endian(name))
        if not _holds(values, array):
            raise InvalidColumn(f"The values of this column do not fit into {name}.")
        return cls(
            dtype=name, shape=array.shape, data=base64.b64encode(values.data).decode("ascii")
        )

    @property
    def rows(self) -> int:
        """How many records the column is about."""
        return self.shape[0]

    def content(self) -> bytes:
        """The bytes, exactly as many as type and shape ask for."""
        expected = little_endian(self.dtype).itemsize * math.prod(self.shape)
        try:
            content = binascii.a2b_base64(self.data, strict_mode=True)
        except ValueError:  # also what is not ASCII
            raise InvalidColumn(_NOT_BASE64) from None
        if len(content) != expected:
            raise InvalidColumn(
                f"A column's data must have {expected} bytes for its type and shape,"
                f" not {len(content)}."
            )
        # The decoder takes too much padding, and any bits beside the last byte's.
        last = base64.b64encode(content[-(expected % 3 or 3) :]).decode("ascii")
        if len(self.data) != -(-expected // 3) * 4 or not self.data.endswith(last):
            raise InvalidColumn(_NOT_BASE64)
        return content

    def array(self) -> NDArray[np.generic]:
        """The array, read-only."""
        return array_of(self.content(), self.dtype, self.shape)


def _holds(values: NDArray[np.generic], array: NDArray[np.generic]) -> bool:
    if np.can_cast(array.dtype, values.dtype):
        return True
    if values.dtype.kind == "f":
        return bool((np.isfinite(values) == np.isfinite(array)).all())
    return bool((values == array).all())


def array_of(content: bytes, dtype: Dtype, shape: tuple[int, ...]) -> NDArray[np.generic]:
    """The read-only array that a column's bytes are."""
    return np.frombuffer(content, dtype=little_endian(dtype)).reshape(shape)
