"""Checks of what comes with probabilities: uniforms, and the parameters of scores."""

import math
import operator
from numbers import Real
from typing import SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.errors import InvalidParameter


def check_uniforms(uniforms: ArrayLike, n: int) -> NDArray[np.float64]:
    """`uniforms` as float64 (n,): one number u in [0, 1] per record."""
    try:
        given = np.asarray(uniforms)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InvalidParameter("Uniforms must be one number in [0, 1] per record.") from error
    if given.dtype.kind not in "fiu" or given.shape != (n,):
        raise InvalidParameter(
            f"Uniforms must be one number in [0, 1] for each of the {n} records, not an array of "
            f"{given.dtype} of shape {given.shape}."
        )
    inside = (given >= 0) & (given <= 1)
    if not inside.all():
        raise InvalidParameter(f"The uniform of row {int(np.argmin(inside))} is not in [0, 1].")
    return given.astype(np.float64, copy=False)


def check_weight(number: float, name: str, *, positive: bool = False) -> float:
    """`number` as a finite float of at least 0, or above 0 if it must be positive."""
    try:
        value = float(number) if _is_number(number) else math.nan
    except OverflowError:
        value = math.inf
    if not math.isfinite(value) or value < 0 or (positive and value == 0):
        bound = "above 0" if positive else "of at least 0"
        raise InvalidParameter(f"{name} must be a finite number {bound}, not {number!r}.")
    return value


def check_rank(number: SupportsIndex, name: str) -> int:
    """`number` as an int of at least 0."""
    value = operator.index(number) if _is_number(number) and hasattr(number, "__index__") else -1
    if value < 0:
        raise InvalidParameter(f"{name} must be an integer of at least 0, not {number!r}.")
    return value


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
