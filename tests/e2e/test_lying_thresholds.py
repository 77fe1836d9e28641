"""An owner believes no campaign and no threshold that is not what the pinned key signed."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from tacit.errors import Untrusted, WrongDigest, WrongKey, WrongSignature
from tacit.protocol import Role, Signed, SigningKey, Threshold
from tacit_client import Contributor, Network, Owner
from tacit_client.errors import NotAServer, TermsDiffer
from tests.support.aggregator import AggregatorProcess, as_process, migrated
from tests.support.client_world import ALLOWING, given
from tests.support.liar import instead, liar, signed_as, tacit, told

HASTY = Network(attempts=2, longest_wait=0.05)
RECORDS = 300


@dataclass(frozen=True)
class Found:
    """Two campaigns that ended by plan, with all their thresholds."""

    aggregator: AggregatorProcess
    token: str
    digests: tuple[str, str]

    def owner(self, url: str | None = None) -> Owner:
        """The owner, at the true server or at another address."""
        return Owner(url or self.aggregator.url, self.token, self.aggregator.key, network=HASTY)

    def threshold(self, campaign: int = 0, which: str = "nominal") -> Signed:
        """What the true server answers."""
        path = f"/v1/campaigns/{self.digests[campaign]}/thresholds/{which}"
        with self.aggregator.client(self.token) as http:
            return Signed.model_validate_json(http.get(path).raise_for_status().content)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Found]:
    folder = tmp_path_factory.mktemp("thresholds")
    with as_process(migrated(folder)) as aggregator:
        token = aggregator.token(Role.OWNER, "owner")
        digests = []
        for number in range(2):
            owner = Owner(aggregator.url, token, aggregator.key)
            digests.append(_finished(aggregator, owner, folder / f"site-{number}"))
        yield Found(aggregator, token, (digests[0], digests[1]))


def _finished(aggregator: AggregatorProcess, owner: Owner, home: Path) -> str:
    campaign = owner.create(
        title="a campaign",
        classes=["c0", "c1", "c2"],
        epsilon=4.0,
        alpha=0.2,
        delta=0.2,
        planned_n=RECORDS,
        closes=timedelta(hours=1),
    )
    invitation = aggregator.invitation(campaign.digest, "site")
    with Contributor.join(invitation, home, ALLOWING) as site:
        site.contribute(**given(RECORDS).arguments())
    owner.threshold(campaign.digest, "starred", wait=60)
    return campaign.digest


def _forged(found: Found, **changes: object) -> bytes:
    """A threshold with other contents, signed by another key that says it is the pinned one."""
    document = found.threshold().open(Threshold, key=found.aggregator.key).document
    forged = SigningKey.generate().sign(document.model_copy(update=changes))
    return signed_as(forged, public_key=found.threshold().public_key)


LIES: dict[str, tuple[Callable[[Found], bytes], type[Exception]]] = {
    "the threshold of another campaign": (
        lambda found: found.threshold(1).model_dump_json().encode(),
        WrongDigest,
    ),
    "the starred threshold for the nominal one": (
        lambda found: found.threshold(0, "starred").model_dump_json().encode(),
        TermsDiffer,
    ),
    "a threshold signed by another key": (
        lambda found: (
            SigningKey.generate()
            .sign(found.threshold().open(Threshold, key=found.aggregator.key).document)
            .model_dump_json()
            .encode()
        ),
        WrongKey,
    ),
    "a threshold with another's signature": (_forged, WrongSignature),
    "more sites than there are": (lambda found: _forged(found, sites=500), WrongSignature),
    "a changed number": (
        lambda found: signed_as(
            found.threshold(), payload=found.threshold().payload.replace("300", "3000")
        ),
        WrongSignature,
    ),
    "the campaign for the threshold": (
        lambda found: found.owner().signed_campaign(found.digests[0]).model_dump_json().encode(),
        WrongSignature,
    ),
}


@pytest.mark.parametrize(("forge", "error"), LIES.values(), ids=list(LIES))
def test_a_threshold_that_was_not_agreed_on_is_not_believed(
    found: Found, tmp_path: Path, forge: Callable[[Found], bytes], error: type[Exception]
) -> None:
    forged = forge(found)
    saved = tmp_path / "threshold.json"
    with liar(found.aggregator.url, instead("/thresholds/nominal", lambda _: forged)) as server:
        with found.owner(server.url) as owner, pytest.raises(error):
            owner.threshold(found.digests[0])
        ended = tacit(
            tmp_path / "home",
            *("threshold", "get", found.digests[0], "-o", saved, "--json"),
            TACIT_URL=server.url,
            TACIT_KEY=found.aggregator.key,
            TACIT_TOKEN=found.token,
        )
    assert issubclass(error, Untrusted)
    assert (ended.returncode, told(ended)["error"]) == (6, error.__name__)
    assert not saved.exists()


def test_without_a_lie_the_same_threshold_is_believed(found: Found, tmp_path: Path) -> None:
    saved = tmp_path / "threshold.json"
    with liar(found.aggregator.url, lambda request, forward: forward(request)) as server:
        with found.owner(server.url) as owner:
            threshold = owner.threshold(found.digests[0])
        ended = tacit(
            tmp_path / "home",
            *("threshold", "get", found.digests[0], "-o", saved, "--json"),
            TACIT_URL=server.url,
            TACIT_KEY=found.aggregator.key,
            TACIT_TOKEN=found.token,
        )
    assert ended.returncode == 0, ended.stderr
    assert threshold.sets(np.eye(3)).shape == (3, 3)
    assert saved.exists()


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (lambda found: found.owner().signed_campaign(found.digests[1]), WrongDigest),
        (
            lambda found: SigningKey.generate().sign(
                found.owner().campaign(found.digests[0]).document
            ),
            WrongKey,
        ),
    ],
    ids=["another campaign", "another key"],
)
def test_a_campaign_that_comes_back_as_another_is_not_believed(
    found: Found, answer: Callable[[Found], Signed], error: type[Exception]
) -> None:
    document = found.owner().campaign(found.digests[0]).document
    told = answer(found).model_dump_json().encode()
    lie = instead(found.digests[0], lambda _: told, "PUT")
    with (
        liar(found.aggregator.url, lie) as server,
        found.owner(server.url) as owner,
        pytest.raises(error),
    ):
        owner.publish(document)


def test_a_status_about_another_campaign_is_not_believed(found: Found) -> None:
    first, second = (digest.encode() for digest in found.digests)
    lie = instead("/status", lambda body: body.replace(first, second))
    with liar(found.aggregator.url, lie) as server, found.owner(server.url) as owner:
        with pytest.raises(NotAServer):
            owner.status(found.digests[0])
        assert owner.status(found.digests[1]).campaign == found.digests[1]
