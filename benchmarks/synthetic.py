"""Synthetic calibration records: softmax outputs of a calibrated model, labels made private."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from tacit.mechanisms import FreshCoins, RandomizedResponse
from tacit.scores import softmax

EPSILON = 4.0
SHARPNESS = 3.0
"""Standard deviation of the logits: peaked outputs with long tails, as trained networks give."""


@dataclass(frozen=True)
class Records:
    """Probabilities and noisy labels, with the noise level β of the channel they came through."""

    probabilities: NDArray[np.float64]
    labels: NDArray[np.int64]
    beta: Fraction


def make_labelled(
    n: int, k: int, generator: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Probabilities, and labels that follow them, as a site has them."""
    probabilities = softmax(SHARPNESS * generator.standard_normal((n, k)))
    sums = np.cumsum(probabilities, axis=1)
    labels = np.count_nonzero(sums < generator.random((n, 1)), axis=1).clip(max=k - 1)
    return probabilities, labels


def make_records(n: int, k: int, generator: np.random.Generator) -> Records:
    """Records whose labels follow their probabilities and went through k-RR at ε = 4."""
    probabilities, labels = make_labelled(n, k, generator)
    mechanism = RandomizedResponse(k, EPSILON)
    return Records(probabilities, mechanism.privatize(labels, FreshCoins()), mechanism.channel.beta)
