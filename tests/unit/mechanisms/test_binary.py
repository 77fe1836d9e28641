"""Binary randomized response against a plain reading of its specification."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from tacit.errors import InvalidBits, InvalidCoins, InvalidEpsilon
from tacit.mechanisms import BinaryChannel, BinaryRandomizedResponse, FreshCoins, RecordCoins
from tacit.mechanisms.coins import CHUNK_ROWS
from tests.support.coins import KnownCoins
from tests.support.record_keys import counted_keys


def record_coins(count: int) -> RecordCoins:
    return RecordCoins(bytes(range(32)), counted_keys(count))


@given(st.lists(st.booleans(), max_size=30), st.integers(1, 2**63 - 1))
def test_a_bit_is_flipped_exactly_when_its_coin_is_below_the_threshold(
    bits: list[bool], threshold: int
) -> None:
    coins = record_coins(len(bits))
    words = [int(word) for word in coins.blocks(0, len(bits), 0)[:, 0]]
    mechanism = BinaryRandomizedResponse.from_channel(BinaryChannel(threshold))
    expected = [bit ^ (word < threshold) for bit, word in zip(bits, words, strict=True)]
    assert mechanism.privatize(bits, coins).tolist() == expected


def test_every_chunk_uses_its_own_coins() -> None:
    count = 2 * CHUNK_ROWS + 5
    coins, mechanism = record_coins(count), BinaryRandomizedResponse(1.0)
    flipped = coins.blocks(0, count, 0)[:, 0] < np.uint64(mechanism.channel.threshold)
    bits = np.arange(count) % 3 == 0
    np.testing.assert_array_equal(mechanism.privatize(bits, coins), bits ^ flipped)


@pytest.mark.parametrize("dtype", ["?", "i1", "u1", ">i4", "<u8", "<i8"])
def test_booleans_and_integers_give_the_same_boolean_reports(dtype: str) -> None:
    bits, coins = np.arange(1000) % 2, record_coins(1000)
    mechanism = BinaryRandomizedResponse(1.0)
    reports = mechanism.privatize(bits.astype(dtype), coins)
    assert reports.dtype == np.bool_
    np.testing.assert_array_equal(reports, mechanism.privatize(bits.tolist(), coins))


def test_the_bits_given_are_left_as_they_are() -> None:
    bits = np.zeros(1000, dtype=np.bool_)
    bits.flags.writeable = False
    reports = BinaryRandomizedResponse(0.1).privatize(bits, FreshCoins())
    assert not np.shares_memory(bits, reports)
    assert not bits.any()


@pytest.mark.parametrize("empty", [[], np.empty(0, dtype=np.bool_)])
def test_no_bits_give_no_reports(empty: ArrayLike) -> None:
    reports = BinaryRandomizedResponse(1.0).privatize(empty, FreshCoins())
    assert reports.shape == (0,)
    assert reports.dtype == np.bool_


@pytest.mark.parametrize(
    "bits",
    [[0, 2], [-1], [0.0, 1.0], ["0"], [None], [[0, 1]], [[0], [1, 0]], 1, [2**64], [2**63]],
    ids=repr,
)
def test_what_is_not_bits_is_refused(bits: ArrayLike) -> None:
    mechanism = BinaryRandomizedResponse(1.0)
    with pytest.raises(InvalidBits):
        mechanism.privatize(bits, FreshCoins())
    with pytest.raises(InvalidBits):
        mechanism.estimate(bits)


def test_what_is_no_bit_is_named_by_its_row_and_not_by_its_value() -> None:
    with pytest.raises(InvalidBits, match="row 1 ") as raised:
        BinaryRandomizedResponse(1.0).privatize([1, 77, 99], FreshCoins())
    assert "77" not in str(raised.value)


def test_coins_for_another_number_of_records_are_refused() -> None:
    with pytest.raises(InvalidCoins):
        BinaryRandomizedResponse(1.0).privatize([0, 1, 1], record_coins(2))


def test_an_epsilon_that_is_not_positive_is_refused() -> None:
    with pytest.raises(InvalidEpsilon):
        BinaryRandomizedResponse(0.0)


def test_a_mechanism_made_from_its_channel_is_the_same_mechanism() -> None:
    mechanism = BinaryRandomizedResponse(0.7)
    again = BinaryRandomizedResponse.from_channel(BinaryChannel(mechanism.channel.threshold))
    assert again == mechanism
    assert again.epsilon == mechanism.epsilon == 0.7


def test_a_coin_at_the_threshold_keeps_the_bit_and_one_below_flips_it() -> None:
    channel = BinaryChannel(2**62)
    coins = KnownCoins(np.array([[2**62 - 1, 0], [2**62, 0]], dtype=np.uint64))
    reports = BinaryRandomizedResponse.from_channel(channel).privatize([1, 1], coins)
    assert reports.tolist() == [False, True]
