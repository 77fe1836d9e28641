"""Campaigns, invitations and records for tests of the client that need no server."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.protocol import Features, Invitation, LabelCampaign, Probabilities, Signed, SigningKey
from tacit.scores import HPS, Score
from tacit_client import Contributor, Ledger, Policy
from tacit_client.joining import join

OPENS = datetime(2026, 1, 1, tzinfo=UTC)
ALLOWING = Policy(may_leave=frozenset({"probabilities", "features"}), max_epsilon=4.0)
NOWHERE = "http://127.0.0.1:9"


@dataclass(frozen=True)
class World:
    """A campaign, the key that signed it, and the invitation of one site."""

    campaign: LabelCampaign
    key: SigningKey
    signed: Signed
    invitation: Invitation

    def join(self, home: Path, policy: Policy = ALLOWING) -> Contributor:
        """The site's contributor, joined with the carried document."""
        return Contributor.join(self.invitation, home, policy, document=self.signed)

    def join_at(self, now: datetime, home: Path, policy: Policy = ALLOWING) -> Contributor:
        """The same on a machine whose clock has stopped at this time."""
        ledger = Ledger.open(home, clock=now.timestamp)
        try:
            joined = join(ledger, self.invitation, policy, document=self.signed, network=None)
            return Contributor(ledger, joined, policy, None)
        except BaseException:
            ledger.close()
            raise


def world(
    *,
    epsilon: float = 1.0,
    k: int = 3,
    evidence: Probabilities | Features | None = None,
    score: Score | None = None,
    opens: datetime = OPENS,
    key: SigningKey | None = None,
    **others: Any,
) -> World:
    """A new campaign of k classes named c0, c1, …"""
    campaign = LabelCampaign.of(
        title="a campaign",
        owner="owner",
        classes=[f"c{index}" for index in range(k)],
        epsilon=epsilon,
        evidence=evidence or Probabilities(),
        score=score or HPS(),
        alpha=0.1,
        planned_n=1000,
        opens=opens,
        closes=opens + timedelta(days=4000),
        **others,
    )
    signer = key or SigningKey.generate()
    invitation = Invitation(
        url=NOWHERE,
        key=signer.fingerprint,
        campaign=campaign.digest,
        site="a site",
        token="tacit_" + "a" * 43,
    )
    return World(campaign, signer, signer.sign(campaign), invitation)


@dataclass(frozen=True)
class Given:
    """Records of a site, with the names of arguments that `contribute` has."""

    labels: NDArray[np.int64]
    ids: list[str]
    probabilities: NDArray[np.float32]

    def arguments(self) -> dict[str, Any]:
        """For a call with `**`."""
        return {"labels": self.labels, "ids": self.ids, "probabilities": self.probabilities}


def given(n: int, k: int = 3, *, seed: int = 0, prefix: str = "r") -> Given:
    """n records with ids r0, r1, …"""
    generator = np.random.default_rng(seed)
    return Given(
        generator.integers(0, k, n),
        [f"{prefix}{index}" for index in range(n)],
        generator.dirichlet(np.ones(k), n).astype(np.float32),
    )
