"""What a site refuses by itself, whatever its server says or has been sent before."""

import json
import shutil
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from tacit_client import Contributor, Home, Owner
from tacit_client.errors import LedgerError, LedgerRestored, NotYetOpen, PolicyRefused
from tacit_client.testing import RunningAggregator
from tests.integration.client.scenes import HASTY, create, join
from tests.support.client_world import ALLOWING, given
from tests.support.liar import instead, liar

OTHER_KEYS = replace(ALLOWING, pinned_keys=frozenset({"0" * 64}))


def saying_open(status: bytes) -> bytes:
    return json.dumps(json.loads(status) | {"state": "open", "opens_in": 0.0}).encode()


def test_a_server_that_says_open_too_early_gets_nothing(
    aggregator: RunningAggregator, owner: Owner, tmp_path: Path
) -> None:
    campaign = create(
        owner, opens=owner.server().time + timedelta(days=1), closes=timedelta(days=9)
    )
    invitation = aggregator.invitation(campaign.digest, "a site")
    with liar(aggregator.url, instead("/status", saying_open)) as server:
        lying = invitation.model_copy(update={"url": server.url})
        with Contributor.join(lying, tmp_path / "home", ALLOWING, network=HASTY) as site:
            assert site.status().state == "open"
            with pytest.raises(NotYetOpen):
                site.contribute(**given(10).arguments())
            assert site.outbox.entries() == []


def test_a_drawing_that_the_witness_was_not_told_of_is_not_sent_until_it_is(
    aggregator: RunningAggregator, owner: Owner, tmp_path: Path
) -> None:
    campaign, home = create(owner), tmp_path / "home"
    with join(aggregator, campaign, home) as site:
        shutil.copytree(home, tmp_path / "copy")
        in_the_way = Home(home).witness.with_name("home.witness.new")
        in_the_way.mkdir()
        with pytest.raises(LedgerError, match="witness cannot be written"):
            site.contribute(**given(10).arguments())
        with pytest.raises(LedgerError, match="witness cannot be written"):
            site.resend()
        assert owner.status(campaign.digest).records.received == 0
        in_the_way.rmdir()
        assert site.resend().accepted == 10
    shutil.rmtree(home)
    shutil.copytree(tmp_path / "copy", home)
    with (
        Contributor.open(None, home, ALLOWING, network=HASTY) as site,
        pytest.raises(LedgerRestored),
    ):
        site.contribute(**given(10).arguments())


def test_a_key_that_is_no_longer_pinned_lets_nothing_be_drawn_or_leave(
    aggregator: RunningAggregator, owner: Owner, tmp_path: Path
) -> None:
    campaign, home = create(owner), tmp_path / "home"
    with join(aggregator, campaign, home) as site:
        site.export(tmp_path / "bundle", **given(5).arguments())
    with Contributor.open(None, home, OTHER_KEYS, network=HASTY) as site:
        with pytest.raises(PolicyRefused, match="pinned_keys"):
            site.preview(**given(10).arguments())
        with pytest.raises(PolicyRefused, match="pinned_keys"):
            site.export(tmp_path / "other", **given(10).arguments())
        with pytest.raises(PolicyRefused, match="pinned_keys"):
            site.contribute(**given(10).arguments())
        with pytest.raises(PolicyRefused, match="pinned_keys"):
            site.resend()
        assert len(site.outbox.entries()) == 1
    assert not (tmp_path / "other").exists()
    assert owner.status(campaign.digest).records.received == 0
