"""Thresholds of score campaigns: whoever has the campaign can replay them, and finds a change."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tacit.conformal import Answers, Calibration, NotCertifiable, Question, run
from tacit.errors import InvalidDocument, TacitError
from tacit.protocol import (
    Certificate,
    RoundResult,
    ScoreCampaign,
    ScoreThreshold,
    Threshold,
    ThresholdKind,
    replay,
)
from tests.unit.protocol.examples import (
    CERTIFICATE,
    OPENS,
    campaign,
    respelled,
    score_campaign,
    score_threshold,
    threshold,
)
from tests.vectors import check

NOMINAL = score_campaign()
CERTIFIED = score_campaign(delta=0.05)


def answering(*shares: float, count: int = 5000) -> Any:
    """Answers of which these shares are ones, round after round."""
    return lambda question: Answers(int(shares[question.round] * count), count)


def of(terms: ScoreCampaign, *shares: float, **fields: Any) -> ScoreThreshold:
    return score_threshold(terms, answering(*shares, **fields))


FOUND = of(NOMINAL, 0.7, 0.9, 0.8, 0.9)
PROVED = of(CERTIFIED, 0.5, 0.95, 0.7, 0.9)
SHORT = of(CERTIFIED, 0.5, 0.5, 0.5, 0.5, count=10)

DOCUMENTS = pytest.mark.parametrize(
    ("document", "terms"),
    [(FOUND, NOMINAL), (PROVED, CERTIFIED), (SHORT, CERTIFIED)],
    ids=["nominal", "certified", "too few"],
)


@DOCUMENTS
def test_a_score_threshold_survives_the_way_over_the_wire(
    document: ScoreThreshold, terms: ScoreCampaign
) -> None:
    read = Threshold.from_bytes(document.to_bytes())
    assert type(read) is ScoreThreshold
    assert read == document
    assert read.outcome() == document.outcome()
    read.check_replay(terms)


def test_a_threshold_is_read_by_its_version() -> None:
    labels = threshold(campaign())
    assert type(Threshold.from_bytes(labels.to_bytes())) is type(labels)
    assert b'"version":"1.0"' in labels.to_bytes()
    assert b"rounds" not in labels.to_bytes()
    with pytest.raises(InvalidDocument, match="asked_n: Field required"):
        Threshold.from_bytes(respelled(labels, version="1.1"))
    with pytest.raises(InvalidDocument, match=r"\(unknown\)"):
        Threshold.from_bytes(respelled(FOUND, version="1.0"))


def test_the_outcomes_of_the_examples_are_of_three_kinds() -> None:
    found, proved, short = (document.outcome() for document in (FOUND, PROVED, SHORT))
    assert isinstance(found, Calibration)
    assert (found.method, found.n, found.delta) == ("ldp-cp-s", 20_000, None)
    assert isinstance(proved, Calibration)
    assert (proved.method, proved.guarantee, proved.delta) == ("ldp-cp-s*", "certified", 0.05)
    assert isinstance(short, NotCertifiable)
    assert short.n == 40


MOST_ANSWERS = 3000
counts = st.integers(0, MOST_ANSWERS).flatmap(
    lambda count: st.tuples(st.integers(0, count), st.just(count)).map(lambda pair: Answers(*pair))
)


@st.composite
def searches(draw: st.DrawFn) -> tuple[ScoreCampaign, int, list[Answers]]:
    """A campaign, the records that were enrolled, and what each of its rounds is answered."""
    with_delta = draw(st.booleans())
    rounds = draw(st.integers(1, 8))
    terms = score_campaign(
        epsilon=draw(st.floats(0.5, 6)),
        shares=(1,) * rounds,
        planned_n=10**6,
        delta=0.05 if with_delta else None,
        tolerance=0.0 if with_delta else draw(st.sampled_from([0.0, 0.05, 0.5])),
    )
    answers = draw(st.lists(counts, min_size=rounds, max_size=rounds))
    return terms, draw(st.integers(rounds, 10**6)), answers


def played(terms: ScoreCampaign, n: int, answers: list[Answers]) -> tuple[Any, list[RoundResult]]:
    """The library's own search on these answers, and the rounds that it was asked in."""
    rounds: list[RoundResult] = []

    def ask(question: Question) -> Answers:
        given = answers[question.round]
        rounds.append(
            RoundResult(threshold=question.threshold, ones=given.ones, answers=given.count, sites=3)
        )
        return given

    return run(terms.state_machine(n), ask), rounds


@given(searches())
def test_a_replay_is_the_librarys_search_on_the_same_answers(
    search: tuple[ScoreCampaign, int, list[Answers]],
) -> None:
    terms, n, answers = search
    expected, rounds = played(terms, n, answers)
    assert replay(terms, n, tuple(rounds)) == expected


@given(searches())
def test_a_reader_that_shares_no_code_finds_the_same_result(
    search: tuple[ScoreCampaign, int, list[Answers]],
) -> None:
    terms, n, answers = search
    expected, rounds = played(terms, n, answers)
    fields, stated = json.loads(terms.to_bytes()), [each.model_dump() for each in rounds]
    found = check.result_of(fields, n, stated)
    assert found.items() <= Threshold.fields_of(expected).items()
    document = ScoreThreshold.of(terms, n, tuple(rounds), sites=3, as_of=OPENS)
    written = json.loads(document.to_bytes())
    said = written | {"assumptions": document.result.get("assumptions")}
    assert check.statements(written, fields).items() <= said.items()


@given(searches(), st.data())
def test_rounds_that_were_not_asked_count_as_rounds_that_nobody_answered(
    search: tuple[ScoreCampaign, int, list[Answers]], data: st.DataObject
) -> None:
    terms, n, answers = search
    cut = data.draw(st.integers(0, terms.round_count))
    expected, rounds = played(terms, n, answers[:cut] + [Answers(0, 0)] * len(answers[cut:]))
    assert replay(terms, n, tuple(rounds[:cut])) == expected


@given(searches(), st.data())
def test_a_question_that_the_search_would_not_ask_is_refused(
    search: tuple[ScoreCampaign, int, list[Answers]], data: st.DataObject
) -> None:
    terms, n, answers = search
    _, rounds = played(terms, n, answers)
    strange = RoundResult(threshold=1 / 3, ones=1, answers=2, sites=1)
    at = data.draw(st.integers(0, len(rounds)))
    for changed in ([*rounds[:at], strange, *rounds[at:]], [*rounds[:at], strange]):
        with pytest.raises(InvalidDocument, match="not the questions"):
            replay(terms, n, tuple(changed))


@given(searches(), st.data())
def test_a_count_that_was_changed_is_refused_where_it_leads_elsewhere(
    search: tuple[ScoreCampaign, int, list[Answers]], data: st.DataObject
) -> None:
    terms, n, answers = search
    n += 4 * MOST_ANSWERS * len(answers)  # so that no other count is more than were asked
    document = score_threshold(terms, lambda question: answers[question.round], asked_n=n)
    if not document.rounds:
        return
    at = data.draw(st.integers(0, len(document.rounds) - 1))
    given = data.draw(counts)
    sites = min(2, given.count)
    changed = document.rounds[at].model_copy(
        update={"ones": given.ones, "answers": given.count, "sites": sites}
    )
    rounds = (*document.rounds[:at], changed, *document.rounds[at + 1 :])
    others = [Answers(each.ones, each.answers) for each in rounds]
    others += answers[len(others) :]
    outcome, asked = played(terms, n, others)
    leads_elsewhere = Threshold.fields_of(outcome) != document.result or tuple(
        r.threshold for r in asked
    ) != tuple(r.threshold for r in rounds)
    nobody = isinstance(outcome, Calibration) and not outcome.n
    lying = document.model_copy(update={"rounds": rounds})
    if leads_elsewhere or nobody:
        with pytest.raises(InvalidDocument):
            lying.check_replay(terms)
    else:
        lying.check_replay(terms)


CHANGES: list[dict[str, Any]] = [
    {"threshold": 0.75},
    {"n": 19_999},
    {"coverage": 0.9},
    {"alpha": 0.2},
    {"needed": 41},
    {"assumptions": []},
    {"notes": ["It is certified."]},
    {"method": "ldp-cp-l"},
    {"score": {"name": "aps"}},
]


@DOCUMENTS
def test_a_result_that_was_changed_is_refused(
    document: ScoreThreshold, terms: ScoreCampaign
) -> None:
    possible = [change for change in CHANGES if change.keys() <= document.result.keys()]
    assert len(possible) >= 4
    for change in possible:
        lying = Threshold.from_bytes(respelled(document, result=document.result | change))
        assert isinstance(lying, ScoreThreshold)
        with pytest.raises(InvalidDocument, match="not what its rounds lead to"):
            lying.check_replay(terms)


@DOCUMENTS
def test_a_round_that_was_left_out_or_added_is_refused(
    document: ScoreThreshold, terms: ScoreCampaign
) -> None:
    for rounds in (
        document.rounds[:-1],
        document.rounds[1:],
        document.rounds[::-1],
        (*document.rounds, document.rounds[-1]),
        (),
    ):
        with pytest.raises(InvalidDocument):
            document.model_copy(update={"rounds": rounds}).check_replay(terms)


def test_a_threshold_of_another_campaign_is_refused_though_its_terms_are_the_same() -> None:
    other = score_campaign()
    assert other.state_machine(1000) == NOMINAL.state_machine(1000)
    with pytest.raises(InvalidDocument, match="another campaign"):
        FOUND.check_replay(other)
    with pytest.raises(InvalidDocument, match="another campaign"):
        FOUND.model_copy(update={"classes": ("a", "b", "c")}).check_replay(NOMINAL)


@pytest.mark.parametrize("asked_n", [0, 3])
def test_a_search_that_could_not_begin_is_refused(asked_n: int) -> None:
    with pytest.raises(InvalidDocument, match="so few records"):
        FOUND.model_copy(update={"asked_n": asked_n}).check_replay(NOMINAL)


def test_a_campaign_that_enrolled_too_few_to_certify_replays_without_any_round() -> None:
    document = score_threshold(CERTIFIED, answering(), asked_n=900)
    assert document.rounds == ()
    assert isinstance(document.outcome(), NotCertifiable)
    document.check_replay(CERTIFIED)
    with pytest.raises(InvalidDocument, match="not what"):
        document.model_copy(update={"asked_n": 901}).check_replay(CERTIFIED)


def test_a_certified_result_has_a_certificate_and_no_other_has() -> None:
    for document, certificate in ((PROVED, None), (FOUND, CERTIFICATE), (SHORT, CERTIFICATE)):
        with pytest.raises(ValidationError, match="and no other has"):
            ScoreThreshold.model_validate(document.model_dump() | {"certificate": certificate})
    with pytest.raises(InvalidDocument, match="certificate"):
        Threshold.from_bytes(
            respelled(threshold(campaign()), certificate=CERTIFICATE.model_dump(mode="json"))
        )


@pytest.mark.parametrize(
    "fields",
    [{"name": "bootstrap"}, {"valid": "always"}, {"statement": 1}, {"more": 1}],
    ids=str,
)
def test_a_certificate_says_which_proof_it_is_and_when_it_holds(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Certificate.model_validate(CERTIFICATE.model_dump() | fields)


@pytest.mark.parametrize(
    "fields",
    [
        {"which": "starred"},
        {"final": False},
        {"asked_n": -1},
        {"asked_n": 0.5},
        {"rounds": None},
        {"rounds": [FOUND.rounds[0].model_dump()] * 65},
        {"rounds": [FOUND.rounds[0].model_dump() | {"ones": 5001}]},
        {"rounds": [FOUND.rounds[0].model_dump() | {"ones": -1}]},
        {"rounds": [FOUND.rounds[0].model_dump() | {"threshold": 1e300}]},
        {"rounds": [FOUND.rounds[0].model_dump() | {"site": "north"}]},
        {"campaign": "ab"},
        {"privacy": {"epsilon": 1, "unit": "a record", "conditions": []}},
        {"unknown": 1},
    ],
    ids=lambda fields: str(fields)[:60],
)
def test_a_score_threshold_with_a_wrong_field_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(TacitError, match="not a valid"):
        Threshold.from_bytes(respelled(FOUND, **fields))


def test_a_nominal_result_cannot_stand_under_starred() -> None:
    with pytest.raises(ValidationError, match="nominal result has no δ"):
        ScoreThreshold.model_validate(FOUND.model_dump() | {"which": ThresholdKind.STARRED})
