"""Sites killed with SIGKILL at every commit and request: the same command again completes it."""

import shutil
from pathlib import Path

import pytest

from tacit.protocol import CampaignState, LabelCampaign, Opened
from tacit_client import Owner, submit
from tests.e2e.kill_points import Story, killed_at
from tests.support.aggregator import until
from tests.support.exactly_once import Oracle, check_ledger, rows
from tests.support.killable import Kill
from tests.support.scene import (
    KILLED,
    Service,
    Site,
    create_campaign,
    finished,
)

N = 24


@pytest.fixture
def campaign(owner: Owner) -> Opened[LabelCampaign]:
    return create_campaign(owner, N)


@pytest.fixture
def site(running: Service, campaign: Opened[LabelCampaign], tmp_path: Path) -> Site:
    return Site(tmp_path / "site", running.aggregator.invitation(campaign.digest, "site"))


@pytest.fixture
def oracle(running: Service, campaign: Opened[LabelCampaign]) -> Oracle:
    return Oracle(running.database, campaign.digest, campaign.document)


def check_exactly_once(oracle: Oracle, site: Site, records: int = N) -> None:
    """All that the site drew is counted, once each, as it was drawn first."""
    until(lambda: oracle.everything_is_counted(records))
    oracle.check_site("site", site.markers(records), site.bodies())
    oracle.check_totals()
    oracle.check_erased(site.markers(records))
    check_ledger(site.ledger, oracle.digest, records)


def campaign_keys(site: Site) -> set[bytes]:
    if not site.ledger.exists() or not rows(site.ledger, "SELECT 1 FROM sqlite_master"):
        return set()
    return {key for (key,) in rows(site.ledger, "SELECT campaign_key FROM campaigns")}


def content_of(site: Site) -> bytes:
    return b"".join(file.read_bytes() for file in site.home.glob("ledger.db*"))


@killed_at(Story.JOINS)
def test_a_site_killed_while_it_joins_joins_when_asked_again_and_keeps_the_key_it_drew(
    site: Site, oracle: Oracle, kill: Kill
) -> None:
    assert site.join(kill).returncode == KILLED
    assert site.bodies() == []
    drawn = campaign_keys(site)
    finished(site.join, most=1)
    assert len(campaign_keys(site)) == 1
    assert drawn <= campaign_keys(site)
    site.contribute_here(0, N)
    check_exactly_once(oracle, site)


@killed_at(Story.JOINS_AGAIN)
def test_a_site_killed_while_it_joins_again_keeps_its_key_and_what_it_drew(
    site: Site, oracle: Oracle, kill: Kill
) -> None:
    site.join_here()
    site.draw_here(0, 8)
    keys, before = campaign_keys(site), site.bodies()
    assert site.join(kill).returncode == KILLED
    finished(site.join, most=1)
    assert (campaign_keys(site), site.bodies()) == (keys, before)
    site.contribute_here(8, N)
    check_exactly_once(oracle, site)


@killed_at(Story.CONTRIBUTES)
def test_a_site_killed_while_it_contributes_sends_what_is_missing_and_draws_nothing_twice(
    site: Site, oracle: Oracle, kill: Kill
) -> None:
    site.join_here()
    site.draw_here(0, 8)
    site.draw_here(8, 16)
    assert site.contribute(16, N, kill).returncode == KILLED
    site.bodies()  # from here on, none of these may change
    finished(lambda: site.contribute(16, N), most=1)
    check_exactly_once(oracle, site)


@killed_at(Story.EXPORTS)
def test_a_site_killed_while_it_exports_exports_the_same_reports_when_asked_again(
    site: Site, oracle: Oracle, kill: Kill, tmp_path: Path
) -> None:
    site.join_here()
    site.draw_here(0, 8)
    bundle = tmp_path / "all.zip"
    export = ("export", str(site.file(8, N)), "-o", str(bundle))
    assert site.tacit(*export, kill=kill).returncode == KILLED
    site.bodies()  # from here on, none of these may change
    finished(lambda: site.tacit(*export), most=1)
    submit(bundle, site.invitation)
    check_exactly_once(oracle, site)


@killed_at(Story.SUBMITS)
def test_a_bundle_whose_submission_was_killed_is_counted_once_when_submitted_again(
    site: Site, oracle: Oracle, kill: Kill
) -> None:
    site.join_here()
    site.draw_here(0, 8)
    site.draw_here(8, N)
    arguments = ("submit", str(site.bundle), "--invitation", str(site.invitation_file))
    assert site.tacit(*arguments, kill=kill).returncode == KILLED
    finished(lambda: site.tacit(*arguments), most=1)
    receipt = site.bundle.with_name(site.bundle.name + ".receipt.json")
    finished(lambda: site.tacit("acknowledge", str(receipt)), most=1)
    assert {upload.state for upload in site.uploads()} <= {"accepted", "counted"}
    check_exactly_once(oracle, site)


@killed_at(Story.HEARS_OF_THE_END)
def test_a_site_killed_while_it_hears_of_the_end_erases_the_campaigns_key_when_asked_again(
    site: Site, oracle: Oracle, owner: Owner, kill: Kill
) -> None:
    site.join_here()
    site.contribute_here(0, N)
    (key,) = campaign_keys(site)
    (body,) = site.bodies()
    until(lambda: owner.status(oracle.digest).state is CampaignState.CLOSED)
    assert site.tacit("status", kill=kill).returncode == KILLED
    finished(lambda: site.tacit("status"), most=1)
    assert rows(site.ledger, "SELECT state, campaign_key, token FROM campaigns") == [
        ("ended", None, None)
    ]
    assert {upload.state for upload in site.uploads()} == {"counted"}
    check_exactly_once(oracle, site)
    content = content_of(site)
    assert key not in content
    assert body not in content


@killed_at(Story.LEAVES)
def test_a_site_killed_while_it_leaves_has_left_when_asked_again_and_what_was_accepted_counts(
    site: Site, oracle: Oracle, kill: Kill
) -> None:
    site.join_here()
    site.contribute_here(0, 16)
    accepted = site.bodies()
    (key,) = campaign_keys(site)
    site.draw_here(16, N)
    site.bodies()
    assert site.tacit("leave", "--yes", kill=kill).returncode == KILLED
    finished(lambda: site.tacit("leave", "--yes"), most=1)
    assert rows(site.ledger, "SELECT state, campaign_key FROM campaigns") == [("left", None)]
    assert [upload.state for upload in site.uploads()][1:] == ["dropped"]
    assert key not in content_of(site)
    assert site.join().returncode == 3
    until(lambda: oracle.everything_is_counted(16))
    oracle.check_site("site", site.markers(16), accepted)
    oracle.check_totals()


@killed_at(Story.FINDS_AN_OLD_COPY)
def test_a_site_killed_while_it_finds_an_old_copy_of_its_ledger_never_draws_again_from_it(
    site: Site, oracle: Oracle, kill: Kill, tmp_path: Path
) -> None:
    site.join_here()
    shutil.copytree(site.home, tmp_path / "copy")
    site.contribute_here(0, N - 4)
    sent = site.bodies()
    shutil.rmtree(site.home)
    shutil.copytree(tmp_path / "copy", site.home)
    assert site.contribute(0, N - 4, kill).returncode == KILLED
    for _ in range(2):
        refused = site.contribute(0, N - 4)
        assert refused.returncode == 3, refused.stderr
    assert site.uploads() == []
    until(lambda: oracle.everything_is_counted(N - 4))
    oracle.check_site("site", site.markers(N - 4), sent)
    oracle.check_totals()
