"""A site and an owner with a real aggregator between them."""

from pathlib import Path

import numpy as np
import pytest

from tacit.conformal import CoverageSketch
from tacit.protocol import CampaignState, Reports, Upload
from tacit.scores import APS, RandomizedAPS, Score
from tacit_client import (
    Contributor,
    Ledger,
    Membership,
    Network,
    Owner,
    ReportState,
)
from tacit_client.errors import (
    AlreadyLeft,
    BudgetExceeded,
    CampaignEnded,
    NotYetOpen,
    UploadConflict,
)
from tacit_client.ledger import joined_campaigns
from tacit_client.testing import RunningAggregator
from tests.integration.client.scenes import closed, create, join
from tests.support.client_world import ALLOWING, given


def test_what_a_site_sends_is_counted_and_marked(
    aggregator: RunningAggregator, owner: Owner, tmp_path: Path
) -> None:
    campaign = create(owner)
    told: list[tuple[int, int, str]] = []
    with join(aggregator, campaign, tmp_path / "home") as site:
        done = site.contribute(**given(50).arguments(), on_progress=lambda *what: told.append(what))
        assert (done.records, done.drawn, done.already, done.accepted) == (50, 50, 0, 50)
        assert told == [(0, 50, "records sent"), (50, 50, "records sent")]
        again = site.contribute(**given(50).arguments())
        assert (again.drawn, again.already, again.accepted, again.uploads) == (0, 50, 0, 0)
        more = site.contribute(**given(60).arguments())
        assert (more.drawn, more.already, more.accepted) == (10, 50, 10)
        owner.close(campaign.digest)
        assert closed(owner, campaign.digest).records.counted == 60
        assert site.refresh().state is CampaignState.CLOSED
        assert site.outbox.counts()[ReportState.COUNTED] == 60
        assert site.membership is Membership.ENDED


@pytest.mark.parametrize("score", [APS(), RandomizedAPS()])
def test_the_threshold_is_that_of_the_library_on_the_same_reports(
    aggregator: RunningAggregator,
    owner: Owner,
    tmp_path: Path,
    score: Score,
) -> None:
    network = Network(records_per_upload=250)
    campaign = create(owner, planned_n=1600, score=score, epsilon=2.0, delta=0.1)
    sketch: CoverageSketch = campaign.document.empty_sketch()
    for number in range(2):
        home = tmp_path / f"{number}"
        with join(aggregator, campaign, home, f"site {number}", network) as site:
            records = given(800, seed=number, prefix=f"{number}-")
            assert site.contribute(**records.arguments()).uploads == 4
            for entry in site.outbox.entries():
                body = site.outbox.body(entry.upload)
                reports = Reports.of(Upload.model_validate_json(body), campaign.document)
                sketch = sketch.add(reports.evidence, reports.labels, reports.uniforms)
    status = closed(owner, campaign.digest)
    assert status.records.counted == 1600
    terms = campaign.document
    nominal = owner.threshold(campaign.digest, wait=30)
    starred = owner.threshold(campaign.digest, "starred", wait=30)
    assert nominal.document.final
    assert nominal.calibration == sketch.calibrate(terms.channel, terms.alpha)
    assert starred.outcome == sketch.calibrate(terms.channel, terms.alpha, terms.delta)


def test_the_end_erases_key_and_bodies_but_not_what_was_drawn_and_spent(
    aggregator: RunningAggregator, owner: Owner, tmp_path: Path
) -> None:
    campaign = create(owner)
    invitation = aggregator.invitation(campaign.digest, "a site")
    with Contributor.join(invitation, tmp_path / "home", ALLOWING) as site:
        site.contribute(**given(300).arguments())
        (joined,) = joined_campaigns(site.ledger)
        (entry,) = site.outbox.entries()
        marker = site.outbox.body(entry.upload)[1000:1100]
        site.ledger.erase_log()
        assert marker in (tmp_path / "home" / "ledger.db").read_bytes()
        owner.close(campaign.digest)
        closed(owner, campaign.digest)
        site.refresh()
        assert joined.campaign_key is not None
        assert joined.token is not None
        for path in (tmp_path / "home").glob("ledger.db*"):
            content = path.read_bytes()
            assert marker not in content
            assert joined.campaign_key not in content
            assert joined.token.encode() not in content
        assert site.ledger.read("SELECT count(*) FROM records") == [(300,)]
        assert site.ledger.read("SELECT count(*) FROM spending") == [(300,)]
        with pytest.raises(CampaignEnded):
            site.contribute(**given(300).arguments())
    with pytest.raises(CampaignEnded):
        Contributor.join(invitation, tmp_path / "home", ALLOWING)


def test_leaving_erases_the_key_and_cannot_be_undone(
    aggregator: RunningAggregator, owner: Owner, tmp_path: Path
) -> None:
    campaign = create(owner)
    invitation = aggregator.invitation(campaign.digest, "a site")
    with Contributor.join(invitation, tmp_path / "home", ALLOWING) as site:
        site.contribute(**given(20).arguments())
        site.leave()
        site.leave()
        assert site.membership is Membership.LEFT
        (joined,) = joined_campaigns(site.ledger)
        assert joined.campaign_key is None
        with pytest.raises(AlreadyLeft):
            site.contribute(**given(30).arguments())
        with pytest.raises(AlreadyLeft):
            site.preview(**given(30).arguments())
    with pytest.raises(AlreadyLeft):
        Contributor.join(invitation, tmp_path / "home", ALLOWING)
    (part,) = owner.status(campaign.digest).sites
    assert part.left
    assert part.records.received == 20


def test_nothing_is_drawn_for_a_campaign_that_takes_no_more(
    aggregator: RunningAggregator, owner: Owner, tmp_path: Path
) -> None:
    campaign = create(owner)
    with join(aggregator, campaign, tmp_path / "home") as site:
        site.contribute(**given(10).arguments())
        owner.close(campaign.digest)
        closed(owner, campaign.digest)
        with pytest.raises(CampaignEnded):
            site.contribute(**given(20).arguments())
        assert site.ledger.read("SELECT count(*) FROM records") == [(10,)]
        same = site.contribute(**given(10).arguments())
        assert (same.already, same.drawn, same.uploads) == (10, 0, 0)


def test_nothing_is_drawn_for_a_campaign_that_the_site_has_left_elsewhere(
    aggregator: RunningAggregator, owner: Owner, tmp_path: Path
) -> None:
    campaign = create(owner)
    with join(aggregator, campaign, tmp_path / "home") as site:
        with site._api() as api:  # as if the client had been killed while it was leaving
            api.leave(campaign.digest)
        with pytest.raises(AlreadyLeft):
            site.contribute(**given(10).arguments())
        assert site.outbox.entries() == []
        site.leave()
        assert site.membership is Membership.LEFT


def test_nothing_is_drawn_before_a_campaign_opens(
    aggregator: RunningAggregator, owner: Owner, tmp_path: Path
) -> None:
    opens = owner.server().time.replace(year=2050)
    campaign = create(owner, opens=opens)
    with join(aggregator, campaign, tmp_path / "home") as site:
        with pytest.raises(NotYetOpen) as caught:
            site.contribute(**given(10).arguments())
        assert caught.value.opens_in > 3600
        assert site.outbox.entries() == []


def test_what_waits_when_the_campaign_closes_is_late(
    aggregator: RunningAggregator, owner: Owner, tmp_path: Path
) -> None:
    campaign = create(owner)
    with join(aggregator, campaign, tmp_path / "home") as site:
        site.contribute(**given(10).arguments())
        site.export(tmp_path / "bundle", **given(25).arguments())
        owner.close(campaign.digest)
        done = site.resend()
        assert (done.accepted, done.late, done.uploads) == (0, 15, 1)
        assert site.outbox.counts()[ReportState.LATE] == 15


def test_another_body_under_an_upload_id_is_refused_for_good(
    aggregator: RunningAggregator, owner: Owner, tmp_path: Path
) -> None:
    campaign = create(owner)
    with join(aggregator, campaign, tmp_path / "home") as site:
        site.export(tmp_path / "bundle", **given(5).arguments())
        (entry,) = site.outbox.waiting()
        body = site.outbox.body(entry.upload)
        with site._api() as api:
            api.enrol(campaign.digest, 5)
            other = body.replace(b'"labels":', b'"labels": ')
            api.upload(campaign.digest, entry.upload, other)
        with pytest.raises(UploadConflict):
            site.resend()
        assert site.outbox.counts()[ReportState.REFUSED] == 5
        assert site.resend().uploads == 0


def test_a_budget_that_does_not_do_sends_nothing(
    aggregator: RunningAggregator, owner: Owner, tmp_path: Path
) -> None:
    campaign = create(owner, epsilon=1.0)
    with join(aggregator, campaign, tmp_path / "home") as site:
        with pytest.raises(BudgetExceeded):
            site.contribute(**given(5).arguments(), persons=["p"] * 5)
        assert site.outbox.entries() == []
        assert site.status().records.received == 0


def test_a_later_process_goes_on_where_the_first_one_was(
    aggregator: RunningAggregator, owner: Owner, tmp_path: Path
) -> None:
    campaign = create(owner)
    with join(aggregator, campaign, tmp_path / "home") as site:
        site.export(tmp_path / "bundle", **given(40).arguments())
    with Contributor.open(campaign.digest[:10], tmp_path / "home", ALLOWING) as site:
        assert site.resend().accepted == 40
        assert site.status().records.received == 40


def test_probabilities_travel_as_they_were_given(
    aggregator: RunningAggregator, owner: Owner, tmp_path: Path
) -> None:
    campaign = create(owner)
    records = given(30)
    with join(aggregator, campaign, tmp_path / "home") as site:
        site.contribute(**records.arguments())
        (entry,) = site.outbox.entries()
        upload = Upload.model_validate_json(site.outbox.body(entry.upload))
    assert np.array_equal(Reports.of(upload, campaign.document).evidence, records.probabilities)


def test_the_ledger_is_free_when_the_block_ends(
    aggregator: RunningAggregator, owner: Owner, tmp_path: Path
) -> None:
    with join(aggregator, create(owner), tmp_path / "home"):
        pass
    Ledger.open(tmp_path / "home").close()
