"""Mean coverage of NACP and LDP-CP-L where the truth is known exactly.

False alarms. NACP's noise is simulated with seeds, so its tests always give the same answer. The
coins of LDP-CP-L cannot be seeded. In 3,000 runs of each setting inside, exact and (two of them)
through the sketch, its coverage had a bias of at most 0.0019, with a standard error of 0.0005, and
an s.d. of at most 0.03. Even with a bias of 0.003 the mean of 500 runs leaves one point from 1-α
only with probability P(|N(0,1)| > (0.01 - 0.003)·√500/0.03 = 5.2) < 1e-6 per setting.
"""

from functools import cache

import numpy as np
import pytest

from tacit.conformal import Calibration, CoverageSketch, ldp_cp_l, nacp, nacp_matrix, noise, split
from tacit.mechanisms import FreshCoins, RandomizedResponse
from tacit.scores import APS, HPS, RAPS, Score
from tests.support.nominal import ALPHA, LARGEST_DEVIATION, ONE_POINT, Cell, Threshold
from tests.support.populations import Floats, Labels, Population, synthetic

Setting = tuple[int, int, float, Score]
INSIDE: list[Setting] = [
    (2, 1000, 1.0, HPS()),
    (10, 2000, 4.0, APS()),
    (10, 2000, 2.0, HPS()),
    (10, 2000, 2.0, RAPS(0.01, 3)),
    (50, 1500, 4.0, HPS()),
]
OUTSIDE: list[Setting] = [(10, 2000, 1.0, HPS()), (50, 1500, 3.0, APS())]


@cache
def population(k: int) -> Population:
    return synthetic(k)


def cell(setting: Setting) -> Cell:
    k, n, epsilon, score = setting
    return Cell(population(k), n, epsilon, score)


def mechanism(case: Cell) -> RandomizedResponse:
    return RandomizedResponse(case.population.k, case.epsilon)


def by_reports(case: Cell) -> Threshold:
    """LDP-CP-L on real reports."""
    client = mechanism(case)

    def threshold(rows: Floats, labels: Labels, _: int) -> float:
        reports = client.privatize(labels, FreshCoins())
        result = ldp_cp_l(rows, reports, channel=client.channel, score=case.score, alpha=ALPHA)
        assert isinstance(result, Calibration)
        return result.threshold

    return threshold


def by_sketch(case: Cell) -> Threshold:
    """LDP-CP-L on real reports, through the sketch."""
    client = mechanism(case)
    empty = CoverageSketch.empty(case.score, case.population.k)

    def threshold(rows: Floats, labels: Labels, _: int) -> float:
        reports = client.privatize(labels, FreshCoins())
        result = empty.add(rows, reports).calibrate(client.channel, ALPHA)
        assert isinstance(result, Calibration)
        return result.threshold

    return threshold


def by_seeds(case: Cell, assumed_beta: float | None = None) -> Threshold:
    """NACP on simulated noise, as a mutant with another β than the true one."""
    beta = float(mechanism(case).channel.beta)
    matrix = noise.uniform(case.population.k, beta)
    assumed = beta if assumed_beta is None else assumed_beta

    def threshold(rows: Floats, labels: Labels, seed: int) -> float:
        noisy = noise.corrupt(labels, matrix, np.random.default_rng([seed, 1]))
        return nacp(rows, noisy, beta=assumed, score=case.score, alpha=ALPHA).threshold

    return threshold


@pytest.mark.parametrize("setting", INSIDE, ids=str)
def test_the_settings_inside_are_those_with_a_small_deviation(setting: Setting) -> None:
    case = cell(setting)
    assert case.deviation(float(mechanism(case).channel.beta)) <= LARGEST_DEVIATION


@pytest.mark.parametrize("setting", INSIDE, ids=str)
def test_ldp_cp_l_covers_within_one_point(setting: Setting) -> None:
    """False-alarm probability below 1e-6: see the top of this file."""
    case = cell(setting)
    coverages = case.coverages(by_reports(case))
    assert abs(coverages.mean() - (1 - ALPHA)) <= ONE_POINT
    assert coverages.std() <= LARGEST_DEVIATION * 1.2


@pytest.mark.parametrize("setting", INSIDE[1:3], ids=str)
def test_ldp_cp_l_through_the_sketch_covers_within_one_point(setting: Setting) -> None:
    """False-alarm probability below 1e-6: see the top of this file."""
    case = cell(setting)
    assert abs(case.coverages(by_sketch(case)).mean() - (1 - ALPHA)) <= ONE_POINT


@pytest.mark.parametrize("setting", INSIDE, ids=str)
def test_nacp_covers_within_one_point(setting: Setting) -> None:
    """Seeded: no false alarms."""
    case = cell(setting)
    assert abs(case.coverages(by_seeds(case), 200).mean() - (1 - ALPHA)) <= ONE_POINT


@pytest.mark.parametrize("setting", INSIDE, ids=str)
def test_the_check_catches_labels_taken_as_they_are(setting: Setting) -> None:
    """A mutant, seeded: no noise assumed."""
    case = cell(setting)
    unaware = case.coverages(by_seeds(case, assumed_beta=0.0), 200).mean()
    assert abs(unaware - (1 - ALPHA)) > ONE_POINT


@pytest.mark.parametrize("setting", [INSIDE[0], INSIDE[2]], ids=str)
def test_the_check_catches_the_two_conventions_of_uniform_noise_mixed_up(setting: Setting) -> None:
    """A mutant, seeded: ε' = β(k-1)/k, the share of labels that change, taken for β."""
    case = cell(setting)
    changed = float(mechanism(case).channel.beta) * (case.population.k - 1) / case.population.k
    mistaken = case.coverages(by_seeds(case, assumed_beta=changed), 200).mean()
    assert abs(mistaken - (1 - ALPHA)) > ONE_POINT


@pytest.mark.parametrize("setting", OUTSIDE, ids=str)
def test_the_settings_outside_have_a_large_deviation_and_cover_too_much(setting: Setting) -> None:
    """NACP is nominal: its largest crossing lies too high where F̂^c is noisy. Seeded."""
    case = cell(setting)
    assert case.deviation(float(mechanism(case).channel.beta)) > LARGEST_DEVIATION
    assert case.coverages(by_seeds(case), 200).mean() > 1 - ALPHA + 0.005


def matrix_threshold(case: Cell, matrix: Floats, assumed: Floats) -> Threshold:
    def threshold(rows: Floats, labels: Labels, seed: int) -> float:
        noisy = noise.corrupt(labels, matrix, np.random.default_rng([seed, 2]))
        return nacp_matrix(rows, noisy, matrix=assumed, score=case.score, alpha=ALPHA).threshold

    return threshold


def test_nacp_covers_within_one_point_with_the_noise_matrix_and_not_with_another() -> None:
    """Seeded: no false alarms. The matrix sends most of the noise of every class to class 0."""
    case = cell((10, 2000, 4.0, HPS()))
    to_first = np.zeros((10, 10))
    to_first[:, 0] = 1
    matrix = 0.7 * np.eye(10) + 0.3 * to_first
    good = case.coverages(matrix_threshold(case, matrix, matrix), 200)
    assert abs(good.mean() - (1 - ALPHA)) <= ONE_POINT
    other = noise.neighbourhood(10, 0.7)
    bad = case.coverages(matrix_threshold(case, matrix, other), 200)
    assert abs(bad.mean() - (1 - ALPHA)) > ONE_POINT


def test_split_cp_covers_at_least_its_target_and_at_most_1_in_n_plus_1_more() -> None:
    """Seeded: no false alarms. 1-α ≤ E ≤ 1-α+1/(n+1), within four standard errors."""
    case = cell((10, 200, 1.0, HPS()))

    def threshold(rows: Floats, labels: Labels, _: int) -> float:
        return split(rows, labels, score=case.score, alpha=ALPHA).threshold

    coverages = case.coverages(threshold, 1000)
    error = 4 * coverages.std() / np.sqrt(1000)
    assert 1 - ALPHA - error <= coverages.mean() <= 1 - ALPHA + 1 / 201 + error
