"""Estimators: expectations over every possible outcome, so nothing here is random."""

import itertools
import math

import numpy as np
import pytest
from numpy.typing import NDArray

from tacit.errors import InvalidBits, InvalidLabels, InvalidParameter
from tacit.mechanisms import BinaryRandomizedResponse, RandomizedResponse

FREQUENCIES = np.array([0.6, 0.3, 0.1])


def outcomes(reported: NDArray[np.float64], n: int) -> list[tuple[float, list[int]]]:
    """Every sequence of n reports with its probability."""
    sequences = itertools.product(range(len(reported)), repeat=n)
    return [(math.prod(reported[list(reports)]), list(reports)) for reports in sequences]


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 4.0])
@pytest.mark.parametrize("n", [2, 5])
def test_class_frequencies_and_their_variance_are_unbiased(epsilon: float, n: int) -> None:
    mechanism = RandomizedResponse(3, epsilon)
    every = outcomes(FREQUENCIES @ mechanism.channel.matrix(), n)
    estimates = [(p, mechanism.estimate(reports)) for p, reports in every]
    mean = sum(p * estimate.value for p, estimate in estimates)
    spread = sum(p * (estimate.value - FREQUENCIES) ** 2 for p, estimate in estimates)
    np.testing.assert_allclose(mean, FREQUENCIES, atol=1e-12)
    stated = [mechanism.variance(n, frequency) for frequency in FREQUENCIES]
    np.testing.assert_allclose(stated, spread, rtol=1e-10)
    estimated = sum(p * estimate.variance for p, estimate in estimates)
    np.testing.assert_allclose(estimated, spread, rtol=1e-10)


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 4.0])
@pytest.mark.parametrize("n", [2, 7])
def test_the_mean_of_bits_and_its_variance_are_unbiased(epsilon: float, n: int) -> None:
    mechanism = BinaryRandomizedResponse(epsilon)
    every = outcomes(np.array([0.2, 0.8]) @ mechanism.channel.matrix(), n)
    estimates = [(p, mechanism.estimate(reports)) for p, reports in every]
    assert sum(p * estimate.value for p, estimate in estimates) == pytest.approx(0.8, abs=1e-12)
    spread = sum(p * (estimate.value - 0.8) ** 2 for p, estimate in estimates)
    assert mechanism.variance(n, 0.8) == pytest.approx(spread, rel=1e-10)
    estimated = sum(p * estimate.variance for p, estimate in estimates)
    assert estimated == pytest.approx(spread, rel=1e-10)


def test_estimated_frequencies_sum_to_one() -> None:
    value = RandomizedResponse(5, 0.3).estimate([0, 0, 3, 1, 3]).value
    assert value.shape == (5,)
    assert value.sum() == pytest.approx(1)


def test_an_estimate_needs_two_reports() -> None:
    for reports in ([], [1]):
        with pytest.raises(InvalidLabels):
            RandomizedResponse(3, 1.0).estimate(reports)
        with pytest.raises(InvalidBits):
            BinaryRandomizedResponse(1.0).estimate(reports)


@pytest.mark.parametrize(("n", "frequency"), [(0, 0.5), (10, -0.1), (10, 1.1), (10, math.nan)])
def test_a_variance_needs_records_and_a_frequency(n: int, frequency: float) -> None:
    for mechanism in (RandomizedResponse(3, 1.0), BinaryRandomizedResponse(1.0)):
        with pytest.raises(InvalidParameter):
            mechanism.variance(n, frequency)
