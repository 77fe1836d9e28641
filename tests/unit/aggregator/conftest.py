"""A migrated database in a file, with its settings and its first signing key."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tacit.protocol import Features, LabelCampaign, Probabilities
from tacit.scores import HPS
from tacit_aggregator.cli import app
from tacit_aggregator.database.engine import Database
from tacit_aggregator.database.migrate import upgrade
from tacit_aggregator.database.tables import campaigns
from tacit_aggregator.keys.secret import ensure_secret
from tacit_aggregator.keys.service import current_key, ensure_key, read_secret
from tacit_aggregator.settings import Settings


@dataclass(frozen=True)
class Aggregator:
    """What a command and a service function work with."""

    settings: Settings
    database: Database
    secret: bytes

    def run(self, *arguments: str) -> Result:
        """Run a command on this database, in this process."""
        variables = {"TACIT_DATABASE_URL": self.settings.database_url}
        return CliRunner().invoke(app, arguments, env=variables)

    def add_campaign(self, evidence: Probabilities | Features, state: str = "open") -> str:
        """Store a campaign as creating one does: its digest."""
        now = datetime.now(UTC).replace(microsecond=0)
        campaign = LabelCampaign.of(
            title="Pathology",
            owner="ada",
            classes=("a", "b", "c"),
            epsilon=2.0,
            evidence=evidence,
            score=HPS(),
            alpha=0.1,
            planned_n=100,
            opens=now,
            closes=now + timedelta(days=1),
        )
        with self.database.transaction("add campaign") as connection:
            key = current_key(connection, self.secret)
            connection.execute(
                campaigns.insert().values(
                    digest=campaign.digest,
                    payload=campaign.to_bytes().decode(),
                    signed=key.sign(campaign).model_dump_json(),
                    key=key.fingerprint,
                    title=campaign.title,
                    owner=campaign.owner,
                    planned_n=campaign.planned_n,
                    opens_at=campaign.opens.timestamp(),
                    closes_at=campaign.closes.timestamp(),
                    created_at=time.time(),
                    state=state,
                    received=0,
                )
            )
        return campaign.digest


@pytest.fixture
def aggregator(tmp_path: Path) -> Iterator[Aggregator]:
    settings = Settings(database_url=f"sqlite:///{tmp_path}/aggregator.db")
    upgrade(settings.database_url)
    ensure_secret(settings)
    secret = read_secret(settings)
    database = Database(settings.database_url)
    with database.transaction("make first key") as connection:
        ensure_key(connection, secret, time.time())
    yield Aggregator(settings, database, secret)
    database.close()
