"""Mean coverage on scikit-learn's digits, by a weak classifier whose sets have several classes.

The population is the held-out digits; calibration sets are independent draws of them, so the
coverage of a threshold is known exactly. False alarms of LDP-CP-L: in 2,000 runs of each setting
inside, its coverage had a bias of at most 0.002, with a standard error of 0.0006, and an s.d. of at
most 0.0285. Even with a bias of 0.003 the mean of 500 runs leaves one point from 1-α only with
probability P(|N(0,1)| > (0.01 - 0.003)·√500/0.0285 = 5.5) < 1e-6.
"""

import numpy as np
import pytest

from tacit.conformal import Calibration, ldp_cp_l, ldp_cp_s, nacp, noise, noisy
from tacit.mechanisms import BinaryRandomizedResponse, FreshCoins, RandomizedResponse
from tacit.scores import APS, HPS, Score
from tests.support.digits import digits
from tests.support.nominal import ALPHA, LARGEST_DEVIATION, ONE_POINT, Cell, Threshold
from tests.support.populations import Floats, Labels
from tests.support.runs import too_many_failures

INSIDE: list[tuple[int, float, Score]] = [
    (2000, 4.0, HPS()),
    (2000, 2.0, HPS()),
    (2000, 2.0, APS()),
]
OUTSIDE: list[tuple[int, float, Score]] = [(1000, 1.0, HPS())]


def cell(setting: tuple[int, float, Score]) -> Cell:
    return Cell(digits(), *setting)


def beta_of(case: Cell) -> float:
    return float(RandomizedResponse(10, case.epsilon).channel.beta)


def by_reports(case: Cell) -> Threshold:
    client = RandomizedResponse(10, case.epsilon)

    def threshold(rows: Floats, labels: Labels, _: int) -> float:
        reports = client.privatize(labels, FreshCoins())
        result = ldp_cp_l(rows, reports, channel=client.channel, score=case.score, alpha=ALPHA)
        assert isinstance(result, Calibration)
        return result.threshold

    return threshold


def by_seeds(case: Cell, *, unaware: bool = False) -> Threshold:
    matrix = noise.uniform(10, beta_of(case))

    def threshold(rows: Floats, labels: Labels, seed: int) -> float:
        corrupted = noise.corrupt(labels, matrix, np.random.default_rng([seed, 1]))
        if unaware:
            return noisy(rows, corrupted, score=case.score, alpha=ALPHA).threshold
        return nacp(rows, corrupted, beta=beta_of(case), score=case.score, alpha=ALPHA).threshold

    return threshold


def test_the_classifier_is_weak_enough_for_sets_of_several_classes() -> None:
    population = digits()
    threshold = population.threshold(HPS(), 1 - ALPHA)
    sizes = (HPS().of_all(population.probabilities) <= threshold).sum(axis=1)
    assert sizes.mean() > 1.3


@pytest.mark.parametrize("setting", INSIDE, ids=str)
def test_ldp_cp_l_covers_within_one_point(setting: tuple[int, float, Score]) -> None:
    """False-alarm probability below 1e-6 per setting."""
    case = cell(setting)
    assert case.deviation(beta_of(case)) <= LARGEST_DEVIATION
    assert abs(case.coverages(by_reports(case)).mean() - (1 - ALPHA)) <= ONE_POINT


@pytest.mark.parametrize("setting", INSIDE, ids=str)
def test_nacp_covers_within_one_point_and_noisy_cp_does_not(
    setting: tuple[int, float, Score],
) -> None:
    """Seeded: no false alarms."""
    case = cell(setting)
    assert abs(case.coverages(by_seeds(case), 200).mean() - (1 - ALPHA)) <= ONE_POINT
    mutant = case.coverages(by_seeds(case, unaware=True), 200).mean()
    assert abs(mutant - (1 - ALPHA)) > ONE_POINT


@pytest.mark.parametrize("setting", OUTSIDE, ids=str)
def test_the_setting_outside_is_outside_for_its_deviation(
    setting: tuple[int, float, Score],
) -> None:
    case = cell(setting)
    assert case.deviation(beta_of(case)) > LARGEST_DEVIATION


def test_certified_ldp_cp_s_covers_in_all_but_a_few_runs_and_not_with_every_class() -> None:
    """False-alarm probability at most 1e-6, by an exact binomial test over 200 runs."""
    n, runs, delta = 4000, 200, 0.1
    coverage = digits().coverage_of(HPS())
    failures, trivial = 0, 0
    for seed in range(runs):
        records = digits().draw(n, np.random.default_rng(seed))
        result = ldp_cp_s(
            *records,
            mechanism=BinaryRandomizedResponse(4.0),
            score=HPS(),
            alpha=ALPHA,
            delta=delta,
        )
        assert isinstance(result, Calibration)
        failures += coverage(result.threshold) < 1 - ALPHA
        trivial += result.threshold == 1.0
    assert not too_many_failures(failures, runs, delta)
    assert trivial < runs / 2
