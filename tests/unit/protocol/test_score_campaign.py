"""Score campaigns: one spelling, one digest, and nothing in them that does not make sense."""

import json
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tacit.conformal import BinarySearch, CertifiedSearch, NotCertifiable, Question
from tacit.conformal.corrections import delta_scores
from tacit.errors import InvalidDocument, UpgradeRequired
from tacit.mechanisms import BinaryChannel
from tacit.protocol import Campaign, LabelCampaign, Model, ScoreCampaign
from tacit.scores import APS, HPS, RAPS, Margin, RandomizedAPS, TopK
from tests.unit.protocol.examples import (
    CLOSES,
    DIGEST,
    ENROL_UNTIL,
    OPENS,
    campaign,
    check_refused_or_the_same,
    respelled,
    score_campaign,
)
from tests.unit.protocol.test_campaign import json_values

MODEL = Model(digest=DIGEST, dtype="float32", shape=(3, 28, 28), outputs="logits")
NOMINAL = score_campaign()
CERTIFIED = score_campaign(delta=0.05, model=MODEL)
SMALL = score_campaign(delta=0.05, least=1)


@st.composite
def score_campaigns(draw: st.DrawFn) -> ScoreCampaign:
    with_delta = draw(st.booleans())
    shares = draw(st.lists(st.integers(1, 1000), min_size=1, max_size=64))
    return score_campaign(
        k=draw(st.integers(2, 12)),
        epsilon=draw(st.floats(0.5, 20)),
        alpha=draw(st.floats(0.05, 0.95)),
        delta=draw(st.floats(1e-6, 0.9)) if with_delta else None,
        tolerance=0.0 if with_delta else draw(st.floats(0, 1)),
        planned_n=draw(st.integers(2**30, 2**40)),
        shares=shares,
        round_seconds=draw(st.integers(1, 366 * 86_400)),
        enrol_until=OPENS + timedelta(seconds=draw(st.integers(0, 86_400))),
        score=draw(st.sampled_from([HPS(), APS(), RandomizedAPS(), RAPS(0.5, 1), Margin()])),
        model=draw(st.sampled_from([None, MODEL])),
    )


@given(score_campaigns())
def test_a_score_campaign_survives_the_way_over_the_wire(document: ScoreCampaign) -> None:
    read = Campaign.from_bytes(document.to_bytes())
    assert type(read) is ScoreCampaign
    assert read == document
    assert (read.to_bytes(), read.digest) == (document.to_bytes(), document.digest)
    assert read.channel == document.channel
    assert read.state_machine(document.planned_n) == document.state_machine(document.planned_n)


@given(st.sampled_from(sorted(ScoreCampaign.model_fields)), json_values)
def test_a_field_of_any_other_value_gives_an_error_of_tacit_and_no_other(
    field: str, value: Any
) -> None:
    check_refused_or_the_same(CERTIFIED, field, value)


def part(document: ScoreCampaign, whole: str, **fields: Any) -> dict[str, Any]:
    """A field of the document that is an object, with some of its own replaced."""
    return {whole: document.model_dump(mode="json")[whole] | fields}


@pytest.mark.parametrize(
    ("document", "fields", "sentence"),
    [
        (NOMINAL, {"guarantee": "certified"}, "nominal without δ and certified with δ"),
        (CERTIFIED, {"guarantee": "nominal"}, "nominal without δ and certified with δ"),
        (NOMINAL, {"guarantee": "comparison"}, "guarantee: Input should be"),
        (NOMINAL, {"classes": ["a", "a", "b"]}, "names of the classes must differ"),
        (NOMINAL, {"alpha": 1}, "α must lie"),
        (NOMINAL, {"epsilon": 1.99}, "ε must be that of the realized channel"),
        (NOMINAL, {"closes": "2025-07-01T00:00:00Z"}, "must open before it closes"),
        (
            NOMINAL,
            part(NOMINAL, "rounds", enrol_until="2025-12-31T23:59:59Z"),
            "enrol_until must lie between",
        ),
        (
            NOMINAL,
            part(NOMINAL, "rounds", enrol_until="2026-07-01T00:00:00Z"),
            "enrol_until must lie between",
        ),
        (NOMINAL, {"planned_n": 3}, "at least one record per round"),
        (NOMINAL, part(NOMINAL, "rounds", least=5001), "least must be at most planned_n divided"),
        (NOMINAL, part(NOMINAL, "rounds", least=2**52), "least must be at most planned_n divided"),
        (NOMINAL, part(NOMINAL, "rounds", least=0), "rounds.least: Input should be"),
        (NOMINAL, part(NOMINAL, "rounds", shares=[]), "rounds.shares: Tuple should have"),
        (NOMINAL, part(NOMINAL, "rounds", shares=[1] * 65), "rounds.shares: Tuple should have"),
        (NOMINAL, part(NOMINAL, "rounds", shares=[1, 0]), "rounds.shares.1: Input should be"),
        (NOMINAL, part(NOMINAL, "rounds", shares=[1, 1001]), "rounds.shares.1: Input should be"),
        (NOMINAL, part(NOMINAL, "rounds", shares=[0.5]), "rounds.shares.0: Input should be"),
        (NOMINAL, part(NOMINAL, "rounds", seconds=0), "rounds.seconds: Input should be"),
        (NOMINAL, part(NOMINAL, "rounds", seconds=31_622_401), "rounds.seconds: Input should be"),
        (NOMINAL, part(NOMINAL, "rounds", seconds=60.5), "rounds.seconds: Input should be"),
        (NOMINAL, part(NOMINAL, "search", name="ternary"), "search.name: Input should be"),
        (NOMINAL, part(NOMINAL, "search", tolerance=-0.1), "search.tolerance: Input should be"),
        (NOMINAL, part(NOMINAL, "search", tolerance=1.1), "search.tolerance: Input should be"),
        (CERTIFIED, {"delta": 1}, "δ must lie"),
        (CERTIFIED, part(CERTIFIED, "search", tolerance=0.1), "with δ, tolerance is 0"),
        (SMALL, {"planned_n": 1000}, r"S\* needs 3504 records"),
        (CERTIFIED, part(CERTIFIED, "model", outputs="scores"), "model.outputs: Input should be"),
        (CERTIFIED, part(CERTIFIED, "model", digest="ab"), "model.digest: String should match"),
        (CERTIFIED, part(CERTIFIED, "model", shape=[0]), "every extent of the features"),
        (NOMINAL, part(NOMINAL, "mechanism", name="k-rr"), "mechanism.name: Input should be"),
        (NOMINAL, part(NOMINAL, "mechanism", threshold=str(2**63)), "no information|below"),
        (NOMINAL, {"version": "1.0"}, "version: Input should be '1.1'"),
        (NOMINAL, {"method": "bits"}, "method: is none of those known here"),
        (NOMINAL, {"method": ["scores"]}, "method: is none of those known here"),
        (NOMINAL, {"evidence": {"kind": "probabilities", "model": None}}, r"\(unknown\)"),
        (NOMINAL, {"grid": None}, r"\(unknown\)"),
        (NOMINAL, {"retention": "features-until-folded"}, r"\(unknown\)"),
    ],
    ids=lambda value: str(value)[:60] if isinstance(value, dict) else "",
)
def test_terms_that_make_no_sense_are_refused_in_a_sentence(
    document: ScoreCampaign, fields: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(InvalidDocument, match=sentence):
        Campaign.from_bytes(respelled(document, **fields))


def test_scores_of_which_other_readers_lose_digits_are_refused() -> None:
    assert score_campaign(k=9, score=RAPS(2.0**40, 1)).k == 9
    with pytest.raises(ValidationError, match=r"scores must lie from -\(2\^53"):
        score_campaign(k=9, score=RAPS(2.0**52, 1))


def test_the_last_terms_that_make_sense_are_taken() -> None:
    document = score_campaign(
        planned_n=64, shares=[1000] * 64, least=1, round_seconds=366 * 86_400, tolerance=1.0
    )
    assert document.round_count == 64
    assert score_campaign(enrol_until=OPENS).rounds.enrol_until == OPENS
    assert score_campaign(enrol_until=CLOSES - timedelta(seconds=1)).closes == CLOSES


@pytest.mark.parametrize("shares", [(1,), (1, 1, 1, 1), (1, 1, 2, 4), (3, 1000)])
def test_as_many_records_as_the_refusal_names_are_enough_for_the_smallest_round(
    shares: tuple[int, ...],
) -> None:
    terms: dict[str, Any] = {"delta": 0.05, "shares": shares}
    for planned_n in (4, 300):
        with pytest.raises(ValidationError) as caught:
            score_campaign(planned_n=planned_n, **terms)
        needed = int(str(caught.value).partition("S* needs ")[2].split()[0])
        document = score_campaign(planned_n=needed, **terms)
        margins = [
            delta_scores(needed * share // sum(shares), document.channel.flip, len(shares), 0.05)
            for share in shares
        ]
        assert max(margins) < document.alpha
        with pytest.raises(ValidationError):
            score_campaign(planned_n=needed - 1, **terms)


@pytest.mark.parametrize("field", ["model", "delta", "search", "rounds", "nonce", "mechanism"])
def test_every_field_is_present(field: str) -> None:
    fields = json.loads(NOMINAL.to_bytes())
    del fields[field]
    with pytest.raises(InvalidDocument):
        Campaign.from_bytes(json.dumps(fields, sort_keys=True, separators=(",", ":")).encode())


def test_a_campaign_is_read_by_its_method() -> None:
    assert type(Campaign.from_bytes(NOMINAL.to_bytes())) is ScoreCampaign
    assert type(Campaign.from_bytes(campaign().to_bytes())) is LabelCampaign
    with pytest.raises(InvalidDocument, match="method: Input should be 'labels'"):
        LabelCampaign.from_bytes(NOMINAL.to_bytes())
    with pytest.raises(InvalidDocument, match="method: Input should be 'scores'"):
        ScoreCampaign.from_bytes(campaign().to_bytes())


def test_a_label_campaign_is_of_the_first_version_and_a_score_campaign_of_the_second() -> None:
    assert (campaign().version, NOMINAL.version) == ("1.0", "1.1")
    with pytest.raises(InvalidDocument, match=r"version: Input should be '1\.0'"):
        Campaign.from_bytes(respelled(campaign(), version="1.1"))
    with pytest.raises(UpgradeRequired):
        Campaign.from_bytes(respelled(NOMINAL, version="1.2", method="something new"))


def test_a_score_campaign_names_the_channel_that_is_realized() -> None:
    document = score_campaign(epsilon=1.234567)
    assert document.channel == BinaryChannel.for_epsilon(1.234567)
    assert document.epsilon == document.channel.epsilon <= 1.234567
    assert document.mechanism.name == "binary-rr"


def test_least_is_by_default_half_of_what_the_smallest_round_expects() -> None:
    assert score_campaign(planned_n=8000, shares=(1, 2, 2, 3)).rounds.least == 500
    assert score_campaign(planned_n=4, shares=(1, 1, 1, 1)).rounds.least == 1


def test_the_search_is_the_thesis_one_without_delta_and_the_certified_one_with_it() -> None:
    plain = score_campaign(tolerance=0.25).state_machine(900)
    assert isinstance(plain, BinarySearch)
    assert (plain.n, plain.rounds, plain.tolerance, plain.alpha) == (900, 4, 0.25, 0.1)
    certified = CERTIFIED.state_machine(20_000)
    assert isinstance(certified, CertifiedSearch)
    assert (certified.delta, certified.channel) == (0.05, CERTIFIED.channel)
    assert isinstance(certified.start(), Question)
    assert isinstance(CERTIFIED.state_machine(4).start(), NotCertifiable)


def test_the_first_question_is_the_middle_of_the_scores_range() -> None:
    first = score_campaign(k=9, score=TopK()).state_machine(100).start()
    assert isinstance(first, Question)
    assert (first.threshold, first.low, first.high) == (5.0, 1.0, 9.0)


def test_a_date_of_a_score_campaign_is_a_whole_second_of_utc() -> None:
    with pytest.raises(ValidationError, match="whole second"):
        score_campaign(enrol_until=ENROL_UNTIL + timedelta(microseconds=1))


def test_a_round_takes_no_more_answers_than_the_plan_and_in_proportion_if_fewer_enrol() -> None:
    document = score_campaign(planned_n=1000, shares=(1,) * 4, least=100)
    enrolled = (2000, 1000, 999, 500, 5, 1)
    assert [document.least(n) for n in enrolled] == [100, 100, 100, 50, 1, 1]
