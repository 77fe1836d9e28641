"""Channels: what a mechanism does to a value, as exact integers over 64 random bits.

A channel is public. Both sides take it from the campaign document: the client to randomize, the
aggregator to undo the bias. Proofs: docs/proofs/randomized-response.md.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Self, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from tacit.checks import check_class_count
from tacit.errors import InvalidParameter, NoInformation
from tacit.mechanisms.bounds import checked_epsilon, exp_below, log_above

COINS = 2**64
MOST_CLASSES = 2**31  # a replacement is drawn from 32 bits


@dataclass(frozen=True)
class UniformChannel:
    """With probability β = threshold / 2^64 the label is replaced by a uniform one of all k.

    P(report j | label i) = (1-β)·1{i=j} + β/k, so the largest ratio of two labels' probabilities
    of one report is 1 + k(1-β)/β, and ε is its logarithm.
    """

    k: int
    threshold: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", check_class_count(self.k, MOST_CLASSES))
        _check_threshold(self.threshold, useless=COINS)

    @classmethod
    def for_epsilon(cls, k: SupportsIndex, epsilon: float) -> Self:
        """The channel with the least noise whose ε is at most the one asked for.

        threshold = ⌈2^64·k / (k-1+E)⌉ with a rational E ≤ e^ε: every rounding adds noise.
        """
        count = check_class_count(k, MOST_CLASSES)
        threshold = math.ceil(COINS * count / (count - 1 + exp_below(checked_epsilon(epsilon))))
        return cls(count, min(threshold, COINS))

    @property
    def beta(self) -> Fraction:
        """Probability that the label is replaced by a uniform one of all k."""
        return Fraction(self.threshold, COINS)

    @property
    def ratio(self) -> Fraction:
        """e^ε of this channel, exactly."""
        return 1 + self.k * (1 / self.beta - 1)

    @property
    def epsilon(self) -> float:
        """Logarithm of the ratio, rounded up to a float."""
        return log_above(self.ratio)

    def matrix(self) -> NDArray[np.float64]:
        """The (k, k) probabilities P[i, j] of report j given label i."""
        matrix = np.full((self.k, self.k), float(self.beta / self.k))
        np.fill_diagonal(matrix, float(1 - self.beta + self.beta / self.k))
        return matrix


@dataclass(frozen=True)
class BinaryChannel:
    """With probability threshold / 2^64, below one half, the bit is flipped.

    The ratio is (2^64 - threshold) / threshold, and ε is its logarithm.
    """

    threshold: int

    def __post_init__(self) -> None:
        _check_threshold(self.threshold, useless=COINS // 2)

    @classmethod
    def for_epsilon(cls, epsilon: float) -> Self:
        """The channel with the least noise whose ε is at most the one asked for.

        threshold = ⌈2^64 / (1+E)⌉ with a rational E ≤ e^ε: every rounding adds noise.
        """
        threshold = math.ceil(COINS / (1 + exp_below(checked_epsilon(epsilon))))
        return cls(min(threshold, COINS // 2))

    @property
    def flip(self) -> Fraction:
        """Probability that the bit is flipped."""
        return Fraction(self.threshold, COINS)

    @property
    def ratio(self) -> Fraction:
        """e^ε of this channel, exactly."""
        return 1 / self.flip - 1

    @property
    def epsilon(self) -> float:
        """Logarithm of the ratio, rounded up to a float."""
        return log_above(self.ratio)

    def matrix(self) -> NDArray[np.float64]:
        """The (2, 2) probabilities P[i, j] of report j given bit i."""
        flip, keep = float(self.flip), float(1 - self.flip)
        return np.array([[keep, flip], [flip, keep]])


def _check_threshold(threshold: int, useless: int) -> None:
    if not isinstance(threshold, int) or isinstance(threshold, bool):
        raise InvalidParameter(f"A channel's threshold must be an integer, not {threshold!r}.")
    if threshold == useless:
        raise NoInformation
    if not 1 <= threshold < useless:
        raise InvalidParameter(
            f"This channel's threshold must lie from 1 to 2^{useless.bit_length() - 1} - 1,"
            f" not {threshold}."
        )
