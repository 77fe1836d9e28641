"""Whatever is wrong with a campaign, it is refused before a key is drawn."""

import base64
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import rfc8785

from tacit.errors import (
    InvalidDocument,
    Untrusted,
    UpgradeRequired,
    WrongDigest,
    WrongKey,
    WrongSignature,
)
from tacit.protocol import Features, Signed, SigningKey, sha256_hex
from tacit.protocol.signatures import signed_bytes
from tacit_client import Contributor, Ledger, Policy
from tacit_client.errors import (
    BudgetExceeded,
    CampaignError,
    InsecureUrl,
    NotJoined,
    PolicyRefused,
)
from tacit_client.ledger import joined_campaigns
from tests.support.client_world import ALLOWING, World, world


def assert_nothing_drawn(home: Path) -> None:
    with Ledger.open(home) as ledger:
        assert joined_campaigns(ledger) == []
        assert ledger.meta.sequence == 0


def of_version_two() -> World:
    one = world()
    payload = rfc8785.dumps(json.loads(one.signed.payload) | {"version": "2.0"})
    signature = one.key.private.sign(signed_bytes("campaign", payload))
    encoded = Signed.model_validate(
        one.signed.model_dump()
        | {
            "payload": payload.decode(),
            "signature": base64.b64encode(signature).decode(),
        }
    )
    invitation = one.invitation.model_copy(update={"campaign": sha256_hex(payload)})
    return replace(one, signed=encoded, invitation=invitation)


def other_digest() -> World:
    one = world()
    return replace(one, signed=one.key.sign(world().campaign))


def other_key() -> World:
    one = world()
    return replace(one, signed=SigningKey.generate().sign(one.campaign))


def other_signature() -> World:
    one = world()
    forged = one.signed.model_copy(update={"signature": one.key.sign(world().campaign).signature})
    return replace(one, signed=forged)


def altered_terms() -> World:
    one = world()
    payload = one.signed.payload.replace('"alpha":0.1', '"alpha":0.2')
    assert payload != one.signed.payload
    return replace(one, signed=one.signed.model_copy(update={"payload": payload}))


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        (other_digest, WrongDigest),
        (other_key, WrongKey),
        (other_signature, WrongSignature),
        (altered_terms, WrongSignature),
        (of_version_two, UpgradeRequired),
    ],
)
def test_a_document_that_was_not_agreed_on_is_refused_and_nothing_is_drawn(
    tmp_path: Path, wrong: Callable[[], World], error: type[Exception]
) -> None:
    with pytest.raises(error):
        wrong().join(tmp_path / "home")
    assert_nothing_drawn(tmp_path / "home")


@pytest.mark.parametrize(
    ("policy", "error"),
    [
        (Policy(), PolicyRefused),
        (Policy(may_leave=frozenset({"features"})), PolicyRefused),
        (replace(ALLOWING, max_epsilon=0.5), BudgetExceeded),
        (replace(ALLOWING, pinned_keys=frozenset({"0" * 64})), PolicyRefused),
        (replace(ALLOWING, methods=frozenset()), PolicyRefused),
    ],
)
def test_what_the_policy_forbids_is_refused_and_nothing_is_drawn(
    tmp_path: Path, policy: Policy, error: type[Exception]
) -> None:
    with pytest.raises(error):
        world(epsilon=1.0).join(tmp_path / "home", policy)
    assert_nothing_drawn(tmp_path / "home")


def test_features_that_may_not_leave_are_refused_and_nothing_is_drawn(tmp_path: Path) -> None:
    images = world(evidence=Features(model="0" * 64, dtype="uint8", shape=(2,)))
    with pytest.raises(PolicyRefused, match="features"):
        images.join(tmp_path / "home", Policy(may_leave=frozenset({"probabilities"})))
    assert_nothing_drawn(tmp_path / "home")


def test_without_a_policy_that_of_the_home_holds(tmp_path: Path) -> None:
    one = world()
    with pytest.raises(PolicyRefused):
        Contributor.join(one.invitation, tmp_path / "home", document=one.signed)
    (tmp_path / "home" / "policy.toml").parent.mkdir(exist_ok=True)
    (tmp_path / "home" / "policy.toml").write_text('may_leave = ["probabilities"]\n')
    with Contributor.join(one.invitation, tmp_path / "home", document=one.signed) as joined:
        assert joined.digest == one.campaign.digest


def test_joining_again_keeps_the_key_and_takes_the_newer_token(tmp_path: Path) -> None:
    one = world()
    with one.join(tmp_path / "home") as first:
        (before,) = joined_campaigns(first.ledger)
    renewed = one.invitation.model_copy(update={"token": "tacit_" + "b" * 43})
    with replace(one, invitation=renewed).join(tmp_path / "home") as second:
        (after,) = joined_campaigns(second.ledger)
    assert after.campaign_key == before.campaign_key
    assert after.token == renewed.token != before.token


def test_one_ledger_joins_a_campaign_as_one_site_only(tmp_path: Path) -> None:
    one = world()
    one.join(tmp_path / "home").close()
    elsewhere = one.invitation.model_copy(update={"site": "another site"})
    with pytest.raises(CampaignError, match="another site"):
        replace(one, invitation=elsewhere).join(tmp_path / "home")


def test_two_campaigns_have_two_keys(tmp_path: Path) -> None:
    world().join(tmp_path / "home").close()
    with world().join(tmp_path / "home") as second:
        keys = {campaign.campaign_key for campaign in joined_campaigns(second.ledger)}
    assert len(keys) == 2


def test_a_joined_campaign_is_opened_by_the_beginning_of_its_digest(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with pytest.raises(NotJoined):
        Contributor.open(None, home)
    one, two = world(), world()
    one.join(home).close()
    with Contributor.open(None, home) as only:
        assert only.digest == one.campaign.digest
    two.join(home).close()
    with Contributor.open(two.campaign.digest[:16], home) as opened:
        assert opened.campaign == two.campaign
    with pytest.raises(NotJoined, match="name one"):
        Contributor.open(None, home)
    with pytest.raises(NotJoined):
        Contributor.open("%", home)


def test_an_invitation_to_plain_http_elsewhere_is_refused_before_anything_is_sent(
    tmp_path: Path,
) -> None:
    asked = world().invitation.model_copy(update={"url": "http://hospital.example"})
    with pytest.raises(InsecureUrl):
        Contributor.join(asked, tmp_path / "home", ALLOWING)
    assert_nothing_drawn(tmp_path / "home")


def test_a_carried_document_may_be_a_file(tmp_path: Path) -> None:
    one = world()
    (tmp_path / "campaign.json").write_text(one.signed.model_dump_json())
    line = one.invitation.to_text()
    document = tmp_path / "campaign.json"
    with Contributor.join(line, tmp_path / "home", ALLOWING, document=document) as joined:
        assert joined.campaign == one.campaign
    document.write_text("{}")
    with pytest.raises(InvalidDocument):
        Contributor.join(line, tmp_path / "home", ALLOWING, document=document)


def test_token_and_key_are_in_no_representation(tmp_path: Path) -> None:
    one = world()
    with one.join(tmp_path / "home") as joined:
        (stored,) = joined_campaigns(joined.ledger)
        shown = repr(joined) + repr(stored) + repr(joined.ledger) + repr(one.invitation)
    assert stored.campaign_key is not None
    assert one.invitation.token not in shown
    assert repr(stored.campaign_key) not in shown


def test_untrusted_documents_can_be_caught_together() -> None:
    assert all(issubclass(error, Untrusted) for error in (WrongDigest, WrongKey, WrongSignature))
