"""Results: what they carry, the sets they make, and their way through JSON."""

import json
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.conformal import (
    Calibration,
    CoverageSketch,
    Guarantee,
    NotCertifiable,
    ldp_cp_l,
    ldp_cp_s,
    nacp,
    nacp_matrix,
    noise,
    noisy,
    nrescp,
    nrscp,
    split,
)
from tacit.conformal.results import EXCHANGEABLE, POPULATION
from tacit.conformal.search import EXCHANGEABLE_THERE, POPULATION_THERE
from tacit.errors import InvalidDocument, InvalidProbabilities
from tacit.mechanisms import BinaryRandomizedResponse, UniformChannel
from tacit.scores import APS, HPS, RAPS, SAPS, Score
from tests.support.tables import Sample, alphas, samples

K = 4
GENERATOR = np.random.default_rng(9)
ROWS = GENERATOR.dirichlet(np.full(K, 0.5), 4000)
LABELS = GENERATOR.integers(0, K, 4000)
CHANNEL = UniformChannel.for_epsilon(K, 4.0)
BITS = BinaryRandomizedResponse(4.0)
SCORE = RAPS(0.1, 1)


def of_every_method() -> list[Calibration | NotCertifiable]:
    aim: dict[str, Any] = {"score": SCORE, "alpha": 0.1}
    sketch = CoverageSketch.empty(SCORE, K).add(ROWS, LABELS)
    return [
        split(ROWS, LABELS, **aim),
        split(ROWS[:3], LABELS[:3], **aim),
        noisy(ROWS, LABELS, **aim),
        nacp(ROWS, LABELS, beta=0.1, **aim),
        nacp_matrix(ROWS, LABELS, matrix=noise.uniform(K, 0.1), **aim),
        nrscp(ROWS, LABELS, beta=0.1, **aim),
        nrescp(ROWS, LABELS, beta=0.1, **aim),
        ldp_cp_l(ROWS, LABELS, channel=CHANNEL, **aim),
        ldp_cp_l(ROWS, LABELS, channel=CHANNEL, delta=0.05, **aim),
        ldp_cp_l(ROWS[:5], LABELS[:5], channel=CHANNEL, delta=0.05, **aim),
        sketch.calibrate(CHANNEL, 0.1),
        sketch.calibrate(CHANNEL, 0.1, 0.05),
        ldp_cp_s(ROWS, LABELS, mechanism=BITS, **aim),
        ldp_cp_s(ROWS, LABELS, mechanism=BITS, delta=0.05, **aim),
        ldp_cp_s(ROWS[:50], LABELS[:50], mechanism=BITS, delta=0.05, **aim),
    ]


def test_the_result_of_every_method_survives_json(tmp_path: Path) -> None:
    results = of_every_method()
    assert {type(result) for result in results} == {Calibration, NotCertifiable}
    for result in results:
        result.save(tmp_path / "result.json")
        assert type(result).load(tmp_path / "result.json") == result
        assert type(result).from_json(result.to_json().encode()) == result


def test_the_result_of_every_method_states_its_population() -> None:
    for result in of_every_method():
        if isinstance(result, Calibration):
            of_rounds = result.method.startswith("ldp-cp-s")
            stated = (
                (EXCHANGEABLE_THERE, POPULATION_THERE) if of_rounds else (EXCHANGEABLE, POPULATION)
            )
            assert result.assumptions[:2] == stated, result.method


@given(samples(), alphas)
def test_sets_hold_the_classes_whose_score_is_at_most_the_threshold(
    sample: Sample, alpha: float
) -> None:
    result = split(*sample.records, **sample.aim(alpha))
    expected = [[score <= result.threshold for score in row] for row in sample.every]
    loaded = Calibration.from_json(result.to_json())
    assert result.sets(sample.probabilities, sample.uniforms).tolist() == expected
    assert loaded.sets(sample.probabilities, sample.uniforms).tolist() == expected


def calibration(score: Score = SCORE) -> Calibration:
    return Calibration(
        method="ldp-cp-l*",
        score=score,
        k=K,
        threshold=0.1 + 0.2,
        n=4000,
        alpha=0.1,
        guarantee=Guarantee.COMPARISON,
        coverage=1.0000000000000002,
        delta=0.05,
        correction=0.03,
        epsilon=3.9999999999999996,
        resolution=1e-17,
        notes=("ε, ≤ and „quotes“",),
    )


def not_certifiable() -> NotCertifiable:
    return NotCertifiable("ldp-cp-s*", 10, 2**60, 0.1, 0.05, 1.5, 4.0)


def test_sets_of_new_records_need_the_classes_it_was_made_for() -> None:
    with pytest.raises(InvalidProbabilities, match="4 classes"):
        calibration().sets([[0.5, 0.5]])


def test_no_records_have_no_sets() -> None:
    assert calibration().sets(np.empty((0, K))).shape == (0, K)


def test_results_are_frozen() -> None:
    for result, field in ((calibration(), "threshold"), (not_certifiable(), "needed")):
        with pytest.raises(FrozenInstanceError):
            setattr(result, field, 0)


def test_numbers_survive_json_bit_for_bit() -> None:
    again = Calibration.from_json(calibration().to_json())
    assert again == calibration()
    assert again.threshold.hex() == (0.1 + 0.2).hex()
    assert NotCertifiable.from_json(not_certifiable().to_json()) == not_certifiable()


@pytest.mark.parametrize("score", [HPS(), APS(), RAPS(0.3, 2), SAPS(0.1)])
def test_the_score_comes_back_with_its_parameters(score: Score) -> None:
    assert Calibration.from_json(calibration(score).to_json()).score == score


SAVED: dict[type[Calibration] | type[NotCertifiable], dict[str, Any]] = {
    Calibration: json.loads(calibration().to_json()),
    NotCertifiable: json.loads(not_certifiable().to_json()),
}
EVERY_FIELD = [(kind, field) for kind, document in SAVED.items() for field in document]
NULLABLE = {"delta", "correction", "epsilon", "resolution"}
NUMBERS = {"threshold", "alpha", "coverage", *NULLABLE}


@pytest.mark.parametrize(("kind", "field"), EVERY_FIELD)
def test_a_document_without_one_of_its_fields_is_refused(
    kind: type[Calibration], field: str
) -> None:
    document = {name: value for name, value in SAVED[kind].items() if name != field}
    with pytest.raises(InvalidDocument):
        kind.from_json(json.dumps(document))


@pytest.mark.parametrize(("kind", "field"), EVERY_FIELD)
@pytest.mark.parametrize(
    "value",
    [True, [], {}, [1], {"a": 1}, float("nan"), float("inf"), 10**400, "12", -1.5, None],
    ids=lambda value: repr(value)[:20],
)
def test_a_field_of_the_wrong_type_is_refused(
    kind: type[Calibration], field: str, value: object
) -> None:
    is_valid = (
        (value is None and field in (NULLABLE if kind is Calibration else {"correction"}))
        or (value == "12" and field == "method")
        or (value == [] and field in {"assumptions", "notes"})
        or (value == -1.5 and field in {"coverage", "resolution"})
        or (value == 10**400 and field in {"n", "needed"})
    )
    text = json.dumps({**SAVED[kind], field: value})
    if is_valid:
        assert json.loads(kind.from_json(text).to_json())[field] == value
    else:
        with pytest.raises(InvalidDocument):
            kind.from_json(text)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("k", 1),
        ("k", 0),
        ("alpha", 0),
        ("alpha", 1),
        ("alpha", 7),
        ("delta", 0),
        ("delta", 1.5),
        ("epsilon", 0),
        ("epsilon", -4),
        ("correction", -0.1),
        ("guarantee", "absolute"),
        ("score", {"name": "hps", "a": 1}),
        ("score", {"name": "raps", "a": -1, "b": 1}),
        ("tacit", "not-certifiable"),
        ("tacit", "Calibration"),
    ],
)
def test_a_value_that_no_calibration_has_is_refused(field: str, value: object) -> None:
    with pytest.raises(InvalidDocument):
        Calibration.from_json(json.dumps({**SAVED[Calibration], field: value}))


@pytest.mark.parametrize("kind", list(SAVED))
def test_an_unknown_field_is_refused_by_name(kind: type[Calibration]) -> None:
    with pytest.raises(InvalidDocument, match="surprise"):
        kind.from_json(json.dumps({**SAVED[kind], "surprise": 1}))


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", "3", '"calibration"', b"\xff\xfe", "[" * 100_000, "{} {}"]
)
def test_text_that_is_no_document_is_refused(text: str | bytes) -> None:
    with pytest.raises(InvalidDocument):
        Calibration.from_json(text)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=4,
)


@given(st.sampled_from(EVERY_FIELD), json_values)
def test_a_document_with_any_other_value_is_refused_or_means_what_it_says(
    place: tuple[type[Calibration], str], value: object
) -> None:
    kind, field = place
    document = {**SAVED[kind], field: value}
    try:
        result = kind.from_json(json.dumps(document))
    except InvalidDocument:
        return
    assert json.loads(result.to_json()) == document


def test_a_field_that_occurs_twice_is_refused() -> None:
    text = json.dumps(SAVED[Calibration])
    with pytest.raises(InvalidDocument, match="twice"):
        Calibration.from_json(text[:-1] + ', "threshold": 0.5}')


@pytest.mark.parametrize(
    "change",
    [{"threshold": 5.0}, {"threshold": -0.1}, {"guarantee": "certified", "delta": None}],
    ids=repr,
)
def test_a_result_that_contradicts_itself_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(InvalidDocument):
        Calibration.from_json(json.dumps({**SAVED[Calibration], **change}))
