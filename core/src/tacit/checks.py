"""Checks of what every room is given: class counts and labels."""

import operator
from typing import SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.errors import InvalidClassCount, InvalidLabels


def check_class_count(k: SupportsIndex, most: int | None = None) -> int:
    """`k` as an integer of at least 2, and at most `most`."""
    try:
        count = operator.index(k)
    except TypeError as error:
        raise InvalidClassCount from error
    if count < 2:
        raise InvalidClassCount
    if most is not None and count > most:
        raise InvalidClassCount(f"The number of classes k must be at most {most}, not {count}.")
    return count


def check_labels(labels: ArrayLike, n: int | None, k: int) -> NDArray[np.int64]:
    """`labels` as int64 in one dimension: an integer from 0 to k-1 for each of n records, if given.

    Errors name a row, never the value in it.
    """
    try:
        given = np.asarray(labels)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InvalidLabels from error
    if given.ndim != 1 or n not in {None, len(given)}:
        records = "record" if n is None else f"of the {n} records"
        raise InvalidLabels(
            f"Labels must be one integer for each {records}, not an array of shape {given.shape}."
        )
    if not given.size:
        return np.empty(0, dtype=np.int64)
    if given.dtype.kind not in "iu":
        raise InvalidLabels(
            f"Labels must be integers from 0 to k-1, not an array of {given.dtype}."
        )
    if given.max() >= k or given.min() < 0:
        row = np.flatnonzero((given < 0) | (given >= k))[0]
        raise InvalidLabels(f"The label of row {row} is not an integer from 0 to {k - 1}.")
    return given.astype(np.int64, copy=False)
