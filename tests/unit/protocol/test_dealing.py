"""Records are dealt out to the rounds by a key: in proportion, at random, and always the same."""

import math
import os
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tacit.errors import InvalidCoins
from tacit.mechanisms import RecordCoins
from tacit.protocol import deal_by_key
from tests.support.record_keys import counted_keys

KEY = bytes(range(32))
FALSE_ALARM = 1e-6

Deal = Callable[[bytes, NDArray[np.uint8], Sequence[int]], NDArray[np.int64]]

campaign_keys = st.binary(min_size=32, max_size=32)
plans = st.lists(st.integers(1, 1000), min_size=1, max_size=64)


@given(campaign_keys, plans, st.integers(0, 3000))
def test_every_round_gets_its_share_up_to_one_record(key: bytes, shares: list[int], n: int) -> None:
    rounds = deal_by_key(key, counted_keys(n), shares)
    assert rounds.shape == (n,)
    found = np.bincount(rounds, minlength=len(shares))
    assert len(found) == len(shares)
    for number, share in enumerate(shares):
        exact = n * share / sum(shares)
        assert math.floor(exact) <= found[number] <= math.ceil(exact)


@given(campaign_keys, plans, st.integers(1, 200), st.data())
def test_a_record_has_the_same_round_in_whatever_order_records_are_given(
    key: bytes, shares: list[int], n: int, data: st.DataObject
) -> None:
    order = np.array(data.draw(st.permutations(range(n))))
    given_first = deal_by_key(key, counted_keys(n), shares)
    assert (deal_by_key(key, counted_keys(n)[order], shares) == given_first[order]).all()
    assert (deal_by_key(key, counted_keys(n), shares) == given_first).all()


def test_another_key_deals_otherwise() -> None:
    records = counted_keys(100)
    found = {deal_by_key(os.urandom(32), records, (1,) * 10).tobytes() for _ in range(20)}
    assert len(found) == 20


def test_dealing_out_uses_no_coin_of_an_answer() -> None:
    records = counted_keys(1000)
    answers = RecordCoins(KEY, records, purpose="answers").blocks(0, 1000, 0)
    by_answers = np.argsort(np.argsort(answers[:, 0])) * 10 // 1000
    assert (deal_by_key(KEY, records, (1,) * 10) == by_answers).mean() < 0.2


def test_a_million_records_and_the_largest_plan_are_dealt_out_exactly() -> None:
    n, shares = 10**6, [1000] * 63 + [1]
    found = np.bincount(deal_by_key(KEY, counted_keys(n), shares), minlength=64)
    assert found.sum() == n
    assert set(found[:63]) <= {15872, 15873}
    assert found[63] in {15, 16}


def test_a_record_that_occurs_twice_is_refused() -> None:
    twice = np.concatenate([counted_keys(3), counted_keys(1)])
    with pytest.raises(InvalidCoins, match="twice"):
        deal_by_key(KEY, twice, (1, 1))


# Of 5,000 keys, the share of those that put a record into a round is within `bound` of the
# round's share but with probability 2·exp(-2·5,000·bound²) (Hoeffding; keys are independent, and
# a pseudorandom function is taken for a random one). There are 3 sizes, 2 records and 4 rounds.
KEYS, SIZES, SHARES = 5_000, (1, 2, 7), (1, 2, 3, 4)
BOUND = math.sqrt(math.log(2 * len(SIZES) * 2 * len(SHARES) / FALSE_ALARM) / (2 * KEYS))


def farthest(deal: Deal) -> float:
    """By how much the rounds of the first and the last record differ from the shares, at most."""
    expected = np.array(SHARES) / sum(SHARES)
    distance = 0.0
    for n in SIZES:
        records = counted_keys(n, first=1)
        rounds = np.array([deal(os.urandom(32), records, SHARES)[[0, -1]] for _ in range(KEYS)])
        for column in rounds.T:
            found = np.bincount(column, minlength=len(SHARES)) / KEYS
            distance = max(distance, float(np.abs(found - expected).max()))
    return distance


def test_a_record_is_in_a_round_with_the_probability_of_its_share() -> None:
    """False alarm at most 1e-6."""
    assert farthest(deal_by_key) <= BOUND


def without_a_start(
    key: bytes, records: NDArray[np.uint8], shares: Sequence[int]
) -> NDArray[np.int64]:
    """Broken: in a random order, but the first always goes to the first round."""
    n = len(records)
    order = RecordCoins(key, records, purpose="rounds").blocks(0, n, 0)[:, 0]
    positions = np.argsort(np.argsort(order)) * sum(shares)
    found: NDArray[np.int64] = np.searchsorted(n * np.cumsum(shares), positions, side="right")
    return found


def without_an_order(
    key: bytes, records: NDArray[np.uint8], shares: Sequence[int]
) -> NDArray[np.int64]:
    """Broken: from a random start, but in the order in which records are given."""
    n, total = len(records), sum(shares)
    start = int.from_bytes(key, "big") % total
    positions = np.arange(n) * total + start
    found: NDArray[np.int64] = np.searchsorted(n * np.cumsum(shares), positions, side="right")
    return found


@pytest.mark.parametrize("broken", [without_a_start, without_an_order])
def test_the_test_of_probabilities_refuses_a_broken_deal(broken: Deal) -> None:
    assert farthest(broken) > BOUND


def test_records_that_come_one_by_one_are_not_all_put_into_one_round() -> None:
    """Each is a site's only record at the time: P(all 40 in one of 10 rounds) = 10^-39."""
    rounds = {int(deal_by_key(KEY, counted_keys(1, first), (1,) * 10)[0]) for first in range(40)}
    assert len(rounds) > 1
