"""An aggregator that was restored from a backup gets again, from the sites, what the copy lacks."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tacit.protocol import CampaignState, LabelCampaign, Opened
from tacit_client import Contributor, Owner, ReportState
from tacit_client.testing import RunningAggregator
from tests.integration.client.scenes import SMALL_UPLOADS, closed, create, join
from tests.support.aggregator import until
from tests.support.client_world import given
from tests.support.nimble import NimbleAggregator

AS_BEFORE_COUNTING = """
UPDATE uploads SET state = 'accepted';
UPDATE sites SET counted = 0, noisy = NULL, every = NULL, counted_at = NULL;
"""
"""What a backup holds of uploads that were pending: that they were accepted, not their reports."""


@contextmanager
def stopped(aggregator: RunningAggregator) -> Iterator[Path]:
    """The database of the aggregator while it does not run."""
    aggregator.kill()
    yield aggregator.database
    aggregator.start()


def change(database: Path, statements: str) -> None:
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.executescript(statements)


def copy(source: Path, target: Path) -> None:
    with closing(sqlite3.connect(source)) as one, closing(sqlite3.connect(target)) as other:
        one.backup(other)


def all_counted(owner: Owner, digest: str, records: int) -> None:
    until(lambda: owner.status(digest).records.counted == records)


@pytest.fixture
def aggregator(tmp_path: Path) -> Iterator[RunningAggregator]:
    with NimbleAggregator(tmp_path / "server") as running:
        yield running


@pytest.fixture
def owner(aggregator: RunningAggregator) -> Iterator[Owner]:
    with aggregator.owner() as owner:
        yield owner


@pytest.fixture
def campaign(owner: Owner) -> Opened[LabelCampaign]:
    return create(owner, planned_n=30)


@pytest.fixture
def site(
    aggregator: RunningAggregator, campaign: Opened[LabelCampaign], tmp_path: Path
) -> Iterator[Contributor]:
    with join(aggregator, campaign, tmp_path / "home", network=SMALL_UPLOADS) as site:
        yield site


def test_uploads_that_a_backup_does_not_know_are_sent_again(
    aggregator: RunningAggregator,
    owner: Owner,
    campaign: Opened[LabelCampaign],
    site: Contributor,
    tmp_path: Path,
) -> None:
    site.contribute(**given(10).arguments())
    all_counted(owner, campaign.digest, 10)
    copy(aggregator.database, tmp_path / "backup.db")
    site.contribute(**given(25).arguments())
    all_counted(owner, campaign.digest, 25)
    with stopped(aggregator) as database:
        for file in database.parent.glob(database.name + "-*"):
            file.unlink()
        shutil.copy(tmp_path / "backup.db", database)
    assert owner.status(campaign.digest).records.received == 10
    assert site.resend().accepted == 15
    owner.close(campaign.digest)
    assert closed(owner, campaign.digest).records.counted == 25


def test_uploads_that_a_site_has_marked_counted_are_sent_again_too(
    aggregator: RunningAggregator,
    owner: Owner,
    campaign: Opened[LabelCampaign],
    site: Contributor,
    tmp_path: Path,
) -> None:
    copy(aggregator.database, tmp_path / "backup.db")
    site.contribute(**given(20).arguments())
    all_counted(owner, campaign.digest, 20)
    site.refresh()
    assert site.outbox.counts()[ReportState.COUNTED] == 20
    with stopped(aggregator) as database:
        for file in database.parent.glob(database.name + "-*"):
            file.unlink()
        shutil.copy(tmp_path / "backup.db", database)
    assert owner.status(campaign.digest).records.received == 0
    assert site.resend().accepted == 20
    assert site.outbox.counts()[ReportState.COUNTED] == 20
    assert site.resend().uploads == 0
    owner.close(campaign.digest)
    assert closed(owner, campaign.digest).records.counted == 20


def test_a_counted_upload_that_is_sent_again_too_late_is_said_to_be_late(
    aggregator: RunningAggregator,
    owner: Owner,
    campaign: Opened[LabelCampaign],
    site: Contributor,
) -> None:
    site.contribute(**given(20).arguments())
    all_counted(owner, campaign.digest, 20)
    site.refresh()
    with stopped(aggregator) as database:
        change(database, AS_BEFORE_COUNTING)
    owner.close(campaign.digest)
    done = site.resend()
    assert (done.accepted, done.late, done.uploads) == (0, 20, 2)


def test_uploads_whose_reports_a_backup_left_out_are_forgotten_and_sent_again(
    aggregator: RunningAggregator, owner: Owner, campaign: Opened[LabelCampaign], site: Contributor
) -> None:
    site.contribute(**given(20).arguments())
    all_counted(owner, campaign.digest, 20)
    with stopped(aggregator) as database:
        change(database, AS_BEFORE_COUNTING)
    tally = owner.status(campaign.digest).records
    assert (tally.received, tally.pending, tally.counted) == (0, 0, 0)
    assert site.resend().accepted == 20
    assert site.resend().uploads == 0
    owner.close(campaign.digest)
    assert closed(owner, campaign.digest).records.counted == 20


def test_a_campaign_whose_last_reports_a_backup_left_out_is_open_again(
    aggregator: RunningAggregator, owner: Owner, campaign: Opened[LabelCampaign], site: Contributor
) -> None:
    site.contribute(**given(30).arguments())
    closed(owner, campaign.digest)
    with stopped(aggregator) as database:
        change(database, AS_BEFORE_COUNTING)
        change(database, "UPDATE campaigns SET state = 'closing'; DELETE FROM thresholds;")
    assert owner.status(campaign.digest).state is CampaignState.OPEN
    site.contribute(**given(30).arguments())
    assert closed(owner, campaign.digest).records.counted == 30


def test_an_upload_that_a_closed_campaign_has_lost_is_dropped_and_the_key_erased(
    aggregator: RunningAggregator, owner: Owner, campaign: Opened[LabelCampaign], site: Contributor
) -> None:
    site.contribute(**given(20).arguments())
    all_counted(owner, campaign.digest, 20)
    with stopped(aggregator) as database:
        change(database, AS_BEFORE_COUNTING)
    owner.close(campaign.digest)
    closed(owner, campaign.digest)
    site.refresh()
    assert site.outbox.counts()[ReportState.DROPPED] == 20
    assert site.membership == "ended"
