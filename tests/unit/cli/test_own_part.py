"""`tacit status` at a site says what a score campaign needs of it, or why it needs nothing."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tacit.protocol import CampaignState, CampaignStatus, Role, SiteStatus, Tally
from tacit_client import Contributor, Owner, Policy
from tacit_client.api import Api
from tacit_client.cli.commands import status as status_command
from tacit_client.cli.own_part import OwnPart, own_part
from tacit_client.ledger.dealt import RoundHere
from tests.support.aggregator import Aggregator, as_process, migrated, until
from tests.support.cli import tacit
from tests.support.score_scene import create_score_campaign
from tests.unit.cli.test_score_commands import CLOSED, OPEN, scored, status

PLANNED = 40
ENROL = "this site, which has enrolled nothing yet"
TOO_LATE = "nothing of this site: it had enrolled nothing when the first question was asked"
OTHERS = "20 of 40 planned records enrolled"
TO_ANSWER = (
    "This site has enrolled {}: to answer, tacit contribute FILE has to be running when a question"
    " comes, or be run before that round closes."
)
NONE = Tally(received=0, pending=0, counted=0, dropped=0, late=0)


class Campaign:
    """A score campaign at a running server, with a site that has joined."""

    def __init__(self, server: Aggregator, folder: Path) -> None:
        self.server = server
        self.owner = Owner(server.url, server.token(Role.OWNER, "owner"), server.key)
        self.digest = create_score_campaign(self.owner, PLANNED).digest
        self.home = folder / "home"
        assert tacit("join", self._invitation("north"), home=self.home).code == 0

    def _invitation(self, site: str) -> str:
        return self.server.invitation(self.digest, site).to_text()

    def enrol_elsewhere(self, records: int) -> None:
        """Another site enrols; with that the plan may be full, and the first question asked."""
        api = Api(self.server.url, self.server.token(Role.CONTRIBUTOR, "south", self.digest), None)
        with api:
            api.enrol(self.digest, records)
        if records + self.enrolled() >= PLANNED:
            until(lambda: self.owner.status(self.digest).rounds)

    def enrolled(self) -> int:
        """The records of the site, by the owner's word."""
        sites = self.owner.status(self.digest).sites
        return sum(each.enrolled for each in sites if each.site == "north")

    def shown(self) -> dict[str, Any]:
        """What the site's status says."""
        ended = tacit("status", "--json", home=self.home)
        assert ended.code == 0, ended.err
        (shown,) = ended.json["campaigns"]
        assert isinstance(shown, dict)
        return shown

    def waits_for(self) -> str:
        """What it waits for."""
        return str(self.shown()["waits_for"])

    def contribute(self, file: Path) -> None:
        """Enrol, or answer what is asked now."""
        ended = tacit("contribute", file, "--no-wait", home=self.home)
        assert ended.code == 0, ended.err


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Aggregator]:
    with as_process(migrated(tmp_path_factory.mktemp("server"))) as running:
        yield running


@pytest.fixture
def joined(server: Aggregator, tmp_path: Path) -> Iterator[Campaign]:
    made = Campaign(server, tmp_path)
    with made.owner:
        yield made


def test_a_site_that_has_enrolled_nothing_hears_so_and_what_to_run(joined: Campaign) -> None:
    joined.enrol_elsewhere(20)
    assert joined.waits_for().startswith(f"{ENROL}: tacit contribute FILE. {OTHERS}")
    with Contributor.open(None, joined.home, Policy()):  # another process could not contribute now
        assert joined.waits_for().startswith(f"{ENROL}. {OTHERS}")


def test_a_site_that_had_enrolled_nothing_when_the_question_came_hears_that_it_is_too_late(
    joined: Campaign,
) -> None:
    joined.enrol_elsewhere(PLANNED)
    said = joined.waits_for()
    assert said.startswith(f"{TOO_LATE}, and can take no part any more; join another campaign. ")
    assert "Round 1 of 3 waits for 1 of 1 site; it may close in" in said
    assert "tacit contribute" not in said


def test_a_site_that_waits_for_a_question_hears_what_it_takes_to_answer(
    joined: Campaign, tmp_path: Path
) -> None:
    file = scored(tmp_path, 20)
    joined.contribute(file)
    said = joined.waits_for()
    assert said.startswith(OTHERS)
    assert said.endswith(TO_ANSWER.format("20 records"))
    with Contributor.open(None, joined.home, Policy()):  # which may be for another campaign
        assert joined.waits_for().endswith(TO_ANSWER.format("20 records"))
    joined.enrol_elsewhere(20)
    asked = joined.waits_for()
    assert asked.startswith("this site to answer round 1: tacit contribute FILE. Round 1 of 3")
    assert "This site has enrolled" not in asked
    joined.contribute(file)
    answered = joined.waits_for()
    assert answered.startswith("Round 1 of 3 waits for 1 of 2 sites")
    assert answered.endswith(TO_ANSWER.format("20 records"))


def test_the_same_is_said_to_whoever_follows(
    joined: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pause(_: float) -> None:
        if not joined.owner.status(joined.digest).rounds:
            joined.enrol_elsewhere(PLANNED)
        else:
            joined.owner.abandon(joined.digest)

    monkeypatch.setattr(status_command, "time", SimpleNamespace(sleep=pause))
    lines = tacit("status", "--follow", home=joined.home).out.splitlines()
    assert f"Waits for {ENROL}: tacit contribute FILE." in lines
    assert sum(line.startswith(f"Waits for {TOO_LATE}") for line in lines) == 1
    assert sum(line.startswith("Waits for ") for line in lines) == 2
    assert any("abandoned" in line for line in lines)
    assert OwnPart(to_answer="It takes this.").lines() == ["It takes this."]


def test_the_status_of_a_site_without_records_has_the_fields_that_it_always_had(
    joined: Campaign,
) -> None:
    names = {"campaign", "title", "membership", "records", "server", "problem", "waits_for"}
    assert set(joined.shown()) == names


def of(site: SiteStatus, *rounds: Any, **changes: Any) -> CampaignStatus:
    return status(*rounds, sites=(site,), **changes)


SITE = SiteStatus(site="east", enrolled=1, left=False, records=NONE)


def test_a_site_that_has_answered_all_its_records_is_told_nothing_more() -> None:
    dealt = [RoundHere(0, 0.5, 5, 5, 0), RoundHere(1, 0.75, 5, 0, 0)]
    told = of(SITE, CLOSED, OPEN)
    assert own_part(told, "east", dealt, busy=False) == OwnPart()
    ahead = RoundHere(2, None, 5, 0, 0)
    later = own_part(told, "east", [*dealt, ahead], busy=False)
    assert later == OwnPart(to_answer=TO_ANSWER.format("1 record"))


@pytest.mark.parametrize(
    "told",
    [
        of(SITE.model_copy(update={"left": True})),
        of(SITE, CLOSED, OPEN, state=CampaignState.CLOSING),
        status(CLOSED, OPEN, state=CampaignState.CLOSED),
        status(state=CampaignState.ABANDONED),
        status(method="labels"),
    ],
)
def test_nothing_is_asked_of_a_site_that_has_left_or_when_it_is_over_or_of_labels(
    told: CampaignStatus,
) -> None:
    assert own_part(told, "east", [RoundHere(5, None, 5, 0, 0)], busy=False) == OwnPart()


def test_before_a_campaign_opens_a_site_can_enrol_already() -> None:
    early = status(state=CampaignState.WAITING, opens_in=9.0)
    assert own_part(early, "east", [], busy=False).needed == f"{ENROL}: tacit contribute FILE."
