"""Coins of different keys, purposes, attempts and records look independent.

Every test has level 1e-8 on an exact binomial law, or on a chi-square law with thousands of draws
per cell: well below one false alarm in a million.
"""

import os

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from tacit.mechanisms import Coins, FreshCoins, RandomizedResponse, RecordCoins
from tests.support.record_keys import counted_keys

LEVEL = 1e-8
COUNT = 10**6


def same_bits_p_value(one: NDArray[np.uint64], other: NDArray[np.uint64]) -> float:
    """Bits in which two sets of blocks differ: half of them, if independent."""
    different = int(np.bitwise_count(one ^ other).sum())
    return float(stats.binomtest(different, one.size * 64, 0.5).pvalue)


def joint_p_value(one: NDArray[np.int64], other: NDArray[np.int64], law: list[float]) -> float:
    """Pairs of reports against the product of their laws."""
    k = len(law)
    observed = np.bincount(one * k + other, minlength=k * k)
    expected = np.outer(law, law).ravel() * one.size
    return float(stats.chisquare(observed, expected).pvalue)


REPORTS_DIFFER = ["nothing, but fresh", "key", "one bit of the key", "purpose", "record"]
# Reports take their coins from one attempt, and pairs of neighbours overlap: compare bits alone.
COINS_DIFFER = [*REPORTS_DIFFER, "attempt", "neighbouring record"]


def pair_of_coins(what: str) -> tuple[Coins, int, Coins, int]:
    """Two sources of coins, with the attempt to draw from each, that differ in one thing."""
    key, other_key = os.urandom(32), os.urandom(32)
    near_key = bytes([key[0] ^ 1]) + key[1:]
    keys = counted_keys(COUNT)
    coins = RecordCoins(key, keys)
    pairs: dict[str, tuple[Coins, int, Coins, int]] = {
        "nothing, but fresh": (FreshCoins(), 0, FreshCoins(), 0),
        "key": (coins, 0, RecordCoins(other_key, keys), 0),
        "one bit of the key": (coins, 0, RecordCoins(near_key, keys), 0),
        "purpose": (coins, 0, RecordCoins(key, keys, "rounds"), 0),
        "attempt": (coins, 0, coins, 1),
        "record": (coins, 0, RecordCoins(key, counted_keys(COUNT, first=COUNT)), 0),
        "neighbouring record": (coins, 0, RecordCoins(key, counted_keys(COUNT, first=1)), 0),
    }
    return pairs[what]


@pytest.mark.parametrize("what", COINS_DIFFER)
def test_coins_look_independent_when_anything_differs(what: str) -> None:
    one, attempt, other, other_attempt = pair_of_coins(what)
    first, second = one.blocks(0, COUNT, attempt), other.blocks(0, COUNT, other_attempt)
    assert same_bits_p_value(first, second) > LEVEL


@pytest.mark.parametrize("what", REPORTS_DIFFER)
def test_reports_about_one_label_look_independent_when_anything_differs(what: str) -> None:
    one, _, other, _ = pair_of_coins(what)
    mechanism, labels = RandomizedResponse(10, 1.0), np.full(COUNT, 3)
    first, second = mechanism.privatize(labels, one), mechanism.privatize(labels, other)
    assert joint_p_value(first, second, mechanism.channel.matrix()[3].tolist()) > LEVEL


def test_coins_that_ignore_a_difference_are_caught() -> None:
    key = os.urandom(32)
    coins, same = RecordCoins(key, counted_keys(COUNT)), RecordCoins(key, counted_keys(COUNT))
    blocks = coins.blocks(0, COUNT, 0)
    assert same_bits_p_value(blocks, same.blocks(0, COUNT, 0)) < LEVEL
    related = blocks ^ (blocks[:, ::-1] & np.uint64(0x0101010101010101))
    assert same_bits_p_value(blocks, related) < LEVEL
    mechanism, labels = RandomizedResponse(10, 1.0), np.full(COUNT, 3)
    law = mechanism.channel.matrix()[3].tolist()
    first, second = mechanism.privatize(labels, coins), mechanism.privatize(labels, same)
    assert joint_p_value(first, second, law) < LEVEL


@pytest.mark.parametrize("source", ["fresh", "record"])
def test_every_bit_of_a_block_is_fair(source: str) -> None:
    """128 exact binomial tests at 1e-9 each."""
    fresh = source == "fresh"
    coins: Coins = FreshCoins() if fresh else RecordCoins(os.urandom(32), counted_keys(COUNT))
    words = coins.blocks(0, COUNT, 0)
    for word in (0, 1):
        for bit in range(64):
            ones = int((words[:, word] >> np.uint64(bit) & np.uint64(1)).sum())
            assert stats.binomtest(ones, COUNT, 0.5).pvalue > 1e-9
