"""Answers, and which record answers when."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.conformal import (
    Answers,
    BinarySearch,
)
from tacit.errors import InvalidBits
from tacit.mechanisms import BinaryChannel
from tacit.scores import HPS


@given(st.integers(1, 12), st.integers(0, 300))
def test_batches_are_disjoint_and_of_equal_size(rounds: int, more: int) -> None:
    n = rounds + more
    search = BinarySearch(HPS(), 2, BinaryChannel.for_epsilon(1.0), 0.1, n, rounds)
    rows = [batch.tolist() for batch in search.batches()]
    assert len(rows) == rounds
    assert {len(batch) for batch in rows} == {n // rounds} == {search.batch}
    assert len({row for batch in rows for row in batch}) == rounds * (n // rounds)


def test_batches_are_random_shares_of_records_in_any_order() -> None:
    """Ten sites in turn and ten rounds: every T-th record would give each round a site of its own.

    Always dealt out alike, so no false alarms; a site has at most 28 of the 100 in a batch.
    """
    sites = np.tile(np.arange(10), 100)
    search = BinarySearch(HPS(), 2, BinaryChannel.for_epsilon(1.0), 0.1, 1000, 10)
    for batch in search.batches():
        assert (np.abs(np.bincount(sites[batch], minlength=10) - 10) <= 18).all()


def test_repro_a_repeated_search_asks_every_record_in_the_same_round() -> None:
    """In another round it would answer another question with the same coins, which cancel out."""
    search = BinarySearch(HPS(), 2, BinaryChannel.for_epsilon(4.0), 0.1, 1000, 4)
    for first, again in zip(search.batches(), search.batches(), strict=True):
        assert (first == again).all()


@pytest.mark.parametrize(("ones", "count"), [(-1, 3), (4, 3), (0, -1), (8.9, 9.9)])
def test_impossible_counts_of_answers_are_refused(ones: Any, count: Any) -> None:
    with pytest.raises(InvalidBits):
        Answers(ones, count)


@pytest.mark.parametrize("bits", [[0, 2], [[0, 1]], [0.5], ["yes"], [-1], [float("nan")]])
def test_answers_that_are_no_bits_are_refused(bits: list[object]) -> None:
    with pytest.raises(InvalidBits):
        Answers.of(bits)  # type: ignore[arg-type]


def test_answers_are_counted() -> None:
    assert Answers.of([True, False, True]) == Answers.of([1, 0, 1]) == Answers(2, 3)
    assert Answers.of([]) == Answers(0, 0)


def test_counts_may_be_integers_of_numpy() -> None:
    """Their arithmetic wraps around at 64 bits; an exact estimate needs more."""
    search = BinarySearch(HPS(), 2, BinaryChannel.for_epsilon(4.0), 0.1, 1000, 4)
    ones, count = np.int64(7), np.int64(10)
    counted = search.estimate(Answers(ones, count))  # type: ignore[arg-type]
    assert counted == search.estimate(Answers(7, 10))
