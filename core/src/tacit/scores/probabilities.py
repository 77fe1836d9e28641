"""Tables of class probabilities: reading, checking, and making them from logits."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.errors import InvalidProbabilities

ROW_SUM_TOLERANCE = 1e-5
"""How far from 1 a row's sum may lie: float32 networks pass, logits and percentages do not."""

_BLOCK_SIZE = 1 << 16
"""Numbers worked on at a time: half a megabyte of float64, which stays in a core's cache."""


def softmax(logits: ArrayLike) -> NDArray[np.float64]:
    """The probabilities exp(z_i) / Σ_j exp(z_j) of each row of finite logits, in float64."""
    table = read_table(logits)
    probabilities = np.empty(table.shape)
    for rows in row_blocks(*table.shape):
        block = _as_float64(table[rows])
        finite = np.isfinite(block).all(axis=1)
        if not finite.all():
            row = rows.start + int(np.argmin(finite))
            raise InvalidProbabilities(
                f"Row {row} of the logits has a value that is not finite. Give a class that "
                "cannot occur a large negative logit such as -1e9."
            )
        with np.errstate(over="ignore"):
            weights = np.exp(block - block.max(axis=1, keepdims=True))
        np.divide(weights, weights.sum(axis=1, keepdims=True), out=probabilities[rows])
    return probabilities


def check_probabilities(probabilities: ArrayLike) -> NDArray[np.float64]:
    """`probabilities` as float64 (n, k), k ≥ 2, with finite, non-negative rows that sum to 1.

    Nothing is renormalized: a row whose sum is farther than `ROW_SUM_TOLERANCE` from 1 is refused.
    A C-contiguous float64 array is returned as it is.
    """
    table = read_table(probabilities)
    for rows in row_blocks(*table.shape):
        read_rows(table, rows)
    return _as_float64(table)


def read_table(values: ArrayLike) -> NDArray[np.generic]:
    """`values` as a two-dimensional array of numbers with k ≥ 2 columns, its values unchecked."""
    try:
        table = np.asarray(values)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InvalidProbabilities(
            "Probabilities and logits must be an (n, k) array; of a torch tensor give "
            "`tensor.detach().cpu().float().numpy()`."
        ) from error
    if table.dtype.kind not in "fiu":
        raise InvalidProbabilities(
            f"Probabilities and logits must be real numbers, not an array of {table.dtype}."
        )
    if table.ndim != 2 or table.shape[1] < 2:
        raise InvalidProbabilities(
            "Probabilities and logits must be an (n, k) array, one row per record and one column "
            f"for each of at least two classes, not an array of shape {table.shape}."
        )
    return table


def row_blocks(n: int, k: int) -> Iterator[slice]:
    """Slices of consecutive rows that together cover an (n, k) table, each small enough to cache.

    A block's float64 copy and whatever is computed from it is all the memory a score needs.
    """
    height = max(1, _BLOCK_SIZE // k)
    for start in range(0, n, height):
        yield slice(start, min(n, start + height))


def read_rows(table: NDArray[np.generic], rows: slice) -> NDArray[np.float64]:
    """The given rows of the table as float64, checked to be probabilities."""
    block = _as_float64(table[rows])
    with np.errstate(invalid="ignore", over="ignore"):
        # A value that is not finite makes its row's sum not finite, which is not within tolerance.
        sums_to_one = np.abs(block.sum(axis=1) - 1) <= ROW_SUM_TOLERANCE
    if not sums_to_one.all() or block.min() < 0:
        first = int(np.argmax(~sums_to_one | (block.min(axis=1) < 0)))
        raise InvalidProbabilities(_what_is_wrong(block[first], rows.start + first))
    return block


def _as_float64(table: NDArray[np.generic]) -> NDArray[np.float64]:
    # Contiguous rows make sums over a row the same however the table was laid out or split.
    return np.ascontiguousarray(table, dtype=np.float64)


def _what_is_wrong(row: NDArray[np.float64], number: int) -> str:
    name = f"Row {number} of the probabilities"
    if not np.isfinite(row).all():
        return f"{name} has a value that is not finite."
    if row.min() < 0:
        return f"{name} has a negative value. Rows of logits become probabilities by `softmax`."
    return (
        f"{name} does not sum to 1 within {ROW_SUM_TOLERANCE:g}. Rows of logits become "
        "probabilities by `softmax`; probabilities in half precision or rounded to few decimals "
        "have to be made again from the logits, in higher precision."
    )
