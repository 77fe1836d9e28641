"""Owners killed with SIGKILL at every request: the same command again completes it."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tacit.protocol import CampaignState, ClosedBy, LabelCampaign, Opened, Role
from tacit_client import Owner, VerifiedThreshold
from tests.e2e.kill_points import Story, killed_at
from tests.support.aggregator import until
from tests.support.exactly_once import Oracle, sketch_of
from tests.support.killable import Kill
from tests.support.scene import KILLED, Service, Site, create_campaign, finished, run

N = 8


@dataclass(frozen=True)
class OwnersDesk:
    """An owner who runs `tacit`, with a name that no other test uses."""

    service: Service
    home: Path
    token: str

    def tacit(
        self, *arguments: str, kill: Kill | None = None
    ) -> "subprocess.CompletedProcess[str]":
        options = ("--url", self.service.url, "--key", self.service.key, "--home", str(self.home))
        variables = {"TACIT_TOKEN": self.token}
        return run("tacit_client.cli", *arguments, *options, kill=kill, variables=variables)

    def here(self) -> Owner:
        return Owner(self.service.url, self.token, self.service.key)


@pytest.fixture
def desk(running: Service, tmp_path: Path) -> OwnersDesk:
    token = running.aggregator.token(Role.OWNER, str(tmp_path)[-40:])
    return OwnersDesk(running, tmp_path / "owner", token)


@pytest.fixture
def campaign(desk: OwnersDesk) -> Opened[LabelCampaign]:
    with desk.here() as owner:
        return create_campaign(owner, N)


@pytest.fixture
def site(running: Service, campaign: Opened[LabelCampaign], tmp_path: Path) -> Site:
    made = Site(tmp_path / "site", running.aggregator.invitation(campaign.digest, "site"))
    made.join_here()
    return made


@killed_at(Story.CREATES)
def test_an_owner_killed_while_creating_a_campaign_leaves_a_whole_one_or_none(
    desk: OwnersDesk, kill: Kill
) -> None:
    terms = ("--title", "t", "--epsilon", "1", "--planned-n", "9", "--closes", "1d", "--k", "2")
    assert desk.tacit("campaign", "create", *terms, kill=kill).returncode == KILLED
    published = (kill.name, kill.moment) == ("create campaign", "after")
    with desk.here() as owner:
        assert len(owner.campaigns()) == published
        finished(lambda: desk.tacit("campaign", "create", *terms), most=1)
        assert len(owner.campaigns()) == published + 1
        for status in owner.campaigns():
            assert owner.campaign(status.campaign).document.title == "t"


@killed_at(Story.CLOSES)
def test_an_owner_killed_while_closing_a_campaign_has_closed_it_when_asked_again(
    desk: OwnersDesk, campaign: Opened[LabelCampaign], site: Site, kill: Kill
) -> None:
    site.contribute_here(0, N // 2)
    close = ("campaign", "close", campaign.digest, "--yes")
    assert desk.tacit(*close, kill=kill).returncode == KILLED
    finished(lambda: desk.tacit(*close), most=1)
    with desk.here() as owner:
        until(lambda: owner.status(campaign.digest).state is CampaignState.CLOSED)
        assert owner.status(campaign.digest).closed_by is ClosedBy.HAND
    oracle = Oracle(desk.service.database, campaign.digest, campaign.document)
    oracle.check_site("site", site.markers(N // 2), site.bodies())
    oracle.check_totals()


@killed_at(Story.ABANDONS)
def test_an_owner_killed_while_abandoning_a_campaign_has_abandoned_it_when_asked_again(
    desk: OwnersDesk, campaign: Opened[LabelCampaign], site: Site, kill: Kill
) -> None:
    site.contribute_here(0, N // 2)
    abandon = ("campaign", "abandon", campaign.digest, "--yes")
    assert desk.tacit(*abandon, kill=kill).returncode == KILLED
    finished(lambda: desk.tacit(*abandon), most=1)
    with desk.here() as owner:
        status = owner.status(campaign.digest)
    assert status.state is CampaignState.ABANDONED
    tally = status.records
    assert tally.received == N // 2 == tally.pending + tally.counted + tally.dropped
    assert tally.pending == 0


@killed_at(Story.FETCHES)
def test_an_owner_killed_while_fetching_a_threshold_gets_the_same_one_when_asked_again(
    desk: OwnersDesk, campaign: Opened[LabelCampaign], site: Site, kill: Kill, tmp_path: Path
) -> None:
    site.contribute_here(0, N)
    file = tmp_path / "threshold.json"
    fetch = ("threshold", "get", campaign.digest, "--wait", "30", "-o", str(file))
    with desk.here() as owner:
        until(lambda: owner.status(campaign.digest).state is CampaignState.CLOSED)
    assert desk.tacit(*fetch, kill=kill).returncode == KILLED
    assert not file.exists()
    finished(lambda: desk.tacit(*fetch), most=1)
    verified = VerifiedThreshold.load(file, key=desk.service.key, campaign=campaign.digest)
    document = campaign.document
    expected = sketch_of(document, site.bodies()).calibrate(document.channel, document.alpha)
    assert verified.outcome == expected
