"""A site without a network: its reports go by file, and their receipt comes back by file."""

import zipfile
from pathlib import Path

import pytest

from tacit_client import Contributor, Owner, ReportState, fetch_campaign, submit
from tacit_client.errors import BadBundle, Unreachable
from tacit_client.testing import RunningAggregator
from tests.integration.client.scenes import HASTY, SMALL_UPLOADS, closed, create
from tests.support.client_world import ALLOWING, NOWHERE, given


def test_reports_travel_by_file_and_are_counted_once(
    aggregator: RunningAggregator, owner: Owner, tmp_path: Path
) -> None:
    campaign = create(owner)
    invitation = aggregator.invitation(campaign.digest, "an island")
    carried = fetch_campaign(invitation)
    bundle = tmp_path / "bundle.zip"
    elsewhere = invitation.model_copy(update={"url": NOWHERE})
    with Contributor.join(
        elsewhere, tmp_path / "home", ALLOWING, document=carried, network=SMALL_UPLOADS
    ) as site:
        done = site.export(bundle, **given(25).arguments())
        assert (done.drawn, done.uploads, done.accepted) == (25, 3, 0)
        first = bundle.read_bytes()
        assert site.export(bundle, **given(25).arguments()).already == 25
        for _ in range(2):
            sent = submit(bundle, invitation.to_text(), network=HASTY)
            assert sent.records("accepted") + sent.records("counted") == 25
        receipt = tmp_path / "bundle.zip.receipt.json"
        assert site.acknowledge(receipt)[ReportState.DRAWN] == 0
        with pytest.raises(BadBundle, match="nothing to export"):
            site.export(bundle, **given(25).arguments())
        bundle.write_bytes(first)
        submit(bundle, invitation, receipt)
    assert invitation.token.encode() not in first
    owner.close(campaign.digest)
    assert closed(owner, campaign.digest).records.counted == 25


def test_a_bundle_can_be_submitted_after_more_was_sent_over_the_network(
    aggregator: RunningAggregator, owner: Owner, tmp_path: Path
) -> None:
    campaign = create(owner)
    invitation = aggregator.invitation(campaign.digest, "half an island")
    with Contributor.join(invitation, tmp_path / "home", ALLOWING, network=SMALL_UPLOADS) as site:
        site.export(tmp_path / "bundle", **given(10).arguments())
        assert site.contribute(**given(30).arguments()).accepted == 30
    sent = submit(tmp_path / "bundle", invitation)
    assert sent.records("accepted") + sent.records("counted") == 10
    assert owner.status(campaign.digest).records.received == 30


def test_a_bundle_can_be_submitted_after_a_later_one(
    aggregator: RunningAggregator, owner: Owner, tmp_path: Path
) -> None:
    campaign = create(owner)
    invitation = aggregator.invitation(campaign.digest, "an island")
    with Contributor.join(invitation, tmp_path / "home", ALLOWING, network=SMALL_UPLOADS) as site:
        site.export(tmp_path / "first", **given(10).arguments())
        site.export(tmp_path / "second", **given(30).arguments())
    assert submit(tmp_path / "second", invitation).records("accepted") == 30
    sent = submit(tmp_path / "first", invitation)
    assert sent.records("accepted") + sent.records("counted") == 10
    (standing,) = owner.status(campaign.digest).sites
    assert (standing.enrolled, standing.records.received) == (30, 30)


def test_what_comes_too_late_is_late_in_the_receipt(
    aggregator: RunningAggregator, owner: Owner, tmp_path: Path
) -> None:
    campaign = create(owner)
    invitation = aggregator.invitation(campaign.digest, "an island")
    with Contributor.join(invitation, tmp_path / "home", ALLOWING, network=SMALL_UPLOADS) as site:
        site.export(tmp_path / "bundle", **given(25).arguments())
        owner.close(campaign.digest)
        assert submit(tmp_path / "bundle", invitation, tmp_path / "receipt").records("late") == 25
        assert site.acknowledge(tmp_path / "receipt")[ReportState.LATE] == 25


def test_bundles_and_receipts_that_do_not_belong_here_are_refused(
    aggregator: RunningAggregator, owner: Owner, tmp_path: Path
) -> None:
    one, two = create(owner), create(owner)
    invitation = aggregator.invitation(one.digest, "an island")
    bundle = tmp_path / "bundle"
    with Contributor.join(invitation, tmp_path / "home", ALLOWING, network=SMALL_UPLOADS) as site:
        site.export(bundle, **given(25).arguments())
    with pytest.raises(BadBundle, match="another campaign or site"):
        submit(bundle, aggregator.invitation(two.digest, "an island"))
    with pytest.raises(BadBundle, match="another campaign or site"):
        submit(bundle, aggregator.invitation(one.digest, "elsewhere"))
    sent = submit(bundle, invitation, tmp_path / "receipt")
    other = aggregator.invitation(two.digest, "an island")
    with Contributor.join(other, tmp_path / "home", ALLOWING, network=SMALL_UPLOADS) as site:
        with pytest.raises(BadBundle, match="another campaign"):
            site.acknowledge(tmp_path / "receipt")
        with pytest.raises(BadBundle):
            site.acknowledge(bundle)
        with pytest.raises(BadBundle):
            site.acknowledge(tmp_path / "nothing")
    assert sent.campaign == one.digest


def test_a_bundle_that_was_changed_is_refused_before_anything_is_sent(
    aggregator: RunningAggregator, owner: Owner, tmp_path: Path
) -> None:
    campaign = create(owner)
    invitation = aggregator.invitation(campaign.digest, "an island")
    bundle, changed = tmp_path / "bundle", tmp_path / "changed"
    with Contributor.join(invitation, tmp_path / "home", ALLOWING, network=SMALL_UPLOADS) as site:
        site.export(bundle, **given(25).arguments())
    with zipfile.ZipFile(bundle) as old, zipfile.ZipFile(changed, "w") as new:
        names = old.namelist()
        for name in names:
            content = old.read(name)
            new.writestr(name, content + b" " if name == names[1] else content)
    with pytest.raises(BadBundle, match="changed"):
        submit(changed, invitation)
    changed.write_bytes(bundle.read_bytes()[:200])
    with pytest.raises(BadBundle):
        submit(changed, invitation)
    assert owner.status(campaign.digest).records.received == 0


def test_a_bundle_that_cannot_be_sent_can_be_sent_again(
    aggregator: RunningAggregator, owner: Owner, tmp_path: Path
) -> None:
    campaign = create(owner)
    invitation = aggregator.invitation(campaign.digest, "an island")
    with Contributor.join(invitation, tmp_path / "home", ALLOWING, network=SMALL_UPLOADS) as site:
        site.export(tmp_path / "bundle", **given(5).arguments())
    nowhere = invitation.model_copy(update={"url": NOWHERE})
    with pytest.raises(Unreachable):
        submit(tmp_path / "bundle", nowhere, network=HASTY)
    assert submit(tmp_path / "bundle", invitation).records("accepted") == 5
