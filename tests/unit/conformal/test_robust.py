"""NRSCP and NRESCP: the quantile of Ŝ, used with S or with Ŝ."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given

from tacit.conformal import Guarantee, nrescp, nrscp, split
from tacit.conformal.results import EVERY_CLASS
from tacit.scores import APS, HPS, NoiseRobust
from tests.support import brute
from tests.support.tables import Sample, alphas, samples


@given(samples(min_size=9), alphas)
def test_the_threshold_is_the_conformal_quantile_of_the_robust_score(
    sample: Sample, alpha: float
) -> None:
    """Its rank is ⌈(n+1)(1-α)⌉, not ⌈n(1-α)⌉."""
    beta = 0.25
    robust = sorted(
        (1 - beta) * row[label] + beta * sum(row) / len(row)
        for row, label in zip(sample.every, sample.labels, strict=True)
    )
    rank = brute.conformal_rank(sample.n, Fraction(str(alpha)))
    with_base = nrscp(*sample.records, beta=beta, **sample.aim(alpha))
    with_robust = nrescp(*sample.records, beta=beta, **sample.aim(alpha))
    if rank <= sample.n:
        assert with_base.threshold == pytest.approx(robust[rank - 1], abs=1e-12)
        assert with_robust.threshold == with_base.threshold
    else:
        assert EVERY_CLASS in with_base.notes
        assert EVERY_CLASS in with_robust.notes
        assert with_base.sets(sample.probabilities, sample.uniforms).all()
        assert with_robust.sets(sample.probabilities, sample.uniforms).all()


def test_the_sets_are_made_with_the_base_score_or_with_the_robust_one() -> None:
    rows = np.random.default_rng(1).dirichlet(np.ones(4), 60)
    labels = np.random.default_rng(2).integers(0, 4, 60)
    base = nrscp(rows, labels, beta=0.3, score=HPS(), alpha=0.2)
    robust = nrescp(rows, labels, beta=0.3, score=HPS(), alpha=0.2)
    expected = 0.7 * HPS().of_all(rows) + 0.3 * HPS().of_all(rows).mean(axis=1, keepdims=True)
    assert base.score == HPS()
    assert robust.score == NoiseRobust(HPS(), 0.3)
    assert (base.sets(rows) == (HPS().of_all(rows) <= base.threshold)).all()
    assert (robust.sets(rows) == (expected <= robust.threshold + 1e-12)).all()
    assert {base.guarantee, robust.guarantee} == {Guarantee.NOMINAL}


@given(samples(min_size=9), alphas)
def test_without_noise_both_are_split_cp(sample: Sample, alpha: float) -> None:
    expected = split(*sample.records, **sample.aim(alpha)).threshold
    for method in (nrscp, nrescp):
        result = method(*sample.records, beta=0, **sample.aim(alpha))
        assert result.threshold == pytest.approx(expected, abs=1e-12)


def test_a_record_on_the_threshold_is_in_its_robust_set() -> None:
    """Calibration and prediction compute Ŝ by one arithmetic: no record slips out by a last bit."""
    generator = np.random.default_rng(3)
    rows = generator.dirichlet(np.ones(7), 200)
    labels = generator.integers(0, 7, 200)
    result = nrescp(rows, labels, beta=0.37, score=HPS(), alpha=0.1)
    rank = brute.conformal_rank(200, Fraction(1, 10))
    assert result.sets(rows)[np.arange(200), labels].sum() >= rank


def test_the_coverage_stated_is_that_of_the_sets_that_are_made() -> None:
    rows = np.random.default_rng(4).dirichlet(np.ones(5), 300)
    labels = np.random.default_rng(5).integers(0, 5, 300)
    for method in (nrscp, nrescp):
        result = method(rows, labels, beta=0.4, score=APS(), alpha=0.1)
        assert result.coverage == result.sets(rows)[np.arange(300), labels].mean()
