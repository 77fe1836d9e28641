"""The trials of the ingest benchmark: labels with probabilities, and bits of score campaigns."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Protocol

import numpy as np

from benchmarks.contestants import Body, Server, Tacit, enrolled
from benchmarks.ingest_stage import Stage, Turn
from benchmarks.synthetic import EPSILON, make_labelled
from tacit.conformal import CoverageSketch
from tacit.mechanisms import BinaryRandomizedResponse, FreshCoins
from tacit.protocol import (
    AnswerUpload,
    Column,
    LabelCampaign,
    Reports,
    RoundQuestion,
    ScoreCampaign,
    ScoreThreshold,
    Upload,
)
from tacit.scores import HPS
from tacit_client import Contributor, Network, Policy
from tacit_client.api import Api
from tacit_client.drawing import draw
from tacit_client.ledger import find_campaign
from tacit_client.participation import Participation
from tacit_client.records import Records

CLASSES = 10
ALPHA = 0.1
PLENTY = 10**9
TACIT = "tacit"
BARE = "bare endpoint"
_PATIENCE = 60.0


@dataclass(frozen=True)
class Case:
    """Uploads of one size, how many of them a turn takes, and the bar of the busy server."""

    name: str
    records: int
    uploads: int
    at_least: float
    bits: bool = False


class Trial(Protocol):
    """One case: a campaign of its own, and the same bodies for both servers turn by turn."""

    def turn(self, connections: int) -> dict[str, Turn]:
        """A turn of each; on our side it is a new site's, so that nothing was seen before."""

    def check(self) -> None:
        """See that what the server found is the library's for the very reports it was sent."""

    @property
    def client_rate(self) -> float | None:
        """Records per second that a site makes ready, where that was measured."""


def trial_of(stage: Stage, case: Case, turns: int) -> Trial:
    """The trial of a case, which will have so many turns."""
    return BitTrial(stage, case, turns) if case.bits else LabelTrial(stage, case)


class LabelTrial:
    """Randomized labels with probabilities: done when they are in the sketch."""

    def __init__(self, stage: Stage, case: Case) -> None:
        self._stage = stage
        self._sites = 0
        self.campaign = stage.owner.create(
            title=case.name,
            classes=[f"class {number}" for number in range(CLASSES)],
            epsilon=EPSILON,
            alpha=ALPHA,
            planned_n=PLENTY,
            closes=timedelta(days=1),
        )
        invitation = stage.aggregator.invitation(self.campaign.digest, "drawing")
        policy = Policy(may_leave={"probabilities"}, max_epsilon=EPSILON)
        home = stage.folder / f"site-{case.records}"
        with Contributor.join(invitation, home, policy) as contributor:
            self._bodies, self.client_rate = _drawn(contributor, self.campaign.document, case)

    @cached_property
    def _sketch(self) -> CoverageSketch:
        """The library's sketch of the uploads of one turn."""
        campaign = self.campaign.document
        uploads = [Upload.model_validate_json(body.content) for body in self._bodies]
        reports = [Reports.of(upload, campaign) for upload in uploads]
        probabilities = np.concatenate([one.evidence for one in reports])
        labels = np.concatenate([one.labels for one in reports])
        return campaign.empty_sketch().add(probabilities, labels)

    def turn(self, connections: int) -> dict[str, Turn]:
        """A turn of each."""
        n = self._sketch.n
        self._sites += 1
        site = enrolled(
            self._stage.aggregator,
            self._stage.database_url,
            self.campaign.digest,
            f"site {self._sites}",
            records=n,
            counted=self._sites * n,
        )
        servers: dict[str, Server] = {TACIT: site, BARE: self._stage.bare}
        return {
            name: self._stage.turn(server, self._bodies, connections)
            for name, server in servers.items()
        }

    def check(self) -> None:
        """Compare thresholds."""
        campaign = self.campaign.document
        sketch = sum([self._sketch] * self._sites, start=campaign.empty_sketch())
        found = self._stage.owner.threshold(self.campaign.digest).calibration
        if found != sketch.calibrate(campaign.channel, campaign.alpha):
            raise RuntimeError("The server's threshold is not that of the reports it was sent.")


def _drawn(
    contributor: Contributor, campaign: LabelCampaign, case: Case
) -> tuple[list[Body], float]:
    """Check, randomize, write out and note down records, as `contribute` does before it sends."""
    count = case.uploads * case.records
    probabilities, labels = make_labelled(count, CLASSES, np.random.default_rng(count))
    ids = np.arange(count)
    ledger = contributor.ledger
    began = time.perf_counter()
    records = Records.of(campaign, labels, ids, probabilities=probabilities)
    joined = find_campaign(ledger, contributor.digest)
    network = Network(records_per_upload=case.records)
    draw(Participation(ledger, joined, campaign, contributor.policy, network), records)
    rate = count / (time.perf_counter() - began)
    outbox = contributor.outbox
    return [Body(entry.upload, outbox.body(entry.upload)) for entry in outbox.waiting()], rate


class BitTrial:
    """Answers to the question of a round: one site for each turn, all enrolled before it is asked.

    Done when they are answered: the transaction that stores an upload has counted its bits.
    """

    client_rate = None

    def __init__(self, stage: Stage, case: Case, turns: int) -> None:
        self._stage = stage
        n = case.uploads * case.records
        now = datetime.now(UTC).replace(microsecond=0)
        self.campaign = stage.owner.publish(
            ScoreCampaign.of(
                title=case.name,
                owner=stage.owner.token().name,
                classes=[f"class {number}" for number in range(CLASSES)],
                epsilon=EPSILON,
                score=HPS(),
                alpha=ALPHA,
                planned_n=turns * n,
                opens=now,
                enrol_until=now + timedelta(hours=1),
                closes=now + timedelta(days=1),
                round_seconds=3600,
                shares=(1,),
            )
        )
        self._sites = [self._enrolled(f"site {number}", n) for number in range(turns)]
        self._turns = 0
        self._bodies, self._ones = _answers(self.campaign.document, self._question(), case)

    def _enrolled(self, site: str, n: int) -> Tacit:
        stage = self._stage
        digest = self.campaign.digest
        return enrolled(stage.aggregator, stage.database_url, digest, site, records=n, counted=None)

    def _question(self) -> RoundQuestion:
        ends = time.monotonic() + _PATIENCE
        with Api(self._stage.aggregator.url, self._sites[0].token) as api:
            while time.monotonic() < ends:
                asked = api.current_round(self.campaign.digest, after=-1, wait=1.0).question
                if asked is not None:
                    return asked.open(RoundQuestion, key=self._stage.owner.key).document
        raise RuntimeError("The first question was not asked in time.")

    def turn(self, connections: int) -> dict[str, Turn]:
        """A turn of each."""
        site = self._sites[self._turns]
        self._turns += 1
        servers: dict[str, Server] = {TACIT: site, BARE: replace(self._stage.bare, path="/answers")}
        return {
            name: self._stage.turn(server, self._bodies, connections)
            for name, server in servers.items()
        }

    def check(self) -> None:
        """Close the round, and compare its count."""
        self._stage.owner.close(self.campaign.digest)
        found = self._stage.owner.threshold(self.campaign.digest, wait=_PATIENCE).document
        n = sum(AnswerUpload.model_validate_json(body.content).records for body in self._bodies)
        if not isinstance(found, ScoreThreshold):
            raise RuntimeError("This is not the threshold of a score campaign.")
        counted = (found.rounds[0].ones, found.rounds[0].answers)
        if counted != (self._turns * self._ones, self._turns * n):
            raise RuntimeError("The server did not count the answers that it was sent.")


def _answers(
    campaign: ScoreCampaign, question: RoundQuestion, case: Case
) -> tuple[list[Body], int]:
    """Uploads of answers, randomized as sites do, and how many of their bits are 1."""
    count = case.uploads * case.records
    yes = np.random.default_rng(count).random(count) < 1 - ALPHA
    mechanism = BinaryRandomizedResponse.from_channel(campaign.channel)
    bits = mechanism.privatize(yes, FreshCoins()).astype(np.uint8)
    bodies = []
    for number, part in enumerate(np.split(bits, case.uploads)):
        upload = AnswerUpload(
            campaign=question.campaign,
            upload=f"{number:032x}",
            round=question.round,
            question=question.digest,
            bits=Column.of(part),
        )
        bodies.append(Body(upload.upload, upload.to_bytes()))
    return bodies, int(bits.sum())


def best(turns: Sequence[dict[str, Turn]]) -> dict[str, Turn]:
    """The best turn of each server."""
    return {
        name: min((turn[name] for turn in turns), key=lambda turn: turn.timing.counted)
        for name in (TACIT, BARE)
    }
