"""What every method refuses, and with which error."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tacit.conformal import (
    Calibration,
    CoverageSketch,
    ldp_cp_l,
    ldp_cp_s,
    nacp,
    nacp_matrix,
    noisy,
    nrescp,
    nrscp,
    split,
)
from tacit.errors import (
    InvalidLabels,
    InvalidNoise,
    InvalidParameter,
    InvalidProbabilities,
    TacitError,
)
from tacit.mechanisms import BinaryRandomizedResponse, UniformChannel
from tacit.scores import HPS, RandomizedAPS

Method = Callable[..., Any]
CHANNEL = UniformChannel.for_epsilon(3, 1.0)
BITS = BinaryRandomizedResponse(1.0)


def sketched(rows: Any, labels: Any, *, score: Any, alpha: float, uniforms: Any = None) -> Any:
    return CoverageSketch.empty(score, 3).add(rows, labels, uniforms).calibrate(CHANNEL, alpha)


METHODS: dict[str, Method] = {
    "split": split,
    "noisy": noisy,
    "nacp": lambda *given, **aim: nacp(*given, beta=0.1, **aim),
    "nacp_matrix": lambda *given, **aim: nacp_matrix(*given, matrix=np.eye(3), **aim),
    "nrscp": lambda *given, **aim: nrscp(*given, beta=0.1, **aim),
    "nrescp": lambda *given, **aim: nrescp(*given, beta=0.1, **aim),
    "ldp_cp_l": lambda *given, **aim: ldp_cp_l(*given, channel=CHANNEL, **aim),
    "sketch": sketched,
    "ldp_cp_s": lambda *given, **aim: ldp_cp_s(*given, mechanism=BITS, rounds=2, **aim),
}
every_method = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS.keys())
ROWS = np.random.default_rng(4).dirichlet(np.ones(3), 20)
LABELS = np.arange(20) % 3


@every_method
def test_good_records_give_a_calibration(method: Method) -> None:
    result = method(ROWS, LABELS, score=HPS(), alpha=0.1)
    assert isinstance(result, Calibration)
    assert (result.n, result.k, result.alpha) == (20, 3, 0.1)


@every_method
def test_lists_and_small_types_are_as_good_as_arrays(method: Method) -> None:
    rows = ROWS.astype(np.float32)
    given = method(rows.tolist(), LABELS.tolist(), score=HPS(), alpha=0.1)
    small = method(rows, LABELS.astype(np.int8), score=HPS(), alpha=0.1)
    if given.method != "ldp-cp-s":
        assert given == small


@every_method
def test_no_records_are_refused(method: Method) -> None:
    with pytest.raises(InvalidParameter):
        method(np.empty((0, 3)), np.empty(0, dtype=int), score=HPS(), alpha=0.1)


@every_method
@pytest.mark.parametrize("alpha", [0, 1, -0.1, 1.1, float("nan"), float("inf"), None, "a lot"])
def test_an_alpha_outside_0_and_1_is_refused(method: Method, alpha: Any) -> None:
    with pytest.raises(InvalidParameter):
        method(ROWS, LABELS, score=HPS(), alpha=alpha)


@every_method
@pytest.mark.parametrize(
    "rows",
    [
        ROWS[0],
        ROWS[:, :1],
        2 * ROWS,
        -ROWS,
        np.where(ROWS > 0.9, np.nan, ROWS) * np.nan,
        ROWS[:, :, None],
        "rows",
        None,
    ],
)
def test_tables_that_are_no_probabilities_are_refused(method: Method, rows: Any) -> None:
    with pytest.raises(InvalidProbabilities):
        method(rows, LABELS, score=HPS(), alpha=0.1)


@every_method
@pytest.mark.parametrize(
    "labels",
    [
        LABELS[:-1],
        [*LABELS, 0],
        LABELS[:, None],
        LABELS - 1,
        LABELS + 1,
        LABELS.astype(float),
        LABELS.astype(bool),
        [],
        0,
        None,
        ["a"] * 20,
        [2**63] * 20,
    ],
)
def test_labels_that_are_not_the_records_classes_are_refused(method: Method, labels: Any) -> None:
    with pytest.raises(InvalidLabels):
        method(ROWS, labels, score=HPS(), alpha=0.1)


@every_method
@pytest.mark.parametrize(
    "uniforms", [None, np.zeros(19), np.zeros((20, 1)), 0.5, np.full(20, 1.5), ["u"] * 20]
)
def test_a_randomized_score_needs_one_uniform_per_record(method: Method, uniforms: Any) -> None:
    with pytest.raises(TacitError):
        method(ROWS, LABELS, score=RandomizedAPS(), alpha=0.1, uniforms=uniforms)


@pytest.mark.parametrize("method", [nacp, nrscp, nrescp])
@pytest.mark.parametrize("beta", [-0.1, 1, 1.5, float("nan"), float("inf"), None, "much"])
def test_a_noise_level_that_cannot_be_undone_is_refused(method: Method, beta: Any) -> None:
    with pytest.raises((InvalidNoise, InvalidParameter)):
        method(ROWS, LABELS, beta=beta, score=HPS(), alpha=0.1)


@pytest.mark.parametrize("delta", [0, 1, -0.1, float("nan"), "rare"])
def test_a_failure_probability_outside_0_and_1_is_refused(delta: Any) -> None:
    with pytest.raises(InvalidParameter):
        ldp_cp_l(ROWS, LABELS, channel=CHANNEL, score=HPS(), alpha=0.1, delta=delta)
    with pytest.raises(InvalidParameter):
        CoverageSketch.empty(HPS(), 3).add(ROWS, LABELS).calibrate(CHANNEL, 0.1, delta)
    with pytest.raises(InvalidParameter):
        ldp_cp_s(ROWS, LABELS, mechanism=BITS, score=HPS(), alpha=0.1, delta=delta)


def test_errors_never_show_the_value_of_a_label() -> None:
    for method in METHODS.values():
        with pytest.raises(InvalidLabels) as caught:
            method(ROWS, LABELS + 98765, score=HPS(), alpha=0.1)
        assert "9876" not in str(caught.value)
