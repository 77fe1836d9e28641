"""Score campaigns at a real aggregator, and sites that answer in them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from tacit.protocol import Invitation, Opened, Role, RoundState, ScoreCampaign
from tacit_client import Contribution, Contributor, Network, Owner, Policy
from tacit_client.api import Api
from tests.support.aggregator import AggregatorProcess, as_process, migrated, until
from tests.support.score_campaigns import pass_deadline
from tests.support.score_world import names, scores

HASTY = Network(attempts=3, longest_wait=0.05)
SMALL_UPLOADS = replace(HASTY, records_per_upload=10)
HALF = 60
"""Records of each of two sites; together as many as are planned."""
HELD_BACK = 2 * HALF + 1
"""One more is planned: nothing is asked before `Stage.ask_first` enrols it."""


@dataclass(frozen=True)
class Stage:
    """An aggregator as a process, and an owner."""

    aggregator: AggregatorProcess
    owner: Owner

    def create(self, **changes: Any) -> Opened[ScoreCampaign]:
        """A campaign of four rounds for 120 records, in which no round ends by its deadline."""
        terms: dict[str, Any] = {
            "title": "three classes in rounds",
            "classes": ["c0", "c1", "c2"],
            "epsilon": 2.0,
            "alpha": 0.1,
            "planned_n": 2 * HALF,
            "rounds": 4,
            "least": 1,
            "round_for": timedelta(minutes=10),
            "enrol_until": timedelta(minutes=10),
            "closes": timedelta(hours=1),
        }
        return self.owner.create_scores(**(terms | changes))

    def invitation(self, campaign: Opened[ScoreCampaign], site: str = "a site") -> Invitation:
        """A site's invitation."""
        return self.aggregator.invitation(campaign.digest, site)

    def join(
        self,
        campaign: Opened[ScoreCampaign],
        home: Path,
        site: str = "a site",
        network: Network = HASTY,
    ) -> Contributor:
        """A site that has joined."""
        return Contributor.join(self.invitation(campaign, site), home, Policy(), network=network)

    def two(self, campaign: Opened[ScoreCampaign], folder: Path) -> tuple[Contributor, Contributor]:
        """Two sites that have joined."""
        north = self.join(campaign, folder / "north", "north")
        return north, self.join(campaign, folder / "south", "south")

    def ask_first(self, campaign: Opened[ScoreCampaign]) -> None:
        """Have the first question asked of the sites that have enrolled `HELD_BACK - 1` records.

        The site whose enrolment completes a plan may find the first round open before it has
        returned, and answer it at once. So a third one does: it enrols the last record, and leaves
        when the question is there. It is waited for in no round.
        """
        last = self.invitation(campaign, "last")
        with Api(last.url, last.token, HASTY) as api:
            api.enrol(campaign.digest, 1)
            until(lambda: self.owner.status(campaign.digest).rounds)
            api.leave(campaign.digest)

    def pass_deadline(self, campaign: Opened[ScoreCampaign]) -> None:
        """Have the time of the open round be over, without waiting for it."""
        pass_deadline(self.aggregator.settings.database_url, campaign.digest)


@contextmanager
def staged(folder: Path) -> Iterator[Stage]:
    """A stage of its own."""
    with as_process(migrated(folder)) as aggregator:
        token = aggregator.token(Role.OWNER, "owner")
        with Owner(aggregator.url, token, aggregator.key, network=HASTY) as owner:
            yield Stage(aggregator, owner)


def contributed(
    site: Contributor, prefix: str = "n", n: int = HALF, wait: float | bool = True
) -> Contribution:
    """Contribute n records of given scores."""
    return site.contribute(ids=names(n, prefix), scores=scores(n), wait=wait)


def is_asked(site: Contributor, number: int) -> bool:
    """Whether a round is open."""
    rounds = site.status().rounds
    return len(rounds) > number and rounds[number].state is RoundState.OPEN
