"""Parameters as the exact numbers people mean when they write them."""

import operator
from fractions import Fraction
from numbers import Real

from tacit.errors import InvalidParameter


def exactly(number: float | Fraction) -> Fraction:
    """The decimal number that `number` is written as: 0.1 means 1/10, not the nearest float.

    Comparisons such as ⌈(n+1)(1-α)⌉ are then free of rounding. Fractions pass unchanged.
    """
    return number if isinstance(number, Fraction) else Fraction(repr(float(number)))


def finite(number: float | Fraction, name: str) -> Fraction:
    """`number` as an exact number; NaN, infinities and what is no number are refused."""
    try:
        if isinstance(number, Real) and not isinstance(number, bool):
            return exactly(number)
    except (ValueError, OverflowError):
        pass
    raise InvalidParameter(f"{name} must be a finite number, not {number!r}.")


def level(number: float | Fraction, name: str) -> Fraction:
    """`number` as an exact number strictly between 0 and 1."""
    value = finite(number, name)
    if not 0 < value < 1:
        raise InvalidParameter(f"{name} must lie strictly between 0 and 1, not {number!r}.")
    return value


def positive(number: float | Fraction, name: str) -> Fraction:
    """`number` as an exact number above 0."""
    value = finite(number, name)
    if value <= 0:
        raise InvalidParameter(f"{name} must be above 0, not {number!r}.")
    return value


def count(number: int, name: str, *, at_least: int = 1) -> int:
    """`number` as an integer of at least `at_least`; booleans and floats are refused."""
    try:
        value = operator.index(number)
    except TypeError as error:
        raise InvalidParameter(f"{name} must be an integer, not {number!r}.") from error
    if isinstance(number, bool) or value < at_least:
        raise InvalidParameter(f"{name} must be an integer of at least {at_least}, not {number!r}.")
    return value
