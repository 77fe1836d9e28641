"""Score campaigns on the stage: sites that answer in rounds, and keep all that they ever drew."""

import sqlite3
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.protocol import AnswerUpload, Opened, ScoreCampaign
from tacit_client import Contribution, Contributor, Network, Owner
from tacit_client.ledger.records import RECORD, keyed_hashes
from tests.support.aggregator import PATIENCE, Aggregator
from tests.support.exactly_once import CLASSES, rows
from tests.support.killable import Kill
from tests.support.relay import Relay
from tests.support.scene import PATIENT, Service, Site

# A campaign that is over leaves no body in a ledger. This copy is made by the very transaction
# that draws, so that the oracle knows every answer that there ever was.
_KEEPING = """
CREATE TABLE kept (upload TEXT PRIMARY KEY, body BLOB NOT NULL);
CREATE TRIGGER keep AFTER INSERT ON uploads
BEGIN INSERT INTO kept VALUES (NEW.upload, NEW.body); END;
"""


def create_score_campaign(owner: Owner, planned_n: int, **terms: Any) -> Opened[ScoreCampaign]:
    """A campaign of scores from 0 to 1 that asks when all planned records are enrolled."""
    usual: dict[str, Any] = {
        "closes": timedelta(hours=1),
        "round_for": timedelta(minutes=10),
        "rounds": 3,
        "least": 1,
        "alpha": 0.2,
        "epsilon": 1.0,  # so that other coins would be seen in the bits
        "classes": CLASSES,
    }
    return owner.create_scores(title="scores", planned_n=planned_n, **usual | terms)


def some_scores(names: Sequence[str], each: int) -> dict[str, NDArray[np.float64]]:
    """Scores of so many records for each site, of every site another law."""
    return {
        name: np.random.default_rng(number).beta(2, 2 + number % 3, each)
        for number, name in enumerate(names)
    }


@dataclass
class ScoreSite(Site):
    """A site whose records have scores; `tacit contribute` runs as a process, or here."""

    scores: NDArray[np.float64] = field(kw_only=True)
    per_upload: int = field(default=10, kw_only=True)
    campaign_key: bytes = field(default=b"", kw_only=True)
    """The key that it drew when it joined, which its ledger forgets in the end."""

    @property
    def ids(self) -> list[str]:
        """The names of its records."""
        return [f"record-{number}" for number in range(len(self.scores))]

    @property
    def records_file(self) -> Path:
        """A file with its records."""
        path = self.folder / "records.npz"
        np.savez(path, ids=np.array(self.ids), scores=self.scores)
        return path

    @property
    def contributing(self) -> tuple[str, ...]:
        """The command that contributes its records."""
        size = str(self.per_upload)
        return ("contribute", str(self.records_file), "--records-per-upload", size)

    def join_here(self) -> None:
        """Join, and keep what is drawn from now on."""
        super().join_here()
        with closing(sqlite3.connect(self.ledger)) as connection:
            connection.executescript(_KEEPING)
        ((self.campaign_key,),) = rows(self.ledger, "SELECT campaign_key FROM campaigns")

    def begin_answering(self, kill: Kill | None = None) -> "subprocess.Popen[bytes]":
        """Contribute as a process, that is not waited for."""
        return self.begin(*self.contributing, kill=kill)

    def answer(self, kill: Kill | None = None) -> "subprocess.CompletedProcess[str]":
        """Contribute as a process, until the search is over or it is killed."""
        return self.tacit(*self.contributing, kill=kill)

    def answer_here(self, network: Network = PATIENT, **options: Any) -> Contribution:
        """Contribute without a process of its own."""
        using = replace(network, records_per_upload=self.per_upload)
        asked = {"wait": PATIENCE, **options}
        with Contributor.open(home=self.home, network=using) as contributor:
            return contributor.contribute(ids=self.ids, scores=self.scores, **asked)

    def drawn(self) -> dict[str, bytes]:
        """Every upload that was ever drawn here, by its name."""
        return dict(rows(self.ledger, "SELECT upload, body FROM kept"))

    def answers(self) -> list[AnswerUpload]:
        """The same, read."""
        return [AnswerUpload.model_validate_json(body) for body in self.drawn().values()]

    def questions(self) -> dict[int, str]:
        """The digest of the one question of each round that it has seen."""
        return dict(rows(self.ledger, "SELECT round, digest FROM questions"))

    @cached_property
    def score_by_hash(self) -> dict[bytes, float]:
        """The scores of its records by the names that its ledger has for them."""
        ((secret,),) = rows(self.ledger, "SELECT secret FROM meta")
        hashes = keyed_hashes(secret, RECORD, self.ids)
        return {
            bytes(hashed): float(score) for hashed, score in zip(hashes, self.scores, strict=True)
        }


def score_sites(
    aggregator: Aggregator,
    campaign: Opened[ScoreCampaign],
    folder: Path,
    scores: Mapping[str, NDArray[np.float64]],
    *,
    per_upload: int = 10,
    relays: Mapping[str, Relay] | None = None,
) -> list[ScoreSite]:
    """Sites that have joined, with the scores of their records; some behind relays of their own."""
    made = []
    for name, of_site in scores.items():
        invitation = aggregator.invitation(campaign.digest, name)
        if relays and name in relays:
            invitation = invitation.model_copy(update={"url": relays[name].url})
        site = ScoreSite(folder / name, invitation, scores=of_site, per_upload=per_upload)
        site.join_here()
        made.append(site)
    return made


@contextmanager
def answering_here(sites: Sequence[ScoreSite], **options: Any) -> Iterator[None]:
    """While this lasts the sites contribute in threads; in the end all of them have."""
    failures: list[BaseException] = []

    def contribute(site: ScoreSite) -> None:
        try:
            site.answer_here(**options)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=contribute, args=(site,), daemon=True) for site in sites]
    for thread in threads:
        thread.start()
    yield
    for thread in threads:
        thread.join(2 * PATIENCE)
    assert not failures, failures
    assert not any(thread.is_alive() for thread in threads), "a site waits for ever"


@contextmanager
def slow_lines(stage: Service, delays: Mapping[str, float]) -> Iterator[dict[str, Relay]]:
    """Relays before the service's, one for each of these sites: its requests take so long."""
    with ExitStack() as stack:
        relays = {name: stack.enter_context(Relay(delay=delay)) for name, delay in delays.items()}
        port = int(stage.url.rpartition(":")[2])
        for relay in relays.values():
            relay.target = port
        yield relays
