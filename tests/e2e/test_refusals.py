"""Whoever lies about a campaign is refused, by a typed error and an exit code; nothing is drawn."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from tacit.errors import UpgradeRequired, WrongDigest, WrongKey, WrongSignature
from tacit.protocol import Invitation, LabelCampaign, Opened, Problems, Role, Signed, SigningKey
from tacit_client import Contributor, Ledger, Network, Owner, Policy
from tacit_client.errors import (
    BudgetExceeded,
    CampaignEnded,
    NotAServer,
    PolicyRefused,
    UploadConflict,
)
from tacit_client.ledger import joined_campaigns
from tests.support.aggregator import AggregatorProcess, as_process, migrated
from tests.support.client_world import ALLOWING, given
from tests.support.liar import (
    Forward,
    Lie,
    instead,
    liar,
    of_version,
    signed_as,
    tacit,
    told,
)
from tests.support.small_server import Reply, Request, problem, small_server

HASTY = Network(attempts=2, longest_wait=0.05)
RECORDS = 20


@pytest.fixture(scope="module")
def aggregator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AggregatorProcess]:
    with as_process(migrated(tmp_path_factory.mktemp("aggregator"))) as running:
        yield running


@pytest.fixture(scope="module")
def owner(aggregator: AggregatorProcess) -> Owner:
    return Owner(aggregator.url, aggregator.token(Role.OWNER, "owner"), aggregator.key)


@pytest.fixture(scope="module")
def campaign(owner: Owner) -> Opened[LabelCampaign]:
    return create(owner)


def create(owner: Owner, title: str = "three classes", **terms: float) -> Opened[LabelCampaign]:
    return owner.create(
        title=title,
        classes=["c0", "c1", "c2"],
        closes=timedelta(hours=1),
        **{"epsilon": 1.0, "alpha": 0.1, "planned_n": 1000, **terms},  # type: ignore[arg-type]  # any terms
    )


def invited(
    aggregator: AggregatorProcess, digest: str, url: str, site: str = "a site"
) -> Invitation:
    """An invitation of the true server that leads to another address."""
    return aggregator.invitation(digest, site).model_copy(update={"url": url})


def assert_nothing_was_drawn(home: Path) -> None:
    with Ledger.open(home) as ledger:
        assert ledger.read("SELECT count(*) FROM records") == [(0,)]
        assert ledger.read("SELECT count(*) FROM uploads") == [(0,)]
        assert ledger.read("SELECT count(*) FROM spending") == [(0,)]


def assert_not_joined(home: Path) -> None:
    assert_nothing_was_drawn(home)
    with Ledger.open(home) as ledger:
        assert joined_campaigns(ledger) == []
        assert ledger.meta.sequence == 0


Forge = Callable[[Opened[LabelCampaign], Signed, Owner], bytes]


def _other_campaign(_: Opened[LabelCampaign], __: Signed, owner: Owner) -> bytes:
    other = create(owner, "another campaign")
    return owner.signed_campaign(other.digest).model_dump_json().encode()


def _own_key(campaign: Opened[LabelCampaign], _: Signed, __: Owner) -> bytes:
    return SigningKey.generate().sign(campaign.document).model_dump_json().encode()


def _own_signature(campaign: Opened[LabelCampaign], signed: Signed, _: Owner) -> bytes:
    forged = SigningKey.generate().sign(campaign.document)
    return signed_as(signed, signature=forged.signature)


def _other_terms(_: Opened[LabelCampaign], signed: Signed, __: Owner) -> bytes:
    payload = signed.payload.replace('"planned_n":1000', '"planned_n":1001')
    assert payload != signed.payload
    return signed_as(signed, payload=payload)


def _other_spelling(_: Opened[LabelCampaign], signed: Signed, __: Owner) -> bytes:
    return signed_as(signed, payload=signed.payload.replace(":", ": "))


FORGERIES: dict[str, tuple[Forge, type[Exception]]] = {
    "the digest of another campaign": (_other_campaign, WrongDigest),
    "another key": (_own_key, WrongKey),
    "another's signature": (_own_signature, WrongSignature),
    "changed terms": (_other_terms, WrongSignature),
    "another spelling": (_other_spelling, WrongSignature),
}


@pytest.mark.parametrize(("forge", "error"), FORGERIES.values(), ids=list(FORGERIES))
def test_a_forged_campaign_is_not_joined(
    aggregator: AggregatorProcess,
    owner: Owner,
    campaign: Opened[LabelCampaign],
    tmp_path: Path,
    forge: Forge,
    error: type[Exception],
) -> None:
    forged = forge(campaign, owner.signed_campaign(campaign.digest), owner)
    lie = instead(campaign.digest, lambda _: forged)
    with liar(aggregator.url, lie) as server:
        invitation = invited(aggregator, campaign.digest, server.url)
        with pytest.raises(error):
            Contributor.join(invitation, tmp_path / "sdk", ALLOWING, network=HASTY)
        ended = tacit(
            tmp_path / "cli",
            *("join", invitation.to_text(), "--may-leave", "probabilities", "--json"),
        )
    assert (ended.returncode, told(ended)["error"]) == (6, error.__name__)
    assert_not_joined(tmp_path / "sdk")
    assert_not_joined(tmp_path / "cli")
    assert {request.method for request in server.requests} == {"GET"}


def test_a_campaign_of_another_version_is_not_joined(
    aggregator: AggregatorProcess, campaign: Opened[LabelCampaign], tmp_path: Path
) -> None:
    key = SigningKey.generate()
    signed, digest = of_version(campaign.document, "2.0", key)
    with small_server(lambda _, __: Reply(200, signed.model_dump_json().encode())) as server:
        invitation = invited(aggregator, digest, server.url)
        invitation = invitation.model_copy(update={"key": key.fingerprint})
        with pytest.raises(UpgradeRequired):
            Contributor.join(invitation, tmp_path / "sdk", ALLOWING, network=HASTY)
        ended = tacit(
            tmp_path / "cli",
            *("join", invitation.to_text(), "--may-leave", "probabilities", "--json"),
        )
    assert (ended.returncode, told(ended)["error"]) == (2, "UpgradeRequired")
    assert_not_joined(tmp_path / "sdk")
    assert_not_joined(tmp_path / "cli")


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (problem(Problems.UPGRADE_REQUIRED), UpgradeRequired),
        (Reply(200, b"<html>Welcome</html>", {"Content-Type": "text/html"}), NotAServer),
        (Reply(200, b'{"payload": 1}'), NotAServer),
        (Reply(404, b"gone"), NotAServer),
    ],
    ids=["another protocol", "a web page", "no document", "no problem document"],
)
def test_what_is_no_server_of_this_protocol_is_not_joined(
    aggregator: AggregatorProcess,
    campaign: Opened[LabelCampaign],
    tmp_path: Path,
    reply: Reply,
    error: type[Exception],
) -> None:
    with liar(aggregator.url, lambda _, __: reply) as server:
        invitation = invited(aggregator, campaign.digest, server.url)
        with pytest.raises(error):
            Contributor.join(invitation, tmp_path / "home", ALLOWING, network=HASTY)
    assert_not_joined(tmp_path / "home")


STATUS_LIES: dict[str, tuple[Callable[[bytes, str], bytes], type[Exception]]] = {
    "the status of another campaign": (
        lambda body, digest: body.replace(digest.encode(), b"0" * 64),
        NotAServer,
    ),
    "a campaign that has closed": (
        lambda body, _: body.replace(b'"state":"open"', b'"state":"closed"'),
        CampaignEnded,
    ),
    "a state that there is not": (
        lambda body, _: body.replace(b'"state":"open"', b'"state":"again"'),
        NotAServer,
    ),
    "no status": (lambda _, __: b"[]", NotAServer),
}


@pytest.mark.parametrize(("change", "error"), STATUS_LIES.values(), ids=list(STATUS_LIES))
def test_nothing_is_drawn_for_a_server_that_lies_about_the_status(
    aggregator: AggregatorProcess,
    campaign: Opened[LabelCampaign],
    tmp_path: Path,
    change: Callable[[bytes, str], bytes],
    error: type[Exception],
) -> None:
    lie = instead("/status", lambda body: change(body, campaign.digest))
    with liar(aggregator.url, lie) as server:
        invitation = invited(aggregator, campaign.digest, server.url)
        home = tmp_path / "home"
        with (
            Contributor.join(invitation, home, ALLOWING, network=HASTY) as site,
            pytest.raises(error),
        ):
            site.contribute(**given(RECORDS).arguments())
        assert_nothing_was_drawn(home)


@pytest.mark.parametrize(
    ("policy", "option", "error"),
    [
        (Policy(), (), PolicyRefused),
        (Policy(may_leave={"features"}), ("--may-leave", "features"), PolicyRefused),
        (
            replace(ALLOWING, max_epsilon=0.5),
            ("--may-leave", "probabilities", "--max-epsilon", "0.5"),
            BudgetExceeded,
        ),
    ],
    ids=["nothing may leave", "probabilities may not leave", "this ε"],
)
def test_what_the_policy_forbids_is_not_joined(
    aggregator: AggregatorProcess,
    campaign: Opened[LabelCampaign],
    tmp_path: Path,
    policy: Policy,
    option: tuple[str, ...],
    error: type[Exception],
) -> None:
    invitation = aggregator.invitation(campaign.digest, "careful")
    with pytest.raises(error):
        Contributor.join(invitation, tmp_path / "sdk", policy, network=HASTY)
    ended = tacit(tmp_path / "cli", "join", invitation.to_text(), *option, "--json")
    assert (ended.returncode, told(ended)["error"]) == (3, error.__name__)
    assert_not_joined(tmp_path / "sdk")
    assert_not_joined(tmp_path / "cli")


@pytest.mark.parametrize(
    ("policy", "error"),
    [(Policy(), PolicyRefused), (replace(ALLOWING, max_epsilon=0.5), BudgetExceeded)],
    ids=["nothing may leave any more", "less ε"],
)
def test_a_policy_that_became_stricter_after_joining_lets_nothing_be_drawn(
    aggregator: AggregatorProcess,
    campaign: Opened[LabelCampaign],
    tmp_path: Path,
    policy: Policy,
    error: type[Exception],
) -> None:
    home = tmp_path / "home"
    Contributor.join(aggregator.invitation(campaign.digest, "strict"), home, ALLOWING).close()
    with Contributor.open(home=home, policy=policy, network=HASTY) as site:
        with pytest.raises(error):
            site.contribute(**given(RECORDS).arguments())
        with pytest.raises(error):
            site.export(tmp_path / "bundle.zip", **given(RECORDS).arguments())
    assert_nothing_was_drawn(home)


def _changes_the_first_upload() -> Lie:
    """On its way the first upload gets a space more, and the answer to it is lost."""
    changed: list[Request] = []

    def lie(request: Request, forward: Forward) -> Reply | None:
        if request.method == "PUT" and "/uploads/" in request.path and not changed:
            changed.append(request)
            forward(replace(request, body=request.body.replace(b":", b": ", 1)))
            return None
        return forward(request)

    return lie


def test_a_body_changed_under_its_upload_id_is_noticed_and_never_drawn_again(
    aggregator: AggregatorProcess, owner: Owner, tmp_path: Path
) -> None:
    campaign = create(owner, "changed")
    home = tmp_path / "home"
    with liar(aggregator.url, _changes_the_first_upload()) as server:
        invitation = invited(aggregator, campaign.digest, server.url)
        with Contributor.join(invitation, home, ALLOWING, network=HASTY) as site:
            with pytest.raises(UploadConflict):
                site.contribute(**given(RECORDS).arguments())
            again = site.contribute(**given(RECORDS).arguments())
            assert (again.drawn, again.already, again.uploads) == (0, RECORDS, 0)
    assert owner.status(campaign.digest).records.received == RECORDS


def test_a_receipt_for_another_upload_is_not_believed(
    aggregator: AggregatorProcess, owner: Owner, tmp_path: Path
) -> None:
    campaign = create(owner, "receipts")

    def lie(request: Request, forward: Forward) -> Reply:
        told = forward(request)
        if "/uploads/" in request.path:
            upload = request.path.rpartition("/")[2].encode()
            return replace(told, body=told.body.replace(upload, b"0" * 32))
        return told

    home = tmp_path / "home"
    with liar(aggregator.url, lie) as server:
        invitation = invited(aggregator, campaign.digest, server.url)
        with Contributor.join(invitation, home, ALLOWING, network=HASTY) as site:
            with pytest.raises(NotAServer):
                site.contribute(**given(RECORDS).arguments())
            assert sum(entry.records for entry in site.outbox.waiting()) == RECORDS
    honest = aggregator.invitation(campaign.digest, "a site")
    with Contributor.join(honest, home, ALLOWING, network=HASTY) as site:
        assert site.contribute(**given(RECORDS).arguments()).accepted == RECORDS
    assert owner.status(campaign.digest).records.received == RECORDS
