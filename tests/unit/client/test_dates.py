"""A campaign is drawn for between its own dates, by the site's clock, whatever a server says."""

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tacit_client.errors import CampaignEnded, NotYetOpen
from tests.support.client_world import OPENS, given, world

ONE = world()
CLOSES = ONE.campaign.closes
SECOND = timedelta(seconds=1)
SLACK = timedelta(minutes=5)


@pytest.mark.parametrize(
    ("now", "error"),
    [
        (OPENS - timedelta(days=1), NotYetOpen),
        (OPENS - SLACK - SECOND, NotYetOpen),
        (CLOSES + SLACK, CampaignEnded),
        (CLOSES + timedelta(days=5), CampaignEnded),
    ],
)
def test_nothing_is_drawn_outside_of_a_campaigns_own_dates(
    tmp_path: Path, now: datetime, error: type[Exception]
) -> None:
    with ONE.join_at(now, tmp_path / "home") as site:
        with pytest.raises(error):
            site.preview(**given(3).arguments())
        with pytest.raises(error):
            site.export(tmp_path / "bundle", **given(3).arguments())
        assert site.outbox.entries() == []
        assert site.ledger.read("SELECT * FROM records") == []


def test_the_error_says_in_how_many_seconds_the_campaign_opens(tmp_path: Path) -> None:
    with ONE.join_at(OPENS - timedelta(hours=2), tmp_path / "home") as site:
        with pytest.raises(NotYetOpen) as caught:
            site.export(tmp_path / "bundle", **given(3).arguments())
        assert caught.value.opens_in == 7200


@pytest.mark.parametrize("now", [OPENS - SLACK, OPENS, CLOSES, CLOSES + SLACK - SECOND])
def test_clocks_may_be_five_minutes_apart(tmp_path: Path, now: datetime) -> None:
    with ONE.join_at(now, tmp_path / "home") as site:
        assert site.export(tmp_path / "bundle", **given(3).arguments()).drawn == 3


def test_what_was_drawn_in_time_can_be_exported_again_later(tmp_path: Path) -> None:
    with ONE.join_at(OPENS, tmp_path / "home") as site:
        site.export(tmp_path / "bundle", **given(3).arguments())
    with ONE.join_at(CLOSES + timedelta(days=1), tmp_path / "home") as site:
        again = site.export(tmp_path / "bundle", **given(3).arguments())
        assert (again.drawn, again.already, again.uploads) == (0, 3, 1)
