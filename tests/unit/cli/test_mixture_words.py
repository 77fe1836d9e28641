"""A threshold and a campaign in words say whom the search speaks for, and whom it does not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.conformal import Answers
from tacit.protocol import (
    CampaignState,
    CampaignStatus,
    RoundResult,
    RoundState,
    RoundStatus,
    ScoreCampaign,
    ScoreThreshold,
    SiteStatus,
    Tally,
)
from tacit_client.cli.mixture_words import mixture_warnings, status_warnings
from tacit_client.cli.output import Screen
from tacit_client.cli.round_words import rounds_of
from tacit_client.cli.words import threshold_facts
from tests.support.client_world import OPENS
from tests.support.score_world import score_world

CAMPAIGN: ScoreCampaign = score_world(epsilon=2.0, planned_n=120).campaign
ASKED = (0.5, 0.25, 0.375, 0.3125)
ONES = (29, 3, 25, 24)


def searched(
    answers: tuple[int, ...] = (30, 30, 30, 30), sites: tuple[int, ...] = (2, 2, 2, 2)
) -> tuple[RoundResult, ...]:
    """Four rounds of which so many answers are from so many sites."""
    return tuple(
        RoundResult(threshold=asked, ones=min(ones, count), answers=count, sites=there)
        for asked, ones, count, there in zip(ASKED, ONES, answers, sites, strict=True)
    )


def printed(capsys: pytest.CaptureFixture[str], rounds: tuple[RoundResult, ...]) -> str:
    document = ScoreThreshold.of(CAMPAIGN, 120, rounds, sites=2, as_of=OPENS)
    Screen().show({}, threshold_facts(document, CAMPAIGN))
    return " ".join(capsys.readouterr().out.split())


def test_a_threshold_shows_its_rounds_and_the_one_that_decided(
    capsys: pytest.CaptureFixture[str],
) -> None:
    shown = printed(capsys, searched((30, 30, 30, 6)))
    assert "4 rounds, 96 answers of 120 enrolled records" in shown
    assert "round 2 asked for 0.25: 30 answers from 2 sites" in shown
    assert "decided round 4, with 6 answers from 2 of 2 sites" in shown


def test_a_threshold_of_everybody_has_no_warning(capsys: pytest.CaptureFixture[str]) -> None:
    assert "warning" not in printed(capsys, searched())


def test_a_threshold_warns_where_a_site_missed_the_round_that_decided(
    capsys: pytest.CaptureFixture[str],
) -> None:
    shown = printed(capsys, searched(sites=(2, 2, 2, 1)))
    assert "warning Round 4, which decided, was answered by 1 of the 2 sites" in shown
    assert "warning" not in printed(capsys, searched(sites=(2, 1, 2, 2)))


@pytest.mark.parametrize("answers", [(30, 30, 30, 20), (15, 15, 15, 30)])
def test_a_threshold_warns_where_the_round_that_decided_has_another_share_of_the_answers(
    answers: tuple[int, ...],
) -> None:
    (warning,) = mixture_warnings(searched(answers), 2, CAMPAIGN)
    assert f"has {answers[-1]} answers, where its share" in warning
    assert mixture_warnings(searched((30, 31, 30, 29)), 2, CAMPAIGN) == []


def closed(number: int, one: RoundResult, campaign: ScoreCampaign) -> RoundStatus:
    """A round as a server tells it: with its estimate, not with its ones."""
    estimate = None
    if one.answers:
        machine = campaign.state_machine(campaign.planned_n)
        estimate = float(machine.estimate(Answers(one.ones, one.answers)))
    return RoundStatus(
        round=number,
        state=RoundState.CLOSED,
        threshold=one.threshold,
        low=0.0,
        high=1.0,
        answers=one.answers,
        sites=one.sites,
        coverage=estimate,
        ends_in=0.0,
        extensions=0,
        waiting_sites=0,
        waiting_for=(),
    )


def status(rounds: tuple[RoundResult, ...], campaign: ScoreCampaign) -> CampaignStatus:
    """A campaign of two sites, both of which have answered."""
    tally = Tally(received=60, pending=0, counted=60, dropped=0, late=0)
    return CampaignStatus(
        campaign=campaign.digest,
        title="a campaign",
        owner="owner",
        state=CampaignState.OPEN,
        closed_by=None,
        planned_n=campaign.planned_n,
        enrolled=120,
        records=tally,
        site_count=2,
        sites=tuple(
            SiteStatus(site=name, enrolled=60, left=False, records=tally)
            for name in ("north", "south")
        ),
        opens_in=0.0,
        closes_in=50.0,
        waiting_for=("Everybody.",),
        method="scores",
        rounds=tuple(closed(number, one, campaign) for number, one in enumerate(rounds)),
    )


def test_a_campaign_warns_of_the_same_while_it_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    everybody, fewer = searched()[:3], searched(sites=(2, 2, 1, 1))[:3]
    Screen().show({}, *rounds_of(status(everybody, CAMPAIGN), CAMPAIGN))
    assert "Warning" not in capsys.readouterr().out
    Screen().show({}, *rounds_of(status(fewer, CAMPAIGN), CAMPAIGN))
    shown = " ".join(capsys.readouterr().out.split())
    assert "Warning: Round 3, which decided so far, was answered by 1 of the 2 sites" in shown
    assert rounds_of(status((), CAMPAIGN), CAMPAIGN) == []


def test_two_sites_that_answered_in_different_rounds_are_two() -> None:
    (warning,) = status_warnings(status(searched(sites=(1, 1, 1, 1)), CAMPAIGN), CAMPAIGN)
    assert "1 of the 2 sites" in warning


@given(st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 3000)), min_size=1, max_size=4))
def test_the_round_that_decided_is_known_from_estimates_alone(
    counts: list[tuple[int, int]],
) -> None:
    campaign = score_world(epsilon=2.0, delta=0.05, planned_n=12_000).campaign
    rounds = tuple(
        RoundResult(threshold=0.5, ones=min(pair), answers=max(pair), sites=min(1, max(pair)))
        for pair in counts
    )
    told = status(rounds, campaign).model_copy(update={"state": CampaignState.CLOSED})
    assert mixture_warnings(rounds, 2, campaign) == status_warnings(told, campaign)
