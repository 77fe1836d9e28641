"""k-ary randomized response against a plain reading of its specification."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike, NDArray

from tacit.errors import InvalidClassCount, InvalidCoins, InvalidEpsilon, InvalidLabels
from tacit.mechanisms import (
    Coins,
    FreshCoins,
    RandomizedResponse,
    RecordCoins,
    UniformChannel,
)
from tacit.mechanisms.coins import CHUNK_ROWS
from tests.support.record_keys import counted_keys

KEY = bytes(range(32))


def record_coins(count: int) -> RecordCoins:
    return RecordCoins(KEY, counted_keys(count))


def plain_report(channel: UniformChannel, label: int, coins: Coins, row: int) -> int:
    """One report by Python's integers, as the docstrings say it."""
    attempt = 0
    while True:
        word = int(coins.blocks(row, row + 1, attempt)[0, 1]) % 2**32
        if word * channel.k % 2**32 >= 2**32 % channel.k:
            break
        attempt += 1
    coin = int(coins.blocks(row, row + 1, 0)[0, 0])
    return word * channel.k // 2**32 if coin < channel.threshold else label


@dataclass
class ScriptedCoins:
    """Blocks written by hand, per attempt, and a list of what was asked."""

    attempts: list[list[tuple[int, int]]]
    rows: int | None = None
    asked: list[tuple[int, int, int]] = field(default_factory=list)

    def blocks(self, start: int, stop: int, attempt: int) -> NDArray[np.uint64]:
        self.asked.append((start, stop, attempt))
        return np.array(self.attempts[attempt][start:stop], dtype=np.uint64)


@given(
    k=st.one_of(st.integers(2, 50), st.integers(2, 2**31), st.just(2**32 // 3 + 1)),
    threshold=st.integers(1, 2**64 - 1),
    data=st.data(),
)
@settings(deadline=None)
def test_reports_are_those_of_the_specification(
    k: int, threshold: int, data: st.DataObject
) -> None:
    labels = data.draw(st.lists(st.integers(0, k - 1), max_size=30))
    coins = record_coins(len(labels))
    mechanism = RandomizedResponse.from_channel(UniformChannel(k, threshold))
    expected = [
        plain_report(mechanism.channel, label, coins, row) for row, label in enumerate(labels)
    ]
    assert mechanism.privatize(labels, coins).tolist() == expected


def test_many_chunks_and_rejections_give_the_reports_of_the_specification() -> None:
    k, count = 2**32 // 3 + 1, 2 * CHUNK_ROWS + 17  # a third of all draws is refused
    mechanism = RandomizedResponse(k, 22.0)
    labels = np.random.default_rng(0).integers(0, k, count)
    coins = record_coins(count)
    reports = mechanism.privatize(labels, coins)
    replaced = int((reports != labels).sum())
    assert 0.2 * count < replaced < 0.5 * count
    for row in [*range(0, count, 997), CHUNK_ROWS - 1, CHUNK_ROWS, count - 1]:
        assert reports[row] == plain_report(mechanism.channel, int(labels[row]), coins, row)


def test_a_refused_draw_takes_the_next_attempts_replacement_and_the_first_attempts_coin() -> None:
    # With k = 3 only the draw 0 is refused; u = 2^31 gives label 1 and u = 2^32 - 1 gives label 2.
    replace, keep, high = 0, 2**64 - 1, 7 << 32
    coins = ScriptedCoins(
        [
            [(replace, 0), (replace, 2**31), (keep, 0), (replace, high), (keep, 2**31)],
            [(keep, 2**31), (keep, 2**32 - 1), (replace, 2**31), (keep, 0), (replace, 0)],
            [(keep, 0), (keep, 0), (replace, 0), (keep, high | 2**32 - 1), (replace, 0)],
        ]
    )
    mechanism = RandomizedResponse.from_channel(UniformChannel(3, 2**63))
    assert mechanism.privatize([0, 0, 0, 0, 0], coins).tolist() == [1, 1, 0, 2, 0]
    assert coins.asked == [(0, 5, 0), (0, 5, 1), (0, 5, 2)]


def test_the_coin_replaces_exactly_below_the_threshold() -> None:
    threshold = 2**64 - 3
    coins = ScriptedCoins([[(threshold - 1, 2**31), (threshold, 2**31), (threshold + 1, 2**31)]])
    mechanism = RandomizedResponse.from_channel(UniformChannel(4, threshold))
    assert mechanism.privatize([0, 0, 0], coins).tolist() == [2, 0, 0]


@pytest.mark.parametrize("threshold", [1, 2**63, 2**64 - 1])
@pytest.mark.parametrize("label", [0, 2])
def test_the_same_blocks_are_drawn_whatever_the_label_and_the_outcome(
    threshold: int, label: int
) -> None:
    coins = ScriptedCoins([[(2**63, 0)] * 4, [(0, 5)] * 4])
    mechanism = RandomizedResponse.from_channel(UniformChannel(3, threshold))
    mechanism.privatize([label] * 4, coins)
    assert coins.asked == [(0, 4, 0), (0, 4, 1)]


@pytest.mark.parametrize("dtype", ["i1", "u1", "<i2", ">i4", "<u4", ">i8", "<u8"])
def test_every_integer_type_gives_the_same_int64_reports(dtype: str) -> None:
    labels = np.arange(1000) % 10
    mechanism, coins = RandomizedResponse(10, 1.0), record_coins(1000)
    reports = mechanism.privatize(labels.astype(dtype), coins)
    assert reports.dtype == np.int64
    np.testing.assert_array_equal(reports, mechanism.privatize(labels.tolist(), coins))
    np.testing.assert_array_equal(
        reports, mechanism.privatize(np.repeat(labels.astype(dtype), 2)[::2], coins)
    )


def test_the_labels_given_are_left_as_they_are() -> None:
    labels = np.arange(1000) % 10
    labels.flags.writeable = False
    reports = RandomizedResponse(10, 0.1).privatize(labels, FreshCoins())
    np.testing.assert_array_equal(labels, np.arange(1000) % 10)
    assert not np.shares_memory(labels, reports)


@pytest.mark.parametrize("empty", [[], np.empty(0, dtype=np.int64), np.empty(0, dtype=np.uint8)])
@pytest.mark.parametrize("coins", [FreshCoins(), record_coins(0)])
def test_no_labels_give_no_reports(empty: ArrayLike, coins: Coins) -> None:
    reports = RandomizedResponse(10, 1.0).privatize(empty, coins)
    assert reports.shape == (0,)
    assert reports.dtype == np.int64


BAD_LABELS = [
    [0, 10],
    [0, -1],
    [0.0, 1.0],
    [True, False],
    ["1"],
    [None],
    [[0], [1]],
    [[0], [1, 2]],
    3,
    [2**63],
    [2**64],
    [-(2**63)],
    np.array([0, 1], dtype=object),
    np.array([2**64 - 1], dtype=np.uint64),
    np.array([-1], dtype=np.int8),
    np.array([3], dtype="m8[s]"),
    np.empty((0, 2), dtype=np.int64),
]


@pytest.mark.parametrize("labels", BAD_LABELS, ids=repr)
def test_labels_that_are_not_integers_from_0_to_k_minus_1_are_refused(labels: ArrayLike) -> None:
    mechanism = RandomizedResponse(10, 1.0)
    with pytest.raises(InvalidLabels):
        mechanism.privatize(labels, FreshCoins())
    with pytest.raises(InvalidLabels):
        mechanism.estimate(labels)


def test_a_label_out_of_range_is_named_by_its_row_and_not_by_its_value() -> None:
    with pytest.raises(InvalidLabels, match="row 2 ") as raised:
        RandomizedResponse(10, 1.0).privatize([1, 2, 77, 99], FreshCoins())
    assert "77" not in str(raised.value)


def test_coins_for_another_number_of_records_are_refused() -> None:
    mechanism = RandomizedResponse(10, 1.0)
    for count in (0, 2, 4):
        with pytest.raises(InvalidCoins):
            mechanism.privatize([0, 1, 2], record_coins(count))
    with pytest.raises(InvalidCoins):
        mechanism.privatize([], record_coins(1))


@pytest.mark.parametrize("coins", [None, np.random.default_rng(0), 7, FreshCoins])
def test_what_is_no_source_of_coins_is_refused(coins: Coins) -> None:
    with pytest.raises(InvalidCoins):
        RandomizedResponse(10, 1.0).privatize([0, 1, 2], coins)


def test_a_mechanism_refuses_what_its_channel_refuses() -> None:
    with pytest.raises(InvalidEpsilon):
        RandomizedResponse(10, float("nan"))
    with pytest.raises(InvalidClassCount):
        RandomizedResponse(1, 1.0)


def test_a_mechanism_made_from_its_channel_is_the_same_mechanism() -> None:
    mechanism = RandomizedResponse(10, 1.0)
    again = RandomizedResponse.from_channel(UniformChannel(10, mechanism.channel.threshold))
    assert again == mechanism
    assert again.epsilon == mechanism.epsilon == 1.0
