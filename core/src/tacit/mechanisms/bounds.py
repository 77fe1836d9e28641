"""Bounds on e^ε and on the logarithm of a ratio, each rounded to the side of privacy."""

import math
from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction

import numpy as np

from tacit.errors import InvalidEpsilon

# The finest channel, threshold 1 with k = 2^31, has ε below 66: beyond this nothing changes.
LARGEST_USEFUL = 128.0

# Both functions below round to nearest and then step outward once. The step of `exp_below` is at
# least e^ε·10^-40/2, far more than `log_above` can err, so log_above(exp_below(ε)) ≤ ε.
EXP_DIGITS = 40
LOG_DIGITS = 80


def exp_below(epsilon: float) -> Fraction:
    """A rational just below e^min(ε, 128).

    Of the float and the decimal it is written as (the float 0.1 is a little more than 1/10), ε is
    the smaller. Decimal's exp is correctly rounded, so the next number down is a strict bound.
    """
    smaller = min(Decimal(epsilon), Decimal(repr(epsilon)), Decimal(LARGEST_USEFUL))
    context = _context(EXP_DIGITS, ROUND_HALF_EVEN)
    return Fraction(context.next_minus(context.exp(smaller)))


def log_above(ratio: Fraction) -> float:
    """The smallest float that is at least log(ratio) + d for an error d in [0, 10^-77]."""
    context = _context(LOG_DIGITS, ROUND_CEILING)
    quotient = context.divide(Decimal(ratio.numerator), Decimal(ratio.denominator))
    bound = context.next_plus(context.ln(quotient))
    nearest = float(bound)
    return nearest if Decimal(nearest) >= bound else math.nextafter(nearest, math.inf)


def checked_epsilon(epsilon: float) -> float:
    """ε as a float that is no larger, or an error that says what ε must be."""
    number = isinstance(epsilon, int | float | np.integer | np.float32)
    if not number or isinstance(epsilon, bool) or not 0 < epsilon < math.inf:
        raise InvalidEpsilon(f"ε must be a positive, finite number, not {epsilon!r}.")
    return float(min(epsilon, LARGEST_USEFUL))


def _context(digits: int, rounding: str) -> Context:
    # Made anew for every call: contexts are mutable, and the caller's own must not matter.
    return Context(prec=digits, rounding=rounding, Emin=-999999, Emax=999999)
