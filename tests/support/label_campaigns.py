"""Campaigns over HTTP, as an owner and its sites run them: what all have, and those of labels."""

import secrets
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, TypeVar

import httpx
import numpy as np
from numpy.typing import NDArray

from tacit.protocol import (
    Campaign,
    CampaignStatus,
    Column,
    Features,
    LabelCampaign,
    Probabilities,
    Problem,
    Receipt,
    Role,
    SiteStatus,
    Upload,
    label_dtype,
)
from tacit.scores import HPS, Score
from tests.support.aggregator import Aggregator, until

JSON = {"Content-Type": "application/json"}

AnyCampaign = TypeVar("AnyCampaign", bound=Campaign)


def campaign_document(
    *,
    owner: str = "owner",
    k: int = 4,
    planned_n: int = 10_000,
    opens_in: float = -60,
    closes_in: float = 3600,
    evidence: Probabilities | Features | None = None,
    score: Score | None = None,
    delta: float | None = 0.1,
    now: float | None = None,
    **more: Any,
) -> LabelCampaign:
    """A campaign that is open now, unless it is asked to be another."""
    at = datetime.fromtimestamp(int(time.time() if now is None else now), UTC)
    return LabelCampaign.of(
        title="Digits",
        owner=owner,
        classes=[f"class {number}" for number in range(k)],
        evidence=evidence or Probabilities(),
        score=score or HPS(),
        planned_n=planned_n,
        opens=at + timedelta(seconds=opens_in),
        closes=at + timedelta(seconds=closes_in),
        delta=delta,
        **{"epsilon": 2.0, "alpha": 0.2, **more},
    )


@dataclass(frozen=True, eq=False)
class Reported:
    """What a site sends: labels that count as randomized, with probabilities."""

    labels: NDArray[Any]
    probabilities: NDArray[Any]

    @classmethod
    def random(cls, generator: np.random.Generator, n: int, k: int = 4) -> "Reported":
        """Records of no meaning."""
        probabilities = generator.dirichlet(np.ones(k), n).astype(np.float32)
        return cls(generator.integers(0, k, n).astype(label_dtype(k)), probabilities)

    def upload(self, campaign: str, upload: str | None = None) -> Upload:
        """These records as an upload."""
        return Upload(
            campaign=campaign,
            upload=upload or secrets.token_hex(16),
            labels=Column.of(self.labels),
            probabilities=Column.of(self.probabilities),
        )


@dataclass
class Site:
    """A site with its token."""

    name: str
    digest: str
    http: httpx.Client

    def enrol(self, records: int = 10_000) -> SiteStatus:
        """Say how many records there are."""
        answer = self.http.put(f"/v1/campaigns/{self.digest}/enrolment", json={"records": records})
        return SiteStatus.model_validate_json(answer.raise_for_status().content)

    def put(self, upload: Upload) -> httpx.Response:
        """Send an upload."""
        return self.put_bytes(upload.upload, upload.to_bytes())

    def put_bytes(self, upload: str, body: bytes) -> httpx.Response:
        """Send these bytes as an upload."""
        address = f"/v1/campaigns/{self.digest}/uploads/{upload}"
        return self.http.put(address, content=body, headers=JSON)

    def send(self, upload: Upload) -> Receipt:
        """Send an upload that must be accepted."""
        answer = self.put(upload)
        assert answer.status_code == 200, answer.text
        return Receipt.model_validate_json(answer.content)


@dataclass
class CampaignScene(Generic[AnyCampaign]):
    """A campaign on a running aggregator."""

    aggregator: Aggregator
    document: AnyCampaign
    owner: httpx.Client
    stack: ExitStack

    @property
    def digest(self) -> str:
        """The campaign's digest."""
        return self.document.digest

    @property
    def address(self) -> str:
        """Where the campaign is."""
        return f"/v1/campaigns/{self.digest}"

    def invited(self, name: str) -> httpx.Client:
        """What a new site speaks through."""
        token = self.aggregator.token(Role.CONTRIBUTOR, name, self.digest)
        return self.stack.enter_context(self.aggregator.client(token))

    def status(self) -> CampaignStatus:
        """Where the campaign stands, as its owner sees it."""
        answer = self.owner.get(f"{self.address}/status").raise_for_status()
        return CampaignStatus.model_validate_json(answer.content)

    def wait_until(self, state: str) -> CampaignStatus:
        """The status once the campaign is in this state."""
        found: CampaignStatus = until(
            lambda: status if (status := self.status()).state == state else None
        )
        return found

    def threshold(self, which: str = "nominal") -> httpx.Response:
        """The answer to asking for a threshold."""
        return self.owner.get(f"{self.address}/thresholds/{which}")


@dataclass
class Scene(CampaignScene[LabelCampaign]):
    """A label campaign on a running aggregator."""

    sites: dict[str, Site] = field(default_factory=dict)

    def site(self, name: str = "site", enrol: int | None = 10_000) -> Site:
        """A new site, enrolled unless told otherwise."""
        site = self.sites[name] = Site(name, self.digest, self.invited(name))
        if enrol is not None:
            site.enrol(enrol)
        return site

    def wait_until_counted(self, records: int) -> CampaignStatus:
        """The status once so many records are counted and none wait."""

        def counted() -> CampaignStatus | None:
            status = self.status()
            done = status.records.counted == records and not status.records.pending
            return status if done else None

        found: CampaignStatus = until(counted)
        return found


@contextmanager
def created(aggregator: Aggregator, document: Campaign) -> Iterator[tuple[httpx.Client, ExitStack]]:
    """The owner of a campaign that it has created, and what closes the connections of sites."""
    with ExitStack() as stack:
        token = aggregator.token(Role.OWNER, document.owner)
        owner = stack.enter_context(aggregator.client(token))
        answer = owner.put(
            f"/v1/campaigns/{document.digest}", content=document.to_bytes(), headers=JSON
        )
        assert answer.status_code == 201, answer.text
        yield owner, stack


@contextmanager
def scene(aggregator: Aggregator, document: LabelCampaign | None = None) -> Iterator[Scene]:
    """A label campaign that its owner has created."""
    document = document or campaign_document()
    with created(aggregator, document) as (owner, stack):
        yield Scene(aggregator, document, owner, stack)


def problem(answer: httpx.Response) -> Problem:
    """The problem document that an answer must be."""
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    found = Problem.model_validate_json(answer.content)
    assert found.status == answer.status_code
    assert found.request_id == answer.headers["x-request-id"]
    return found


def problem_name(answer: httpx.Response) -> str:
    """The short name of the problem that an answer must be."""
    return problem(answer).type.rpartition(":")[2]
