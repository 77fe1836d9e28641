"""What an owner gets is verified: signatures, digest, and the terms of the campaign."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.errors import InvalidDocument, WrongDigest, WrongKey, WrongSignature
from tacit.protocol import CampaignState, Role, SigningKey, ThresholdKind
from tacit_client import Contributor, Owner, VerifiedThreshold, verify_threshold
from tacit_client.errors import (
    BadTerms,
    NotEnoughRecords,
    NoThreshold,
    NotOver,
    NotReady,
    TermsDiffer,
    Unauthenticated,
    UnknownCampaign,
)
from tacit_client.testing import RunningAggregator
from tacit_client.thresholds import ThresholdFile
from tests.integration.client.scenes import closed, counted, create, join
from tests.support.client_world import World, given, world


def test_a_campaign_is_published_as_it_was_made(owner: Owner) -> None:
    campaign = create(owner, title="a title", delta=0.1)
    assert campaign.document.owner == "owner"
    assert owner.campaign(campaign.digest) == campaign
    assert campaign.digest in {status.campaign for status in owner.campaigns()}
    assert owner.find(campaign.digest[:20]) == campaign.digest
    assert owner.publish(campaign.document) == campaign


def test_an_owner_with_another_key_pinned_trusts_nothing(
    aggregator: RunningAggregator, owner: Owner
) -> None:
    token = aggregator.token(Role.OWNER, "owner")
    with Owner(aggregator.url, token, "0" * 64) as wary, pytest.raises(WrongKey):
        create(wary, title="never published")
    assert "never published" not in {status.title for status in owner.campaigns()}


def test_with_another_key_pinned_nothing_is_closed_abandoned_or_believed(
    aggregator: RunningAggregator, owner: Owner
) -> None:
    digest = create(owner).digest
    token = aggregator.token(Role.OWNER, "owner")
    with Owner(aggregator.url, token, "0" * 64) as wary:
        for what in (wary.status, wary.close, wary.abandon, wary.threshold):
            with pytest.raises(WrongKey):
                what(digest)
        with pytest.raises(WrongKey):
            wary.check_key()
    assert owner.status(digest).state is CampaignState.OPEN
    assert owner.check_key().keys[0] == owner.key


def test_a_date_may_be_of_any_zone(owner: Owner) -> None:
    closes = datetime.now(UTC) + timedelta(hours=2, microseconds=1)
    campaign = create(owner, closes=closes.astimezone())
    assert campaign.document.closes == closes.replace(microsecond=0)


def test_a_date_without_a_zone_is_refused_because_it_could_be_any(owner: Owner) -> None:
    naive = datetime(2100, 1, 1)
    for name in ("opens", "closes"):
        with pytest.raises(BadTerms, match=rf"{name} has no time zone.*tzinfo=UTC"):
            create(owner, **{name: naive})


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"alpha": 2.0}, "These terms make no campaign: α must lie"),
        ({"planned_n": 0}, "These terms make no campaign: planned_n: "),
        ({"closes": timedelta(seconds=-5)}, "These terms make no campaign: a campaign must open"),
    ],
)
def test_terms_that_make_no_campaign_are_a_sentence_that_names_no_body(
    owner: Owner, changes: dict[str, Any], says: str
) -> None:
    with pytest.raises(BadTerms) as caught:
        create(owner, **changes)
    assert str(caught.value).startswith(says)
    assert "body" not in str(caught.value)


@pytest.mark.parametrize("digest", ["0" * 64, "../token", "", "zz"])
def test_a_campaign_that_is_not_there_is_said_not_to_be(owner: Owner, digest: str) -> None:
    with pytest.raises(Exception, match=r"digest|nothing here"):
        owner.status(digest)


def test_an_ambiguous_beginning_names_no_campaign(owner: Owner) -> None:
    create(owner), create(owner)
    with pytest.raises(UnknownCampaign):
        owner.find("")


def test_an_unknown_token_is_unauthenticated(aggregator: RunningAggregator) -> None:
    stranger = Owner(aggregator.url, "tacit_" + "x" * 43, aggregator.key)
    with stranger, pytest.raises(Unauthenticated):
        stranger.campaigns()


def test_following_ends_when_the_campaign_does(
    aggregator: RunningAggregator, owner: Owner, tmp_path: Path
) -> None:
    campaign = create(owner)
    with join(aggregator, campaign, tmp_path / "home") as site:
        site.contribute(**given(20).arguments())
    following = owner.follow(campaign.digest, every=0.05, timeout=60)
    assert next(following).state is CampaignState.OPEN
    owner.close(campaign.digest)
    assert [status.state for status in following][-1] is CampaignState.CLOSED
    (*_, last) = owner.follow(create(owner).digest, every=0.05, timeout=0.2)
    assert last.state is CampaignState.OPEN


def test_what_is_not_ready_says_so_and_can_be_waited_for(owner: Owner) -> None:
    campaign = create(owner, delta=0.1)
    with pytest.raises(NotReady) as caught:
        owner.threshold(campaign.digest)
    assert caught.value.retry_after is not None
    with pytest.raises(NotReady):
        owner.threshold(campaign.digest, "starred", wait=0.3)


def test_waiting_for_a_threshold_is_waiting_for_the_end_and_not_for_the_first_upload(
    aggregator: RunningAggregator, owner: Owner, tmp_path: Path
) -> None:
    campaign = create(owner)
    with join(aggregator, campaign, tmp_path / "home") as site:
        site.contribute(**given(20).arguments())
    counted(owner, campaign.digest, 20)
    assert not owner.threshold(campaign.digest).document.final
    with pytest.raises(NotOver, match="without waiting"):
        owner.threshold(campaign.digest, wait=0.2)
    with ThreadPoolExecutor(1) as pool, aggregator.owner() as another:
        waiting = pool.submit(another.threshold, campaign.digest, wait=60)
        owner.close(campaign.digest)
        found = waiting.result(60)
    assert found.document.final
    assert found.calibration.n == 20


def test_what_never_comes_is_not_waited_for(owner: Owner) -> None:
    campaign = create(owner)
    with pytest.raises(NoThreshold):
        owner.threshold(campaign.digest, "starred", wait=60)
    assert owner.abandon(campaign.digest).state is CampaignState.ABANDONED


def test_too_few_records_are_a_result_too(
    aggregator: RunningAggregator, owner: Owner, tmp_path: Path
) -> None:
    campaign = create(owner, planned_n=20, delta=0.1)
    with join(aggregator, campaign, tmp_path / "home") as site:
        site.contribute(**given(20).arguments())
    closed(owner, campaign.digest)
    threshold = owner.threshold(campaign.digest, "starred", wait=30)
    with pytest.raises(NotEnoughRecords) as caught:
        threshold.sets(np.full((1, 3), 1 / 3))
    assert caught.value.needed > 20
    assert str(caught.value.needed) in str(caught.value)


@pytest.fixture(scope="module")
def fetched(
    aggregator: RunningAggregator, tmp_path_factory: pytest.TempPathFactory
) -> VerifiedThreshold:
    with aggregator.owner() as owner:
        campaign = create(owner)
        with join(aggregator, campaign, tmp_path_factory.mktemp("home") / "home") as site:
            site.contribute(**given(200).arguments())
        counted(owner, campaign.digest, 200)
        return owner.threshold(campaign.digest)


def test_a_saved_threshold_is_verified_when_it_is_loaded(
    fetched: VerifiedThreshold, tmp_path: Path
) -> None:
    path, digest = tmp_path / "threshold.json", fetched.document.campaign
    fetched.save(path)
    assert VerifiedThreshold.load(path, key=fetched.key, campaign=digest) == fetched
    assert verify_threshold(path, key=fetched.key) == fetched
    assert verify_threshold(path, key=fetched.key, campaign=fetched.file.campaign) == fetched
    table = np.array([[0.9, 0.05, 0.05], [0.4, 0.3, 0.3]])
    assert np.array_equal(fetched.sets(table), fetched.calibration.sets(table))
    with pytest.raises(WrongKey):
        verify_threshold(path, key="0" * 64)
    assert verify_threshold(path, key=fetched.key, campaign=digest[:12]) == fetched
    for other in ("0" * 64, "0" * 12, digest[:12] + "0" * 52):
        with pytest.raises(WrongDigest):
            verify_threshold(path, key=fetched.key, campaign=other)
    with pytest.raises(InvalidDocument, match="first 12 digits"):
        verify_threshold(path, key=fetched.key, campaign=digest[:11])
    path.write_text(path.read_text().replace('\\"threshold\\":0.', '\\"threshold\\":0.1'))
    with pytest.raises(WrongSignature):
        verify_threshold(path, key=fetched.key)


def test_a_threshold_by_itself_needs_its_campaign(
    fetched: VerifiedThreshold, tmp_path: Path
) -> None:
    signed, campaign = fetched.file.threshold, fetched.file.campaign
    assert verify_threshold(signed, key=fetched.key, campaign=campaign) == fetched
    with pytest.raises(InvalidDocument, match="signed campaign"):
        verify_threshold(signed, key=fetched.key)
    (tmp_path / "threshold.json").write_text(signed.model_dump_json())
    (tmp_path / "campaign.json").write_text(campaign.model_dump_json())
    files: dict[str, Any] = {"key": fetched.key, "campaign": tmp_path / "campaign.json"}
    assert verify_threshold(tmp_path / "threshold.json", **files) == fetched
    (tmp_path / "threshold.json").write_text("{}")
    with pytest.raises(InvalidDocument):
        verify_threshold(tmp_path / "threshold.json", **files)
    with pytest.raises(InvalidDocument):
        verify_threshold(tmp_path / "nothing.json", key=fetched.key)


def signed_again(fetched: VerifiedThreshold, other: World, **changes: object) -> ThresholdFile:
    """The threshold with other contents, properly signed by the key of another campaign."""
    update = {"campaign": other.campaign.digest} | changes
    document = fetched.document.model_copy(update=update)
    return ThresholdFile(threshold=other.key.sign(document), campaign=other.signed)


def test_terms_that_are_not_the_campaigns_are_refused_even_when_signed(
    fetched: VerifiedThreshold,
) -> None:
    key = SigningKey.generate()
    same, with_delta = world(k=3, key=key), world(k=3, key=key, delta=0.05)
    VerifiedThreshold.verify(signed_again(fetched, same), key=key.fingerprint)
    result = fetched.document.result
    starred = result | {"method": "ldp-cp-l*", "guarantee": "comparison", "delta": 0.1}
    other_epsilon = fetched.document.privacy.model_copy(update={"epsilon": 0.5})
    no_harm = fetched.document.hostile.model_copy(update={"shift_per_record": 0.0})
    wrong: list[tuple[World, dict[str, object]]] = [
        (world(epsilon=1.5, key=key), {}),
        (world(k=4, key=key), {}),
        (same, {"result": result | {"alpha": 0.2}}),
        (same, {"result": result | {"score": {"name": "aps"}}}),
        (same, {"result": result | {"method": "split"}}),
        (same, {"result": result | {"guarantee": "marginal"}}),
        (same, {"result": result | {"epsilon": 0.5}, "privacy": other_epsilon}),
        (same, {"result": starred, "which": ThresholdKind.STARRED, "final": True}),
        (with_delta, {"result": starred, "which": ThresholdKind.STARRED, "final": True}),
        (same, {"classes": ("c0", "c2", "c1")}),
        (same, {"hostile": no_harm}),
    ]
    for other, changes in wrong:
        with pytest.raises(TermsDiffer):
            VerifiedThreshold.verify(signed_again(fetched, other, **changes), key=key.fingerprint)


def test_a_starred_threshold_that_is_not_final_is_refused(fetched: VerifiedThreshold) -> None:
    other = world(k=3, delta=0.1)
    result = fetched.document.result
    starred = result | {"method": "ldp-cp-l*", "guarantee": "comparison", "delta": 0.1}
    changes = {"result": starred, "which": ThresholdKind.STARRED}
    final = signed_again(fetched, other, final=True, **changes)
    verified = VerifiedThreshold.verify(final, key=other.key.fingerprint)
    assert verified.calibration.delta == 0.1
    early = signed_again(fetched, other, final=False, **changes)
    with pytest.raises(TermsDiffer, match="final"):
        VerifiedThreshold.verify(early, key=other.key.fingerprint)
    with pytest.raises(TermsDiffer, match="kind"):
        VerifiedThreshold.verify(final, key=other.key.fingerprint, which=ThresholdKind.NOMINAL)


def test_a_threshold_of_another_campaign_is_refused(fetched: VerifiedThreshold) -> None:
    key = SigningKey.generate()
    one, two = world(key=key), world(key=key)
    mixed = ThresholdFile(threshold=signed_again(fetched, one).threshold, campaign=two.signed)
    with pytest.raises(WrongDigest):
        VerifiedThreshold.verify(mixed, key=key.fingerprint)


def test_a_site_cannot_join_with_the_invitation_of_another_server_key(
    aggregator: RunningAggregator, owner: Owner, tmp_path: Path
) -> None:
    campaign = create(owner)
    invitation = aggregator.invitation(campaign.digest, "a site")
    wrong = invitation.model_copy(update={"key": "0" * 64})
    with pytest.raises(WrongKey):
        Contributor.join(wrong, tmp_path / "home")
