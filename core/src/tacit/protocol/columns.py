"""Columns: arrays on the wire as base64 of little-endian bytes, with their type and shape."""

import base64
import binascii
import math
from typing import Annotated, Literal, Self

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
Shape = Annotated[tuple[Extent, ...], Field(min_length=1, max_length=8)]


def little_endian(dtype: Dtype) -> np.dtype[np.generic]:
    """The numpy type of a column's bytes."""
    return np.dtype(dtype).newbyteorder("<")


class Column(Wire):
    """An array, first axis the records, as C-ordered little-endian bytes in base64."""

    dtype: Dtype
    shape: Shape
    data: str

    @classmethod
    def of(cls, array: NDArray[np.generic], dtype: Dtype | None = None) -> Self:
        """The column of an array, in its own type or the one given."""
        name: Dtype = dtype or array.dtype.name  # type: ignore[assignment]  # pydantic checks it
        content = np.ascontiguousarray(array, dtype=little_endian(name)).tobytes()
        return cls(dtype=name, shape=array.shape, data=base64.b64encode(content).decode("ascii"))

    @property
    def rows(self) -> int:
        """How many records the column is about."""
        return self.shape[0]

    def content(self) -> bytes:
        """The bytes, exactly as many as type and shape ask for."""
        try:
            content = binascii.a2b_base64(self.data, strict_mode=True)
        except ValueError:  # also what is not ASCII
            raise InvalidColumn("A column's data must be base64, padded and unbroken.") from None
        expected = little_endian(self.dtype).itemsize * math.prod(self.shape)
        if len(content) != expected:
            raise InvalidColumn(
                f"A column's data must have {expected} bytes for its type and shape,"
                f" not {len(content)}."
            )
        return content

    def array(self) -> NDArray[np.generic]:
        """The array, read-only."""
        return array_of(self.content(), self.dtype, self.shape)


def array_of(content: bytes, dtype: Dtype, shape: tuple[int, ...]) -> NDArray[np.generic]:
    """The read-only array that a column's bytes are."""
    return np.frombuffer(content, dtype=little_endian(dtype)).reshape(shape)
