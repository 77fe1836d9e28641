"""What was drawn leaves only if the policy of today lets it."""

from pathlib import Path

import pytest

from tacit.protocol import SigningKey
from tacit_client import Contributor, Network, Policy
from tacit_client.errors import PolicyRefused
from tests.support.client_world import ALLOWING, given, world
from tests.support.small_server import Reply, small_server

WITHDRAWN = {
    "evidence": Policy(max_epsilon=4.0),
    "epsilon": Policy(may_leave=ALLOWING.may_leave, max_epsilon=0.5),
    "key": Policy(
        may_leave=ALLOWING.may_leave,
        pinned_keys=frozenset({SigningKey.generate().fingerprint}),
    ),
}


@pytest.mark.parametrize("policy", WITHDRAWN.values(), ids=list(WITHDRAWN))
def test_resending_under_a_policy_that_was_withdrawn_sends_nothing(
    tmp_path: Path, policy: Policy
) -> None:
    made = world()
    with small_server(lambda *_: Reply()) as server:
        invitation = made.invitation.model_copy(update={"url": server.url})
        home = tmp_path / "home"
        with Contributor.join(invitation, home, ALLOWING, document=made.signed) as site:
            site.export(tmp_path / "bundle", **given(20).arguments())
        network = Network(attempts=1)
        with Contributor.open(home=home, policy=policy, network=network) as site:
            assert len(site.outbox.waiting()) == 1
            with pytest.raises(PolicyRefused):
                site.resend()
            with pytest.raises(PolicyRefused):
                site.export(tmp_path / "again", **given(20).arguments())
            with pytest.raises(PolicyRefused):
                site.preview(**given(20).arguments())
            assert len(site.outbox.waiting()) == 1
    assert server.requests == []
    assert not (tmp_path / "again").exists()
