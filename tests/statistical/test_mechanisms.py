"""Mechanisms against their stated channels, cell by cell, and broken ones against the same test.

`least_p_value` combines four two-sided tests and is compared with LEVEL = 1e-8. Two of them are
exact or nearly so (a binomial, a chi-square with thousands of draws per cell); two fit a gamma law
to a Pearson statistic's exact mean and variance. The union bound is 4e-8 per call; the gamma fit
would have to be wrong by a factor of 25 in the tail for a false alarm to be likelier than 1e-6.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from tacit.mechanisms import (
    BinaryChannel,
    BinaryRandomizedResponse,
    Coins,
    FreshCoins,
    RandomizedResponse,
    RecordCoins,
    UniformChannel,
)
from tests.support.record_keys import counted_keys

LEVEL = 1e-8
DRAWS = 10**7
RUN = 2**15  # rows that share one call for coins
CLASSES = (2, 10, 1000)
EPSILONS = (0.1, 1.0, 4.0)

Labels = NDArray[np.int64]
Floats = NDArray[np.float64]


def two_sided(law: stats.rv_continuous, value: float) -> float:
    return float(min(1.0, 2 * min(law.cdf(value), law.sf(value))))


def pearson_p_value(observed: Labels, probabilities: Floats) -> float:
    """Pearson's statistic summed over rows of independent multinomials, against a fitted gamma law.

    A row of n draws over c cells has mean c-1 and variance 2(c-1) + (Σ 1/p - c² - 2c + 2)/n.
    """
    draws = observed.sum(axis=1, keepdims=True)
    expected = draws * probabilities
    cells = probabilities.shape[1]
    mean = (cells - 1) * len(observed)
    excess = (1 / probabilities).sum(axis=1) - cells**2 - 2 * cells + 2
    variance = 2 * mean + float((excess / draws[:, 0]).sum())
    statistic = float(((observed - expected) ** 2 / expected).sum())
    law = stats.gamma(a=mean**2 / variance, scale=variance / mean)
    return two_sided(law, statistic)


def least_p_value(matrix: Floats, labels: Labels, reports: Labels) -> float:
    """The least p-value of four tests of reports from a channel that treats all labels alike."""
    k = len(matrix)
    table = np.bincount(labels * k + reports, minlength=k * k).reshape(k, k)
    keep = float(matrix[0, 0])
    kept = reports == labels
    shifts = np.bincount((reports - labels) % k, minlength=k)[None, :]
    runs = kept[: kept.size // RUN * RUN].reshape(-1, RUN).sum(axis=1)
    return min(
        float(stats.binomtest(int(kept.sum()), kept.size, keep).pvalue),
        pearson_p_value(shifts, matrix[:1]),
        pearson_p_value(table, matrix),
        pearson_p_value(np.stack([runs, RUN - runs], axis=1), np.array([[keep, 1 - keep]])),
    )


def balanced_labels(k: int, count: int = DRAWS) -> Labels:
    return np.arange(count) % k


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("k", CLASSES)
def test_fresh_reports_follow_the_stated_channel(k: int, epsilon: float) -> None:
    mechanism, labels = RandomizedResponse(k, epsilon), balanced_labels(k)
    reports = mechanism.privatize(labels, FreshCoins())
    assert least_p_value(mechanism.channel.matrix(), labels, reports) > LEVEL


def record_coins_p_value(k: int, epsilon: float, count: int) -> float:
    mechanism, labels = RandomizedResponse(k, epsilon), balanced_labels(k, count)
    coins = RecordCoins(os.urandom(32), counted_keys(labels.size))
    reports = mechanism.privatize(labels, coins)
    return least_p_value(mechanism.channel.matrix(), labels, reports)


@pytest.mark.parametrize("k", CLASSES)
def test_reports_by_record_coins_follow_the_stated_channel(k: int) -> None:
    assert record_coins_p_value(k, 1.0, 2 * 10**6) > LEVEL


@pytest.mark.long
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("k", CLASSES)
def test_many_reports_by_record_coins_follow_the_stated_channel(k: int, epsilon: float) -> None:
    assert record_coins_p_value(k, epsilon, 3 * DRAWS) > LEVEL


@pytest.mark.long
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("k", CLASSES)
def test_many_fresh_reports_follow_the_stated_channel(k: int, epsilon: float) -> None:
    mechanism, labels = RandomizedResponse(k, epsilon), balanced_labels(k, 5 * DRAWS)
    reports = mechanism.privatize(labels, FreshCoins())
    assert least_p_value(mechanism.channel.matrix(), labels, reports) > LEVEL


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_randomized_bits_follow_the_stated_channel(epsilon: float) -> None:
    mechanism, bits = BinaryRandomizedResponse(epsilon), balanced_labels(2)
    reports = mechanism.privatize(bits, FreshCoins()).astype(np.int64)
    assert least_p_value(mechanism.channel.matrix(), bits, reports) > LEVEL


# The same test must see what is broken. A keep probability p·1.01 differs by at least 11 standard
# deviations of 10^7 draws for k = 2 and 10. For k = 1000 it would be 1 to 7, too few to
# be sure of at this level; there p + 0.01 is used, at least 100 standard deviations away.


def shifted(channel: UniformChannel) -> UniformChannel:
    """The channel whose probability of reporting the label itself is 1 % larger."""
    keep = 1 - channel.beta + channel.beta / channel.k
    wrong = keep * 101 / 100 if channel.k <= 10 else keep + 0.01
    return UniformChannel(channel.k, int((1 - wrong) * channel.k / (channel.k - 1) * 2**64))


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("k", CLASSES)
def test_a_keep_probability_one_percent_off_is_caught(k: int, epsilon: float) -> None:
    stated, labels = UniformChannel.for_epsilon(k, epsilon), balanced_labels(k)
    mutant = RandomizedResponse.from_channel(shifted(stated))
    reports = mutant.privatize(labels, FreshCoins())
    assert least_p_value(stated.matrix(), labels, reports) < LEVEL


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_a_bits_keep_probability_one_percent_off_is_caught(epsilon: float) -> None:
    stated, bits = BinaryChannel.for_epsilon(epsilon), balanced_labels(2)
    flips = 1 - (1 - stated.flip) * 99 / 100
    mutant = BinaryRandomizedResponse.from_channel(BinaryChannel(int(flips * 2**64)))
    reports = mutant.privatize(bits, FreshCoins()).astype(np.int64)
    assert least_p_value(stated.matrix(), bits, reports) < LEVEL


@dataclass(frozen=True)
class BrokenCoins:
    """Fresh coins, spoilt."""

    spoil: Callable[[NDArray[np.uint64]], None]
    rows: None = None

    def blocks(self, start: int, stop: int, attempt: int) -> NDArray[np.uint64]:
        blocks = FreshCoins().blocks(start, stop, attempt)
        self.spoil(blocks)
        return blocks


def one_coin_for_all(blocks: NDArray[np.uint64]) -> None:
    blocks[:, 0] = blocks[0, 0]


def a_bit_that_sticks(blocks: NDArray[np.uint64]) -> None:
    blocks[:, 0] |= np.uint64(2**60)


def a_replacement_made_of_the_coin(blocks: NDArray[np.uint64]) -> None:
    blocks[:, 1] = blocks[:, 0] >> np.uint64(32)


def a_replacement_that_sticks(blocks: NDArray[np.uint64]) -> None:
    blocks[:, 1] = 12345


@pytest.mark.parametrize(
    "spoil",
    [
        one_coin_for_all,
        a_bit_that_sticks,
        a_replacement_made_of_the_coin,
        a_replacement_that_sticks,
    ],
)
@pytest.mark.parametrize("k", CLASSES)
def test_broken_coins_are_caught(k: int, spoil: Callable[[NDArray[np.uint64]], None]) -> None:
    mechanism, labels = RandomizedResponse(k, 4.0), balanced_labels(k, 2 * 10**6)
    reports = mechanism.privatize(labels, BrokenCoins(spoil))
    assert least_p_value(mechanism.channel.matrix(), labels, reports) < LEVEL


# With k = 3·2^29 the 2^32 draws do not divide evenly: `mod k` gives the lower two thirds of the
# labels three draws and the others two, multiplication without refusal gives labels of two of the
# three residues mod 3 three draws. A fair method refuses every fourth draw.

UNEVEN = 3 * 2**29


def uneven_p_value(replacements: Labels) -> float:
    """Uniformity over 16 ranges of labels × 3 residues: all 48 cells are equally large."""
    cells = replacements // (UNEVEN // 16) * 3 + replacements % 3
    observed = np.bincount(cells, minlength=48)[None, :]
    return pearson_p_value(observed, np.full((1, 48), 1 / 48))


def all_replaced(coins: Coins, count: int) -> Labels:
    always = RandomizedResponse.from_channel(UniformChannel(UNEVEN, 2**64 - 1))
    return always.privatize(np.zeros(count, dtype=np.int64), coins)


def test_replacements_are_uniform_where_draws_do_not_divide_evenly() -> None:
    assert uneven_p_value(all_replaced(FreshCoins(), 10**6)) > LEVEL
    coins = RecordCoins(os.urandom(32), counted_keys(10**6))
    assert uneven_p_value(all_replaced(coins, 10**6)) > LEVEL


def test_replacements_by_mod_k_or_without_refusal_are_caught() -> None:
    draws = (FreshCoins().blocks(0, 10**6, 0)[:, 1] >> np.uint64(32)).astype(np.int64)
    assert uneven_p_value(draws % UNEVEN) < LEVEL
    assert uneven_p_value(draws * UNEVEN >> 32) < LEVEL


def test_the_test_itself_raises_false_alarms_at_its_stated_rate() -> None:
    """With a fixed seed: at level 0.02, 400 honest tables of about 10 draws per cell.

    Alarms of a test of level 0.02 are binomial; more than 25 of 400 has probability 3e-7.
    """
    generator = np.random.default_rng(7)
    matrix = UniformChannel.for_epsilon(100, 1.0).matrix()
    alarms = 0
    for _ in range(400):
        table = generator.multinomial(1000, matrix)
        alarms += pearson_p_value(table, matrix) < 0.02
    assert 0 < alarms <= 25
