"""A site that no server speaks with can end its part, and its key is gone then."""

import os
import stat
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from tacit_client import Contributor, Membership, ReportState
from tacit_client.airgap import Submission, SubmittedState, SubmittedUpload
from tacit_client.errors import AlreadyLeft, BadBundle, CampaignEnded
from tacit_client.ledger import joined_campaigns
from tests.support.client_world import OPENS, given, world

ONE = world()
CLOSES = ONE.campaign.closes


def receipt(site: Contributor, path: Path, state: SubmittedState) -> Path:
    """What `submit` would have written, of all that waits."""
    uploads = tuple(
        SubmittedUpload(upload=entry.upload, records=entry.records, state=state)
        for entry in site.outbox.waiting()
    )
    path.write_text(Submission(campaign=site.digest, uploads=uploads).model_dump_json())
    return path


def secrets(site: Contributor) -> list[bytes]:
    """What must be found nowhere once the campaign is over."""
    (joined,) = joined_campaigns(site.ledger)
    assert joined.campaign_key is not None
    assert joined.token is not None
    bodies = (site.outbox.body(entry.upload) for entry in site.outbox.entries())
    return [joined.campaign_key, joined.token.encode(), *(body[-60:] for body in bodies)]


def found(home: Path, secret: bytes) -> bool:
    return any(secret in path.read_bytes() for path in home.glob("ledger.db*"))


def test_a_site_can_leave_without_its_server_and_its_key_is_erased(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with ONE.join(home) as site:
        site.export(tmp_path / "bundle", **given(5).arguments())
        hidden = secrets(site)
        assert all(found(home, secret) for secret in hidden)
        site.leave(offline=True)
        assert site.membership is Membership.LEFT
        assert site.outbox.counts()[ReportState.DROPPED] == 5
        with pytest.raises(AlreadyLeft):
            site.export(tmp_path / "bundle", **given(5).arguments())
    assert not any(found(home, secret) for secret in hidden)


@pytest.mark.parametrize("state", ["accepted", "counted", "late"])
def test_a_receipt_after_the_closing_date_ends_the_campaign_and_erases_its_key(
    tmp_path: Path, state: SubmittedState
) -> None:
    home = tmp_path / "home"
    with ONE.join_at(OPENS, home) as site:
        site.export(tmp_path / "bundle", **given(5).arguments())
        hidden = secrets(site)
        carried = receipt(site, tmp_path / "receipt", state)
    with ONE.join_at(CLOSES + timedelta(minutes=5), home) as site:
        assert site.acknowledge(carried)[ReportState(state)] == 5
        assert site.membership is Membership.ENDED
        assert site.acknowledge(carried)[ReportState(state)] == 5
        with pytest.raises(CampaignEnded):
            site.export(tmp_path / "bundle", **given(5).arguments())
    assert not any(found(home, secret) for secret in hidden)


def test_a_receipt_ends_nothing_before_the_date_or_while_something_waits(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with ONE.join_at(OPENS, home) as site:
        site.export(tmp_path / "bundle", **given(5).arguments())
        carried = receipt(site, tmp_path / "receipt", "counted")
        site.acknowledge(carried)
        assert site.membership is Membership.JOINED
        site.export(tmp_path / "bundle", **given(8).arguments())
    with ONE.join_at(CLOSES + timedelta(days=1), home) as site:
        site.acknowledge(carried)
        assert site.membership is Membership.JOINED


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such permissions")
def test_only_its_owner_may_read_a_bundle(tmp_path: Path) -> None:
    bundle = tmp_path / "bundle"
    (tmp_path / "bundle.part").write_bytes(b"left by a crash, readable by all")
    before = os.umask(0o022)
    try:
        with ONE.join(tmp_path / "home") as site:
            site.export(bundle, **given(5).arguments())
    finally:
        os.umask(before)
    assert stat.S_IMODE(bundle.stat().st_mode) == 0o600


def test_a_bundle_that_cannot_be_put_in_place_leaves_no_part_behind(tmp_path: Path) -> None:
    (tmp_path / "bundle").mkdir()
    with ONE.join(tmp_path / "home") as site, pytest.raises(BadBundle, match="cannot be written"):
        site.export(tmp_path / "bundle", **given(5).arguments())
    assert list(tmp_path.glob("*.part")) == []
