"""LDP-CP-S on the same coins as a plain implementation; the certificate of S* on difficult laws."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from numpy.typing import NDArray

from tacit.conformal import (
    Answers,
    BinarySearch,
    Calibration,
    CertifiedSearch,
    Question,
    ldp_cp_s,
    run,
)
from tacit.mechanisms import BinaryRandomizedResponse, FreshCoins
from tacit.scores import APS, HPS, Score
from tests.support import searches
from tests.support.coins import KnownCoins, known_words
from tests.support.digits import digits
from tests.support.populations import Population, synthetic
from tests.support.runs import too_many_failures

ALPHA, DELTA, ROUNDS, RUNS = 0.1, 0.1, 10, 400
CLIENT = BinaryRandomizedResponse(4.0)


def coins_of(words: NDArray[np.uint64], batch: NDArray[np.int64]) -> KnownCoins:
    return KnownCoins(words[batch])


@pytest.mark.parametrize(
    ("population", "score"),
    [(partial(synthetic, 10), HPS()), (partial(synthetic, 3), APS()), (digits, HPS())],
    ids=["synthetic-hps", "synthetic-aps", "digits-hps"],
)
def test_ldp_cp_s_is_what_a_plain_implementation_gives_on_the_same_coins(
    population: Callable[[], Population], score: Score
) -> None:
    """Over 200 seeds, coins known beforehand: no false alarms."""
    drawn_from, n = population(), 1003
    batches = BinarySearch(score, drawn_from.k, CLIENT.channel, ALPHA, n, ROUNDS).batches()
    for seed in range(200):
        generator = np.random.default_rng([seed, 3])
        rows, labels = drawn_from.draw(n, generator)
        words = known_words(n, generator)
        result = ldp_cp_s(
            rows,
            labels,
            mechanism=CLIENT,
            score=score,
            alpha=ALPHA,
            rounds=ROUNDS,
            coins_for=partial(coins_of, words),
        )
        order = searches.dealt(batches)
        scores = score.of_labels(rows, labels)[order].tolist()
        coins = words[order, 0].tolist()
        plain = searches.thesis_search(
            searches.asking(scores, coins, CLIENT.channel.threshold, ROUNDS),
            limits=score.range(drawn_from.k),
            rounds=ROUNDS,
            ratio=CLIENT.channel.ratio,
            alpha=Fraction(1, 10),
        )
        assert isinstance(result, Calibration)
        assert (result.threshold, result.n) == (plain.threshold, plain.answered)


@dataclass(frozen=True)
class Law:
    """A distribution of scores on [0, 1] and its distribution function."""

    name: str
    draw: Callable[[int, np.random.Generator], NDArray[np.float64]]
    within: Callable[[float], float]


def crowded(n: int, generator: np.random.Generator) -> NDArray[np.float64]:
    return 1 - 10.0 ** -generator.uniform(0, 8, n)


def crowded_within(threshold: float) -> float:
    return 1.0 if threshold >= 1 - 1e-8 else -float(np.log10(1 - threshold)) / 8


ATOM = 0.6145
"""Just above 629/1024, the last of ten questions: a returned midpoint misses the atom."""


def with_atom(n: int, generator: np.random.Generator) -> NDArray[np.float64]:
    """Two fifths of the scores are one number, with three fifths spread below it."""
    return np.where(generator.random(n) < 0.6, generator.uniform(0, ATOM, n), ATOM)


def atom_within(threshold: float) -> float:
    return 1.0 if threshold >= ATOM else 0.6 * max(0.0, threshold) / ATOM


LAWS = {
    "even": Law("even", lambda n, generator: generator.random(n), lambda t: min(1.0, t)),
    "crowded": Law("crowded at 1", crowded, crowded_within),
    "atom": Law("an atom at the quantile", with_atom, atom_within),
}


def answers_of(law: Law, n: int, seed: int) -> searches.Ask:
    """Real randomized answers of fresh records in every round."""
    generator = np.random.default_rng([seed, 4])

    def ask(_: int, threshold: float) -> list[bool]:
        bits = law.draw(n // ROUNDS, generator) <= threshold
        return [bool(bit) for bit in CLIENT.privatize(bits, FreshCoins())]

    return ask


def failures_of(law: Law, threshold: Callable[[int], float], runs: int = RUNS) -> int:
    return sum(law.within(threshold(seed)) < 1 - ALPHA for seed in range(runs))


def certified_threshold(law: Law, n: int, seed: int) -> float:
    search = CertifiedSearch(HPS(), 2, CLIENT.channel, ALPHA, n, ROUNDS, DELTA)
    answers = answers_of(law, n, seed)

    def ask(question: Question) -> Answers:
        return Answers.of(answers(question.round, question.threshold))

    result = run(search, ask)
    assert isinstance(result, Calibration)
    return result.threshold


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS.keys())
def test_certified_ldp_cp_s_covers_in_all_but_a_share_delta_of_the_runs(law: Law) -> None:
    """False-alarm probability at most 1e-6 per law, by an exact binomial test over 400 runs."""
    failures = failures_of(law, partial(certified_threshold, law, 5000))
    assert not too_many_failures(failures, RUNS, DELTA)


def failures_for_sites_in_turn() -> int:
    """Runs of 40 in which S* misses 1-α for ten unlike sites whose records come in turn.

    A record of site i has a score between 0 and (i+1)/10.
    """
    failures, n = 0, 5000
    ends = (np.arange(ROUNDS) + 1) / ROUNDS
    for seed in range(40):
        scores = np.random.default_rng([seed, 6]).random(n) * np.tile(ends, n // ROUNDS)
        rows = np.column_stack([1 - scores, scores])
        result = ldp_cp_s(
            rows,
            np.zeros(n, dtype=np.int64),
            mechanism=CLIENT,
            score=HPS(),
            alpha=ALPHA,
            delta=DELTA,
            rounds=ROUNDS,
        )
        assert isinstance(result, Calibration)
        failures += np.minimum(1, result.threshold / ends).mean() < 1 - ALPHA
    return failures


def test_repro_sites_that_come_in_turn_do_not_each_have_a_round_of_their_own() -> None:
    """Dealt out in turn, the first round would certify 0.5 for a site whose scores end at 0.1.

    False-alarm probability at most 1e-6, by an exact binomial test.
    """
    assert not too_many_failures(failures_for_sites_in_turn(), 40, DELTA)


def test_the_check_catches_rounds_that_are_dealt_out_in_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def in_turn(search: CertifiedSearch) -> list[NDArray[np.int64]]:
        return [np.arange(start, search.n, search.rounds) for start in range(search.rounds)]

    monkeypatch.setattr(CertifiedSearch, "batches", in_turn)
    assert too_many_failures(failures_for_sites_in_turn(), 40, DELTA)


@pytest.mark.long
@pytest.mark.parametrize("n", [5000, 20_000])
@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS.keys())
def test_certified_ldp_cp_s_covers_over_many_runs(law: Law, n: int) -> None:
    """False-alarm probability at most 1e-6 per case, by an exact binomial test over 4,000 runs."""
    failures = failures_of(law, partial(certified_threshold, law, n), 4000)
    assert not too_many_failures(failures, 4000, DELTA)


def test_the_certificate_is_not_bought_with_the_full_set() -> None:
    """On an even law most thresholds lie below 1; false-alarm probability below 1e-9.

    A run moves the upper end at the latest with the question at 63/64: 500 answers, Δ_S = 0.076, an
    estimate with an s.d. of 0.0083 around 0.984 that reaches 0.976 in more than four of five runs.
    P(Bin(100, 0.2) ≥ 50) < 1e-9.
    """
    n, runs = 5000, 100
    moved = sum(certified_threshold(LAWS["even"], n, seed) < 1 for seed in range(runs))
    assert moved > runs / 2


@pytest.mark.parametrize("law", [LAWS["crowded"], LAWS["atom"]], ids=["crowded", "atom"])
def test_the_check_catches_a_search_that_returns_its_last_midpoint(law: Law) -> None:
    """The thesis's rule: the upper end was certified, the last question never was."""
    n = 5000

    def threshold(seed: int) -> float:
        return searches.certified_search(
            answers_of(law, n, seed),
            limits=(0.0, 1.0),
            rounds=ROUNDS,
            ratio=CLIENT.channel.ratio,
            alpha=ALPHA,
            delta=DELTA,
            last_midpoint=True,
        ).threshold

    assert too_many_failures(failures_of(law, threshold), RUNS, DELTA)


@pytest.mark.parametrize("law", [LAWS["even"]], ids=["even"])
def test_the_check_catches_a_search_without_its_margin(law: Law) -> None:
    """Δ_S left out: s_high moves wherever the estimate happens to reach 1-α."""
    n = 5000

    def threshold(seed: int) -> float:
        low, high = 0.0, 1.0
        answers = answers_of(law, n, seed)
        for number in range(ROUNDS):
            middle = (low + high) / 2
            estimate = searches.debiased(answers(number, middle), CLIENT.channel.ratio)
            low, high = (low, middle) if estimate >= 1 - ALPHA else (middle, high)
        return high

    assert too_many_failures(failures_of(law, threshold), RUNS, DELTA)
