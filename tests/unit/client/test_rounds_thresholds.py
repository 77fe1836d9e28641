"""A threshold of a score campaign is believed if its search, replayed, leads to it."""

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.conformal import Answers, Question
from tacit.errors import TacitError, WrongDigest, WrongKey
from tacit.protocol import (
    Certificate,
    HostileContributors,
    RoundResult,
    ScoreCampaign,
    ScoreThreshold,
    Threshold,
    replay,
)
from tacit_client import VerifiedThreshold, verify_threshold
from tacit_client.errors import NotEnoughRecords, TermsDiffer
from tacit_client.thresholds import ThresholdFile
from tests.support.client_world import OPENS
from tests.support.client_world import world as label_world
from tests.support.score_world import ScoreWorld, score_world

N = 8000
PER_ROUND = 2000


def searched(campaign: ScoreCampaign, quantile: float = 0.6) -> tuple[RoundResult, ...]:
    """The rounds of a search in which all scores are the same, and every coin fell as expected."""
    search, flip = campaign.state_machine(N), float(campaign.channel.flip)
    step: Any = search.start()
    rounds = []
    while isinstance(step, Question):
        share = 1 - flip if quantile <= step.threshold else flip
        ones = round(PER_ROUND * share)
        rounds.append(RoundResult(threshold=step.threshold, ones=ones, answers=PER_ROUND, sites=2))
        step = search.advance(step, Answers(ones, PER_ROUND))
    return tuple(rounds)


def document(world: ScoreWorld, rounds: tuple[RoundResult, ...], n: int = N) -> ScoreThreshold:
    sites = max((one.sites for one in rounds), default=0)
    return ScoreThreshold.of(world.campaign, n, rounds, sites=sites, as_of=OPENS)


def file_of(world: ScoreWorld, found: Threshold) -> ThresholdFile:
    return ThresholdFile(threshold=world.key.sign(found), campaign=world.signed)


def verified(
    world: ScoreWorld, found: Threshold, now: datetime = OPENS + timedelta(days=9)
) -> VerifiedThreshold:
    return VerifiedThreshold.verify(
        file_of(world, found), key=world.key.fingerprint, clock=now.timestamp
    )


@pytest.fixture(params=[None, 0.05], ids=["nominal", "certified"])
def world(request: pytest.FixtureRequest) -> ScoreWorld:
    return score_world(epsilon=2.0, delta=request.param, planned_n=N)


def test_a_threshold_that_its_rounds_lead_to_is_believed_and_used(
    world: ScoreWorld, tmp_path: Path
) -> None:
    rounds = searched(world.campaign)
    found = verified(world, document(world, rounds))
    assert found.calibration == replay(world.campaign, N, rounds)
    assert 0.1 <= found.calibration.threshold < 0.9
    assert found.sets(np.array([[0.9, 0.05, 0.05]])).tolist() == [[True, False, False]]
    found.save(tmp_path / "threshold.json")
    assert verify_threshold(tmp_path / "threshold.json", key=world.key.fingerprint) == found
    with pytest.raises(WrongKey):
        verify_threshold(tmp_path / "threshold.json", key="0" * 64)


def changed(found: ScoreThreshold, number: int, **changes: object) -> tuple[RoundResult, ...]:
    rounds = list(found.rounds)
    rounds[number] = rounds[number].model_copy(update=changes)
    return tuple(rounds)


LIES: dict[str, Callable[[ScoreThreshold], dict[str, object]]] = {
    "another threshold": lambda found: {"result": found.result | {"threshold": 0.99}},
    "another n": lambda found: {"result": found.result | {"n": N + 1}},
    "another coverage": lambda found: {"result": found.result | {"coverage": 0.999}},
    "other answers": lambda found: {"rounds": changed(found, 3, answers=PER_ROUND + 1)},
    "other questions": lambda found: {"rounds": changed(found, 1, threshold=0.26)},
    "a round left out": lambda found: {"rounds": found.rounds[:-1]},
    "a round too many": lambda found: {"rounds": (*found.rounds, found.rounds[-1])},
    "too few asked": lambda _: {"asked_n": 0},
    "another α": lambda found: {"result": found.result | {"alpha": 0.2}},
    "another score": lambda found: {"result": found.result | {"score": {"name": "aps"}}},
    "another method": lambda found: {"result": found.result | {"method": "ldp-cp-l"}},
    "other classes": lambda _: {"classes": ("c0", "c2", "c1")},
    "no harm": lambda _: {"hostile": HostileContributors(shift_per_record=0.0)},
    "a little less harm": lambda found: {
        "hostile": HostileContributors(
            shift_per_record=found.hostile.shift_per_record * (1 - 1e-12)
        )
    },
    "more answers than asked": lambda _: {"asked_n": N - 1},
    "sites in no round": lambda _: {"sites": 10**9},
    "fewer sites than in a round": lambda _: {"sites": 1},
    "no sites": lambda _: {"sites": 0},
    "answers from no site": lambda found: {"rounds": changed(found, 2, sites=0)},
    "a round of more sites than there are": lambda found: {"rounds": changed(found, 2, sites=3)},
    "more sites than answers": lambda found: {
        "rounds": changed(found, 2, sites=PER_ROUND + 1),
        "sites": PER_ROUND + 1,
    },
    "another unit of privacy": lambda found: {
        "privacy": found.privacy.model_copy(update={"unit": "a person, whatever they sent"})
    },
    "no conditions of privacy": lambda found: {
        "privacy": found.privacy.model_copy(update={"conditions": ()})
    },
    "older than its campaign": lambda _: {"as_of": OPENS - timedelta(days=10_000)},
    "of a time to come": lambda _: {"as_of": OPENS + timedelta(days=10)},
    "another population": lambda found: {
        "result": found.result | {"assumptions": ["It covers everybody."]}
    },
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES.keys())
def test_a_result_that_its_rounds_do_not_lead_to_is_refused_even_when_signed(
    world: ScoreWorld, lie: Callable[[ScoreThreshold], dict[str, object]]
) -> None:
    found = document(world, searched(world.campaign))
    told = found.model_copy(update=lie(found))
    with pytest.raises(TermsDiffer):
        verified(world, told)


def test_a_certificate_that_is_missing_or_invented_is_refused(world: ScoreWorld) -> None:
    found = document(world, searched(world.campaign))
    other = None
    if found.certificate is None:
        other = Certificate(name="hoeffding-union", valid="at-close", statement="It covers.")
    with pytest.raises(TacitError):
        verified(world, found.model_copy(update={"certificate": other}))


def test_a_certificate_that_says_more_is_refused() -> None:
    world = score_world(epsilon=2.0, delta=0.05, planned_n=N)
    found = document(world, searched(world.campaign))
    more = Certificate(
        name="hoeffding-union",
        valid="at-close",
        statement="Every record is covered, with certainty.",
    )
    with pytest.raises(TermsDiffer, match="certificate"):
        verified(world, found.model_copy(update={"certificate": more}))


def test_a_threshold_of_which_nobody_answered_a_round_is_refused() -> None:
    world = score_world(epsilon=2.0, planned_n=N)
    unanswered = RoundResult(threshold=0.5, ones=0, answers=0, sites=0)
    for rounds in ((), (unanswered,), (unanswered,) * 4):
        with pytest.raises(TermsDiffer, match="Nobody answered"):
            verified(world, document(world, rounds))


def test_a_clock_that_is_a_little_off_is_no_reason_to_refuse(world: ScoreWorld) -> None:
    found = document(world, searched(world.campaign))
    verified(world, found, now=OPENS - timedelta(minutes=4))
    with pytest.raises(TermsDiffer, match="clock"):
        verified(world, found, now=OPENS - timedelta(minutes=6))


def test_a_nominal_search_does_not_pass_for_a_certified_one() -> None:
    nominal, certified = (
        score_world(epsilon=2.0, planned_n=N),
        score_world(epsilon=2.0, delta=0.4, planned_n=N),
    )
    found = document(nominal, searched(nominal.campaign))
    passed_off = found.model_copy(update={"campaign": certified.campaign.digest})
    with pytest.raises(TermsDiffer, match="kind"):
        verified(certified, passed_off)


def test_too_few_enrolled_records_are_a_result_that_nobody_answered_for() -> None:
    world = score_world(epsilon=2.0, delta=0.4, planned_n=N)
    found = verified(world, document(world, (), n=4))
    assert found.document.sites == 0
    with pytest.raises(NotEnoughRecords, match="without δ") as caught:
        found.sets(np.full((1, 3), 1 / 3))
    assert caught.value.needed > 4


def test_a_threshold_of_another_campaign_or_method_is_refused(world: ScoreWorld) -> None:
    other = score_world(epsilon=2.0, delta=world.campaign.delta, planned_n=N)
    found = document(world, searched(world.campaign))
    mixed = ThresholdFile(threshold=world.key.sign(found), campaign=world.key.sign(other.campaign))
    with pytest.raises(WrongDigest):
        VerifiedThreshold.verify(mixed, key=world.key.fingerprint)
    labels = label_world(key=world.key, opens=OPENS + timedelta(days=1))
    passed_off = found.model_copy(update={"campaign": labels.campaign.digest})
    file = ThresholdFile(threshold=world.key.sign(passed_off), campaign=labels.signed)
    with pytest.raises(TermsDiffer, match="another method"):
        VerifiedThreshold.verify(file, key=world.key.fingerprint)
