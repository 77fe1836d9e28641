"""LDP-CP-S on records held in one place."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tacit.conformal import (
    BinarySearch,
    Calibration,
    NotCertifiable,
    ldp_cp_s,
)
from tacit.mechanisms import BinaryRandomizedResponse, RecordCoins
from tacit.scores import HPS, RAPS, Margin, Score, TopK
from tests.support import searches
from tests.support.coins import KnownCoins, known_words

SCORES: list[Score] = [HPS(), RAPS(0.1, 1), Margin(), TopK()]


def records(n: int, k: int, seed: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    generator = np.random.default_rng(seed)
    rows = generator.dirichlet(np.full(k, 0.3), n)
    labels = (rows.cumsum(axis=1) > generator.random((n, 1))).argmax(axis=1)
    return rows, labels


@pytest.mark.parametrize("delta", [None, 0.1])
@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("n", [4000, 4003])
def test_the_whole_method_equals_a_plain_one_on_the_same_coins(
    score: Score, delta: float | None, n: int
) -> None:
    rounds, alpha = 7, 0.1
    mechanism = BinaryRandomizedResponse(3.0)
    rows, labels = records(n, 4, seed=n)
    words = known_words(n, np.random.default_rng(1))
    result = ldp_cp_s(
        rows,
        labels,
        mechanism=mechanism,
        score=score,
        alpha=alpha,
        delta=delta,
        rounds=rounds,
        coins_for=lambda batch: KnownCoins(words[batch]),
    )
    order = searches.dealt(BinarySearch(score, 4, mechanism.channel, alpha, n, rounds).batches())
    scores = score.of_labels(rows, labels)[order].tolist()
    ask = searches.asking(scores, words[order, 0].tolist(), mechanism.channel.threshold, rounds)
    common: dict[str, Any] = {
        "limits": score.range(4),
        "rounds": rounds,
        "ratio": mechanism.channel.ratio,
    }
    if delta is None:
        plain = searches.thesis_search(ask, alpha=Fraction(1, 10), **common)
    else:
        plain = searches.certified_search(ask, alpha=alpha, delta=delta, **common)
    assert isinstance(result, Calibration)
    assert (result.threshold, result.n) == (plain.threshold, plain.answered)


def test_records_that_answer_again_with_their_own_coins_give_the_same_result() -> None:
    """Record coins make a second draw impossible: a repeated campaign is the same campaign."""
    rows, labels = records(3000, 4, seed=1)
    record_keys = np.frombuffer(np.arange(6000, dtype="<u8").tobytes(), np.uint8).reshape(3000, 16)

    def campaign(key: bytes) -> Calibration | NotCertifiable:
        return ldp_cp_s(
            rows,
            labels,
            mechanism=BinaryRandomizedResponse(1.0),
            score=HPS(),
            alpha=0.1,
            coins_for=lambda batch: RecordCoins(key, record_keys[batch]),
        )

    first = campaign(bytes(32))
    assert campaign(bytes(32)) == first
    assert campaign(bytes([1] * 32)) != first


def test_scores_exactly_at_the_question_answer_yes() -> None:
    rows = np.full((2000, 2), 0.5)
    result = ldp_cp_s(
        rows,
        np.zeros(2000, dtype=int),
        mechanism=BinaryRandomizedResponse(20.0),
        score=HPS(),
        alpha=0.1,
        delta=0.05,
        rounds=1,
    )
    assert isinstance(result, Calibration)
    assert result.threshold == 0.5
