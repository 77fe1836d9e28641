"""The aggregator killed with SIGKILL in the middle of rounds: it comes back, and goes on."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from tacit.protocol import CampaignState, ClosedBy, Opened, RoundState, ScoreCampaign
from tacit_client import Owner
from tests.e2e.kill_points import Story, killed_at
from tests.support.aggregator import until
from tests.support.killable import MOMENTS, Kill
from tests.support.scene import Service, service
from tests.support.score_oracle import ScoreOracle
from tests.support.score_scene import (
    ScoreSite,
    answering_here,
    create_score_campaign,
    score_sites,
    some_scores,
)

EACH = 8
N = 2 * EACH
ROUNDS = 2
SITES = ("north", "south")


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Service]:
    with service(tmp_path / "aggregator") as made:
        yield made


def prepared(
    stage: Service, owner: Owner, folder: Path, **terms: object
) -> tuple[Opened[ScoreCampaign], list[ScoreSite]]:
    """A campaign that two sites have joined."""
    campaign = create_score_campaign(owner, N, **{"rounds": ROUNDS, **terms})
    return campaign, score_sites(
        stage.aggregator, campaign, folder, some_scores(SITES, EACH), per_upload=2
    )


def check_all_counted(
    stage: Service, owner: Owner, campaign: Opened[ScoreCampaign], sites: list[ScoreSite]
) -> None:
    """Everything that was drawn counts, once, and the result is the library's."""
    oracle = ScoreOracle(stage.database_url, campaign, sites)
    oracle.check(owner)
    assert sum(taken.records for taken in oracle.counted) == N


def rounds_are_served(stage: Service, kill: Kill, folder: Path) -> None:
    """Two sites answer all rounds of an aggregator that is killed meanwhile."""
    stage.start(kill)
    with stage.owner() as owner:
        campaign, sites = prepared(stage, owner, folder)
        with stage.revived(), answering_here(sites):
            pass
        check_all_counted(stage, owner, campaign, sites)
        assert owner.status(campaign.digest).closed_by is ClosedBy.PLAN


@killed_at(Story.SERVES_ROUNDS)
def test_an_aggregator_killed_while_it_serves_rounds_counts_each_answer_once(
    stage: Service, tmp_path: Path, kill: Kill
) -> None:
    rounds_are_served(stage, kill, tmp_path)


ON_POSTGRESQL = [
    pytest.param(Kill("database", name, moment, occurrence), marks=marks)
    for name, occurrence, marks in (
        ("close round", 2, ()),
        ("store uploads", 2, pytest.mark.long),
        ("mark round done", 2, pytest.mark.long),
        ("open first round", 1, pytest.mark.long),
    )
    for moment in MOMENTS
]


@pytest.mark.parametrize("kill", ON_POSTGRESQL, ids=str)
def test_an_aggregator_on_postgresql_killed_while_it_serves_rounds_counts_each_answer_once(
    tmp_path: Path, kill: Kill
) -> None:
    with service(tmp_path / "aggregator", backend="postgresql") as stage:
        rounds_are_served(stage, kill, tmp_path)


def waiting_sites(owner: Owner, campaign: Opened[ScoreCampaign]) -> int | None:
    """How many sites the first round waits for, once it is open."""
    rounds = owner.status(campaign.digest).rounds
    return rounds[0].waiting_sites if rounds else None


@contextmanager
def half_answered(
    stage: Service, owner: Owner, folder: Path, **terms: object
) -> Iterator[tuple[Opened[ScoreCampaign], list[ScoreSite]]]:
    """A first round that one of two sites has answered, and waits for the next one."""
    campaign, sites = prepared(stage, owner, folder, **terms)
    sites[1].answer_here(wait=False)  # enrols; nothing is asked yet
    with answering_here(sites[:1]):
        until(lambda: waiting_sites(owner, campaign) == 1)
        yield campaign, sites


@killed_at(Story.EXTENDS_A_ROUND)
def test_an_aggregator_killed_while_it_extends_a_round_waits_on_for_the_missing_site(
    stage: Service, tmp_path: Path, kill: Kill
) -> None:
    stage.start(kill)
    second = timedelta(seconds=1)
    with stage.owner() as owner:
        with half_answered(stage, owner, tmp_path, round_for=second, least=EACH) as (
            campaign,
            sites,
        ):
            with stage.revived():
                until(lambda: owner.status(campaign.digest).rounds[0].extensions)
            with answering_here(sites[1:]):
                pass
        check_all_counted(stage, owner, campaign, sites)


@killed_at(Story.ENDS_A_SEARCH)
def test_an_aggregator_killed_while_an_owner_closes_a_search_counts_what_it_took(
    stage: Service, tmp_path: Path, kill: Kill
) -> None:
    stage.start(kill)
    with stage.owner() as owner:
        with half_answered(stage, owner, tmp_path) as (campaign, sites), stage.revived():
            owner.close(campaign.digest)
        oracle = ScoreOracle(stage.database_url, campaign, sites)
        oracle.check(owner)
        assert owner.status(campaign.digest).closed_by is ClosedBy.HAND
        assert sum(taken.records for taken in oracle.counted) == EACH // ROUNDS


@pytest.mark.long
@killed_at(Story.DROPS_A_ROUND)
def test_an_aggregator_killed_while_an_owner_abandons_a_search_drops_its_open_round(
    stage: Service, tmp_path: Path, kill: Kill
) -> None:
    stage.start(kill)
    with stage.owner() as owner:
        with half_answered(stage, owner, tmp_path) as (campaign, _), stage.revived():
            owner.abandon(campaign.digest)
        status = owner.status(campaign.digest)
    assert status.state is CampaignState.ABANDONED
    tally, dropped = status.records, EACH // ROUNDS
    assert (tally.received, tally.dropped, tally.pending) == (dropped, dropped, 0)
    assert [one.state for one in status.rounds] == [RoundState.CLOSED]
