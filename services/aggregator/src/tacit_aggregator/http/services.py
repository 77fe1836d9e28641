"""What the routes work with: one of each, made when the application starts."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from tacit.protocol import Problems
from tacit_aggregator.campaigns.documents import Documents
from tacit_aggregator.database.engine import Database
from tacit_aggregator.errors import Refusal
from tacit_aggregator.http.bodies import Bodies
from tacit_aggregator.http.tokens import Tokens
from tacit_aggregator.ingest.writer import Writer
from tacit_aggregator.metrics import Metrics
from tacit_aggregator.models.files import ModelFiles
from tacit_aggregator.results.service import Thresholds
from tacit_aggregator.rounds.thread import Rounds
from tacit_aggregator.rounds.watch import Watch
from tacit_aggregator.scoring.backlog import Backlog
from tacit_aggregator.scoring.counting import Counting
from tacit_aggregator.settings import Settings


@dataclass(frozen=True)
class Services:
    """The parts of a running aggregator."""

    settings: Settings
    database: Database
    secret: bytes
    metrics: Metrics
    tokens: Tokens
    bodies: Bodies
    documents: Documents
    thresholds: Thresholds
    model_files: ModelFiles
    backlog: Backlog
    writer: Writer
    counting: Counting
    rounds: Rounds
    watch: Watch

    def __repr__(self) -> str:
        return "Services()"


def services_of(request: Request) -> Services:
    """The parts of the aggregator that answers this request."""
    services: Services | None = request.app.state.services
    if services is None:
        raise Refusal(Problems.UNAVAILABLE, retry_after=1)
    return services


async def _dependency(request: Request) -> Services:  # async: a plain function costs a thread
    return services_of(request)


Uses = Annotated[Services, Depends(_dependency)]
