"""Score campaigns on several aggregators behind one address."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tacit.protocol import CurrentRound, Opened, Role, ScoreCampaign
from tacit_client import Owner
from tests.support.aggregator import AggregatorProcess
from tests.support.relay import Relay
from tests.support.replicas import replicas
from tests.support.scene import PATIENT
from tests.support.score_oracle import ScoreOracle
from tests.support.score_scene import (
    ScoreSite,
    create_score_campaign,
    score_sites,
    some_scores,
)

_PACE = 0.02
"""Seconds that every request takes, so that a campaign lasts longer than a restart."""


@dataclass
class ScoreReplicas:
    """Aggregators on one PostgreSQL, and a campaign whose sites see one address only."""

    running: list[AggregatorProcess]
    relay: Relay
    owner: Owner
    campaign: Opened[ScoreCampaign]
    sites: list[ScoreSite]
    questions: dict[int, set[str]] = field(default_factory=dict)
    """What any of the replicas ever asked in a round: the payloads of signed questions."""

    @property
    def oracle(self) -> ScoreOracle:
        """What must hold in the end."""
        return ScoreOracle(self.running[0].settings.database_url, self.campaign, self.sites)

    @contextmanager
    def watched(self) -> Iterator[None]:
        """While this lasts every replica is asked again and again what it asks."""
        over = threading.Event()
        token = self.running[0].token(Role.OWNER, "owner")
        watchers = [
            threading.Thread(target=self._watch, args=(one, token, over)) for one in self.running
        ]
        for watcher in watchers:
            watcher.start()
        try:
            yield
        finally:
            over.set()
            for watcher in watchers:
                watcher.join()

    def check_one_question_per_round(self) -> None:
        """All replicas and all sites have seen the same questions."""
        assert self.questions.keys() <= set(range(self.campaign.document.round_count))
        assert all(len(payloads) == 1 for payloads in self.questions.values())
        seen = {item for site in self.sites for item in site.questions().items()}
        assert len(seen) == len(dict(seen)) == self.campaign.document.round_count

    def _watch(self, replica: AggregatorProcess, token: str, over: threading.Event) -> None:
        path = f"/v1/campaigns/{self.campaign.digest}/round"
        with replica.client(token) as http:
            while not over.wait(0.2):
                try:
                    answer = http.get(path)
                except httpx.TransportError:
                    continue  # it is away
                if answer.status_code == 200:
                    self._note(CurrentRound.model_validate_json(answer.content))

    def _note(self, current: CurrentRound) -> None:
        if current.round is not None and current.question is not None:
            self.questions.setdefault(current.round, set()).add(current.question.payload)


@contextmanager
def score_replicas(
    folder: Path, count: int, names: Sequence[str], each: int, **terms: Any
) -> Iterator[ScoreReplicas]:
    """So many aggregators that run, and sites that have joined a campaign of theirs."""
    with ExitStack() as stack:
        running = stack.enter_context(replicas(folder, count))
        relay = stack.enter_context(Relay(delay=_PACE))
        relay.targets = tuple(one.port for one in running)
        first = running[0]
        token = first.token(Role.OWNER, "owner")
        owner = stack.enter_context(Owner(relay.url, token, first.key, network=PATIENT))
        campaign = create_score_campaign(owner, len(names) * each, **terms)
        sites = score_sites(
            *(first, campaign, folder, some_scores(names, each)),
            per_upload=2,
            relays=dict.fromkeys(names, relay),
        )
        yield ScoreReplicas(running, relay, owner, campaign, sites)
