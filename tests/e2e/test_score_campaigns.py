"""Score campaigns with real sites: slow, leaving, crashing, late; every answer is accounted for."""

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest

from tacit.conformal import Calibration, Guarantee
from tacit.protocol import ClosedBy, Opened, ScoreCampaign, SiteStatus
from tacit_client import Owner
from tests.support.aggregator import PATIENCE, until
from tests.support.killable import Kill
from tests.support.scene import KILLED, Service, finished, service
from tests.support.score_campaigns import pass_deadline
from tests.support.score_oracle import ScoreOracle
from tests.support.score_scene import (
    ScoreSite,
    create_score_campaign,
    score_sites,
    slow_lines,
    some_scores,
)

EACH = 48
ROUNDS = 4
WAITS = timedelta(minutes=30)
"""So long a round waits for a site that is away, unless the test has its time be over."""
SITES = ("fast", "slow", "leaving", "crashing", "returning")
DELAYS = {"slow": 0.05, "leaving": 0.02}
N = EACH * len(SITES)
CRASH = Kill("ledger", "draw answers", "after", 2)
VANISH = Kill("ledger", "draw answers", "after", 3)
CERTIFIED = {"delta": 0.5, "epsilon": 4.0}


@dataclass
class Stage:
    """A service with a campaign, its owner, and the processes of its sites."""

    service: Service
    owner: Owner
    campaign: Opened[ScoreCampaign]
    running: list["subprocess.Popen[bytes]"] = field(default_factory=list)

    def begin(self, site: ScoreSite, kill: Kill | None = None) -> "subprocess.Popen[bytes]":
        """Have a site contribute."""
        process = site.begin_answering(kill)
        self.running.append(process)
        return process

    def of(self, site: str) -> SiteStatus:
        """One site's part."""
        status = self.owner.status(self.campaign.digest)
        return next(one for one in status.sites if one.site == site)

    def waits_for(self) -> tuple[str, ...]:
        """Whom the newest round waits for."""
        return self.owner.status(self.campaign.digest).rounds[-1].waiting_for


@pytest.fixture(
    params=[
        pytest.param(("sqlite", {}), id="sqlite-nominal"),
        pytest.param(("postgresql", CERTIFIED), id="postgresql-certified"),
        pytest.param(("sqlite", CERTIFIED), id="sqlite-certified", marks=pytest.mark.long),
        pytest.param(("postgresql", {}), id="postgresql-nominal", marks=pytest.mark.long),
    ]
)
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stage]:
    backend, terms = request.param
    with service(tmp_path / "aggregator", backend=backend) as running:
        running.start()
        with running.owner() as owner:
            campaign = create_score_campaign(
                *(owner, N), rounds=ROUNDS, round_for=WAITS, least=N // 8, alpha=0.3, **terms
            )
            made = Stage(running, owner, campaign)
            try:
                yield made
            finally:
                for process in made.running:
                    process.kill()
                    process.wait()


def leave(process: "subprocess.Popen[bytes]", site: ScoreSite) -> None:
    """Leave the campaign in the middle of whatever the site is doing."""
    process.kill()
    process.wait()
    finished(lambda: site.tacit("leave", "--yes"), most=1)


def answers_in(site: ScoreSite, number: int) -> int:
    return sum(upload.records for upload in site.answers() if upload.round == number)


def test_sites_that_are_slow_leave_crash_or_come_back_late_are_accounted_for_exactly(
    stage: Stage, tmp_path: Path
) -> None:
    with slow_lines(stage.service, DELAYS) as relays:
        scores = some_scores(SITES, EACH)
        sites = score_sites(
            *(stage.service.aggregator, stage.campaign, tmp_path, scores),
            per_upload=5,
            relays=relays,
        )
        fast, slow, leaving, crashing, returning = sites
        staying = [stage.begin(fast), stage.begin(slow)]
        left = stage.begin(leaving)
        crashed, vanished = stage.begin(crashing, CRASH), stage.begin(returning, VANISH)
        oracle = ScoreOracle(stage.service.database_url, stage.campaign, sites)

        assert crashed.wait(PATIENCE) == KILLED
        staying.append(stage.begin(crashing))
        until(lambda: oracle.opened() > 2)
        leave(left, leaving)
        assert vanished.wait(PATIENCE) == KILLED
        until(lambda: stage.waits_for() == ("returning",))
        pass_deadline(stage.service.database_url, stage.campaign.digest)
        until(lambda: oracle.opened() > 3)
        staying.append(stage.begin(returning))
        assert [process.wait(PATIENCE) for process in staying] == [0, 0, 0, 0]

    outcome = oracle.check(stage.owner)
    for site in (fast, slow, crashing, returning):
        oracle.check_arrived(site)
    assert isinstance(outcome, Calibration)
    certified = stage.campaign.document.delta is not None
    assert outcome.guarantee is (Guarantee.CERTIFIED if certified else Guarantee.NOMINAL)
    assert stage.owner.status(stage.campaign.digest).closed_by is ClosedBy.PLAN
    assert stage.of("leaving").left
    assert stage.of("leaving").records.counted >= answers_in(leaving, 0) > 0
    assert stage.of("fast").records.counted == EACH
    assert stage.of("crashing").records.received == EACH
    # What it had drawn before its round closed is late; its other records have answered.
    assert stage.of("returning").records.late == answers_in(returning, 2) > 0
    assert stage.of("returning").records.counted == EACH - answers_in(returning, 2)
