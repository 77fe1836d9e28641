"""Score campaigns, questions and records for tests of the client that need no server."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.protocol import (
    AnswerUpload,
    CurrentRound,
    Invitation,
    RoundQuestion,
    ScoreCampaign,
    SearchState,
    Signed,
    SigningKey,
)
from tacit.scores import HPS, Score
from tacit_client import Contributor, Ledger, Network, Outbox, Policy
from tacit_client.joining import join
from tacit_client.ledger import find_campaign
from tacit_client.participation import Participation
from tacit_client.rounds.dealing import Hand, deal, hand_of
from tacit_client.rounds.drawing import checked_question, draw_answers
from tacit_client.rounds.records import ScoreRecords
from tests.support.client_world import NOWHERE, OPENS

ROUNDS = 4

Part = Participation[ScoreCampaign]


@dataclass(frozen=True)
class ScoreWorld:
    """A score campaign, the key that signed it, and the invitation of one site."""

    campaign: ScoreCampaign
    key: SigningKey
    signed: Signed
    invitation: Invitation

    def join(self, home: Path, policy: Policy | None = None) -> Contributor:
        """The site's contributor, joined with the carried document."""
        return Contributor.join(self.invitation, home, policy or Policy(), document=self.signed)

    def join_at(self, now: datetime, home: Path, policy: Policy | None = None) -> Contributor:
        """The same on a machine whose clock has stopped at this time."""
        ledger, chosen = Ledger.open(home, clock=now.timestamp), policy or Policy()
        try:
            joined = join(ledger, self.invitation, chosen, document=self.signed, network=None)
            return Contributor(ledger, joined, chosen, None)
        except BaseException:
            ledger.close()
            raise

    def asked(self, number: int, threshold: float = 0.5) -> tuple[CurrentRound, Signed]:
        """The question of a round, as a server tells it."""
        question = RoundQuestion(campaign=self.campaign.digest, round=number, threshold=threshold)
        return self.told(question, number)

    def told(
        self, question: RoundQuestion, number: int, key: SigningKey | None = None
    ) -> tuple[CurrentRound, Signed]:
        """A server's word that this is what is asked in a round."""
        signed = (key or self.key).sign(question)
        current = CurrentRound(
            campaign=self.campaign.digest,
            state=SearchState.OPEN,
            round=number,
            question=signed,
            ends_in=10.0,
            waiting_for="Everybody.",
        )
        return current, signed


def score_world(
    *,
    epsilon: float = 1.0,
    k: int = 3,
    score: Score | None = None,
    opens: datetime = OPENS,
    shares: tuple[int, ...] = (1,) * ROUNDS,
    planned_n: int = 1000,
    **others: Any,
) -> ScoreWorld:
    """A new score campaign of k classes named c0, c1, …"""
    campaign = ScoreCampaign.of(
        title="a score campaign",
        owner="owner",
        classes=[f"c{index}" for index in range(k)],
        epsilon=epsilon,
        score=score or HPS(),
        alpha=0.1,
        planned_n=planned_n,
        opens=opens,
        enrol_until=opens + timedelta(days=1),
        closes=opens + timedelta(days=4000),
        round_seconds=60,
        shares=shares,
        **others,
    )
    signer = SigningKey.generate()
    invitation = Invitation(
        url=NOWHERE,
        key=signer.fingerprint,
        campaign=campaign.digest,
        site="a site",
        token="tacit_" + "a" * 43,
    )
    return ScoreWorld(campaign, signer, signer.sign(campaign), invitation)


def part_of(
    contributor: Contributor, campaign: ScoreCampaign, network: Network | None = None
) -> Part:
    """What the functions of `tacit_client.rounds` work with."""
    joined = find_campaign(contributor.ledger, contributor.digest)
    policy = contributor.policy
    return Participation(contributor.ledger, joined, campaign, policy, network or Network())


@contextmanager
def joined_part(
    world: ScoreWorld, home: Path, policy: Policy | None = None, network: Network | None = None
) -> Iterator[Part]:
    """The part of a site that has joined."""
    with world.join(home, policy) as contributor:
        yield part_of(contributor, world.campaign, network)


def scores(n: int, seed: int = 0) -> NDArray[np.float64]:
    """n scores of HPS."""
    return np.random.default_rng(seed).random(n)


def names(n: int, prefix: str = "r") -> list[str]:
    """Ids of n records."""
    return [f"{prefix}{index}" for index in range(n)]


def records_of(
    part: Part, n: int, prefix: str = "r", persons: list[str] | None = None
) -> ScoreRecords:
    """n records that are given with their scores."""
    return ScoreRecords.of(part.campaign, None, names(n, prefix), persons, scores=scores(n))


def dealt(part: Part, n: int, prefix: str = "r", persons: list[str] | None = None) -> Hand:
    """The same, dealt out."""
    return deal(part, hand_of(part, records_of(part, n, prefix, persons)), begun=False)


def answer(part: Part, hand: Hand, told: tuple[CurrentRound, Signed]) -> int:
    """Answer a question for the records at hand, whose scores are those of `scores`."""
    question = checked_question(part, *told)
    return draw_answers(part, hand, scores(len(hand)), question, told[1])


def waiting_answers(part: Part) -> list[AnswerUpload]:
    """The uploads that wait to be sent, oldest first."""
    outbox = Outbox(part.ledger, part.joined.number)
    bodies = [outbox.body(entry.upload) for entry in outbox.waiting()]
    return [AnswerUpload.model_validate_json(body) for body in bodies]
