"""The aggregator killed with SIGKILL at every commit: it comes back, and reports count once."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from tacit.protocol import CampaignState, ClosedBy, Features, LabelCampaign, Opened
from tacit_client import Contributor, Owner, Policy
from tests.e2e.kill_points import Story, killed_at
from tests.support import tiny_models
from tests.support.aggregator import until
from tests.support.deadly_model import DEADLY
from tests.support.exactly_once import Oracle, check_ledger, rows, sketch_of
from tests.support.killable import Kill
from tests.support.scene import KILLED, PATIENT, Service, Site, create_campaign, finished, service
from tests.support.score_campaigns import pass_date

N = 24


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Service]:
    with service(tmp_path / "aggregator") as made:
        yield made


def invited(stage: Service, campaign: Opened[LabelCampaign], folder: Path) -> Site:
    site = Site(folder / "site", stage.aggregator.invitation(campaign.digest, "site"))
    site.join_here()
    return site


def oracle_of(stage: Service, campaign: Opened[LabelCampaign]) -> Oracle:
    return Oracle(stage.database, campaign.digest, campaign.document)


def check_results(owner: Owner, campaign: Opened[LabelCampaign], site: Site) -> None:
    """Both thresholds are the library's on the very reports that the site drew."""
    document = campaign.document
    sketch = sketch_of(document, site.bodies())
    nominal = owner.threshold(campaign.digest)
    assert nominal.document.final
    assert nominal.outcome == sketch.calibrate(document.channel, document.alpha)
    starred = owner.threshold(campaign.digest, "starred").outcome
    assert starred == sketch.calibrate(document.channel, document.alpha, document.delta)


def closed(owner: Owner, campaign: Opened[LabelCampaign]) -> bool:
    return owner.status(campaign.digest).state is CampaignState.CLOSED


@killed_at(Story.SERVES_A_CONTRIBUTION)
def test_an_aggregator_killed_during_a_contribution_counts_each_report_once(
    stage: Service, tmp_path: Path, kill: Kill
) -> None:
    stage.start(kill)
    with stage.owner() as owner:
        campaign = create_campaign(owner, N)
        site = invited(stage, campaign, tmp_path)
        site.draw_here(0, 8)
        site.draw_here(8, 16)
        with stage.revived():
            finished(lambda: site.contribute(16, N))
        oracle = oracle_of(stage, campaign)
        until(lambda: oracle.everything_is_counted(N))
        oracle.check_site("site", site.markers(N), site.bodies())
        oracle.check_totals()
        oracle.check_erased(site.markers(N))
        check_ledger(site.ledger, campaign.digest, N)
        until(lambda: closed(owner, campaign))
        assert owner.status(campaign.digest).closed_by is ClosedBy.PLAN
        check_results(owner, campaign, site)


@killed_at(Story.ENDS_BY_DATE)
def test_an_aggregator_killed_while_a_campaign_ends_by_date_ends_it_when_it_is_back(
    stage: Service, tmp_path: Path, kill: Kill
) -> None:
    stage.start(kill)
    with stage.owner() as owner:
        campaign = create_campaign(owner, 10 * N)
        site = invited(stage, campaign, tmp_path)
        with stage.revived():
            site.contribute_here(0, N)
            pass_date(stage.database_url, campaign.digest)
        until(lambda: closed(owner, campaign))
        assert owner.status(campaign.digest).closed_by is ClosedBy.DATE
        oracle = oracle_of(stage, campaign)
        oracle.check_site("site", site.markers(N), site.bodies())
        oracle.check_totals()
        check_results(owner, campaign, site)


@killed_at(Story.SERVES_A_LEAVING_SITE)
def test_an_aggregator_killed_while_a_site_leaves_lets_it_leave_and_counts_what_it_took(
    stage: Service, tmp_path: Path, kill: Kill
) -> None:
    stage.start(kill)
    with stage.owner() as owner:
        campaign = create_campaign(owner, N)
        site = invited(stage, campaign, tmp_path)
        site.contribute_here(0, 8)
        bodies = site.bodies()
        with stage.revived():
            finished(lambda: site.tacit("leave", "--yes"))
        oracle = oracle_of(stage, campaign)
        until(lambda: oracle.everything_is_counted(8))
        oracle.check_site("site", site.markers(8), bodies)
        (part,) = owner.status(campaign.digest).sites
        assert part.left


@killed_at(Story.SERVES_AN_OWNER)
def test_an_aggregator_killed_while_it_creates_a_campaign_has_it_once_when_asked_again(
    stage: Service, kill: Kill
) -> None:
    stage.start(kill)
    with stage.owner() as owner, stage.revived():
        campaign = create_campaign(owner, N)
        assert owner.publish(campaign.document) == campaign
    assert rows(stage.database, "SELECT digest, state, received FROM campaigns") == [
        (campaign.digest, "open", 0)
    ]


@killed_at(Story.SERVES_A_CLOSING)
def test_an_aggregator_killed_while_it_closes_a_campaign_counts_what_it_took(
    stage: Service, tmp_path: Path, kill: Kill
) -> None:
    stage.start(kill)
    with stage.owner() as owner:
        campaign = create_campaign(owner, N)
        site = invited(stage, campaign, tmp_path)
        site.contribute_here(0, 8)
        with stage.revived():
            owner.close(campaign.digest)
        until(lambda: closed(owner, campaign))
        assert owner.status(campaign.digest).closed_by is ClosedBy.HAND
        oracle = oracle_of(stage, campaign)
        oracle.check_site("site", site.markers(8), site.bodies())
        oracle.check_totals()


@killed_at(Story.SERVES_AN_ABANDONING)
def test_an_aggregator_killed_while_it_abandons_a_campaign_keeps_nothing_of_it(
    stage: Service, tmp_path: Path, kill: Kill
) -> None:
    stage.start(kill)
    with stage.owner() as owner:
        campaign = create_campaign(owner, N)
        site = invited(stage, campaign, tmp_path)
        site.contribute_here(0, 8)
        with stage.revived():
            owner.abandon(campaign.digest)
        status = owner.status(campaign.digest)
    assert status.state is CampaignState.ABANDONED
    tally = status.records
    assert (tally.received, tally.pending) == (8, 0)
    assert tally.counted + tally.dropped == 8
    assert rows(stage.database, "SELECT noisy, every FROM sites") == [(None, None)]
    oracle_of(stage, campaign).check_erased(site.markers(8))


@killed_at(Story.RECOVERS)
def test_an_aggregator_killed_while_it_starts_from_a_backup_gets_again_what_that_left_out(
    stage: Service, tmp_path: Path, kill: Kill
) -> None:
    stage.start(Kill("database", "fold uploads", "before"))
    with stage.owner() as owner:
        campaign = create_campaign(owner, N)
        site = invited(stage, campaign, tmp_path)
        site.contribute(0, N)
        stage.wait_for_death()
        with closing(sqlite3.connect(stage.database)) as connection, connection:
            assert connection.execute("DELETE FROM pending").rowcount == 1  # as backups are
        assert stage.operate("serve", kill=kill).returncode == KILLED
        stage.start()
        assert rows(stage.database, "SELECT * FROM uploads") == []
        finished(lambda: site.contribute(0, N))
        until(lambda: closed(owner, campaign))
        oracle = oracle_of(stage, campaign)
        oracle.check_site("site", site.markers(N), site.bodies())
        oracle.check_totals()
        check_ledger(site.ledger, campaign.digest, N)
        check_results(owner, campaign, site)


@killed_at(Story.RETRIES)
def test_an_aggregator_killed_while_it_retries_drops_what_ends_its_workers_and_counts_the_rest(
    stage: Service, tmp_path: Path, kill: Kill
) -> None:
    weights = tiny_models.save_safetensors(tmp_path / "weights.safetensors")
    options = ("--name", "deadly", "--dtype", "uint8", "--shape", "4,2")
    module = ("--module", "tests.support.deadly_model:DeadlyOnBright")
    assert stage.operate("models", "add", str(weights), *options, *module).returncode == 0
    ((model,),) = rows(stage.database, "SELECT digest FROM models")
    features = np.random.default_rng(1).integers(0, DEADLY, (12, 4, 2), dtype=np.uint8)
    features[4:8, 0, 0] = DEADLY
    stage.start(kill)
    with stage.owner() as owner:
        campaign = owner.create(
            title="deadly",
            classes=("a", "b", "c"),
            epsilon=1.0,
            alpha=0.1,
            planned_n=12,
            closes=timedelta(days=1),
            evidence=Features(model=model, dtype="uint8", shape=tiny_models.SHAPE),
        )
        invitation = stage.aggregator.invitation(campaign.digest, "site")
        policy = Policy(may_leave=frozenset({"features"}))
        home = tmp_path / "home"
        with (
            stage.revived(),
            Contributor.join(invitation, home, policy, network=PATIENT) as contributor,
        ):
            for start in (0, 4, 8):
                part = slice(start, start + 4)
                ids = [f"record-{number}" for number in range(12)[part]]
                contributor.contribute([0, 1, 2, 0], ids, features=features[part])
        until(lambda: closed(owner, campaign))
        tally = owner.status(campaign.digest).records
    assert (tally.received, tally.counted, tally.dropped) == (12, 8, 4)
    states = rows(stage.database, "SELECT state FROM uploads ORDER BY number")
    assert states == [("counted",), ("dropped",), ("counted",)]
    ((every,),) = rows(stage.database, "SELECT every FROM sites")
    assert np.frombuffer(every, "<i8").sum() == 8 * campaign.document.k
    oracle_of(stage, campaign).check_erased(features)
