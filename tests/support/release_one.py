"""A database as the first release left it: plain SQL into the tables of revision 0001."""

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from alembic import command
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
)
from sqlalchemy import Connection, text

from tacit.conformal import CoverageSketch
from tacit.protocol import LabelCampaign, SigningKey, Upload
from tacit_aggregator.database.engine import Database
from tacit_aggregator.database.migrate import configuration
from tests.support.label_campaigns import Reported, campaign_document

SITE = "clinic"
STARRED = '{"payload": "{}", "key": "0", "signature": "0"}'


@dataclass(frozen=True)
class ReleaseOne:
    """What is in it: an open campaign of one site, and one that has closed."""

    campaign: LabelCampaign
    closed: LabelCampaign
    reports: Sequence[Reported]
    uploads: Sequence[Upload]
    """In the order of their numbers; the first is counted, the others wait."""

    NUMBERS = (3, 7, 8)

    def sketch(self, reports: Sequence[Reported]) -> CoverageSketch:
        """What the library counts of these."""
        total = self.campaign.empty_sketch()
        for one in reports:
            total = total.add(one.probabilities, one.labels)
        return total


def fill(url: str, reports: Sequence[Reported], secret: bytes) -> ReleaseOne:
    """Make the tables of the first release, and put a life into them."""
    campaign = campaign_document(planned_n=1000)
    made = ReleaseOne(
        campaign,
        campaign_document(owner="another"),
        reports,
        [one.upload(campaign.digest) for one in reports],
    )
    database = Database(url)
    with database.transaction("release one") as connection:
        config = configuration()
        config.attributes["connection"] = connection
        command.upgrade(config, "0001")
        _fill(connection, made, secret)
    database.close()
    return made


def _fill(connection: Connection, made: ReleaseOne, secret: bytes) -> None:
    key = SigningKey.generate()
    pem = key.private.private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(secret)
    )
    now = time.time()
    _insert(connection, "signing_keys", fingerprint=key.fingerprint, private_pem=pem, created_at=1)
    records = sum(len(one.labels) for one in made.reports)
    _insert_campaign(connection, made.campaign, key, state="open", received=records)
    _insert_campaign(
        connection, made.closed, key, state="closed", received=0, closed_by="plan", closed_at=now
    )
    _insert(
        connection,
        "thresholds",
        campaign=made.closed.digest,
        which="starred",
        signed=STARRED,
        created_at=now,
    )
    first = made.sketch(made.reports[:1])
    _insert(
        connection,
        "sites",
        campaign=made.campaign.digest,
        site=SITE,
        enrolled=1000,
        enrolled_at=now,
        received=records,
        counted=len(made.reports[0].labels),
        dropped=0,
        counted_at=now,
        noisy=first.noisy.astype("<i8").tobytes(),
        every=first.every.astype("<i8").tobytes(),
    )
    for number, upload, one in zip(made.NUMBERS, made.uploads, made.reports, strict=True):
        _insert_upload(connection, number, upload, one, waits=number != made.NUMBERS[0])


def _insert_campaign(
    connection: Connection, campaign: LabelCampaign, key: SigningKey, **values: Any
) -> None:
    signed = key.sign(campaign)
    _insert(
        connection,
        "campaigns",
        digest=campaign.digest,
        payload=signed.payload,
        signed=signed.model_dump_json(),
        key=key.fingerprint,
        title=campaign.title,
        owner=campaign.owner,
        planned_n=campaign.planned_n,
        opens_at=campaign.opens.timestamp(),
        closes_at=campaign.closes.timestamp(),
        created_at=time.time(),
        **values,
    )


def _insert_upload(
    connection: Connection, number: int, upload: Upload, reported: Reported, *, waits: bool
) -> None:
    shared = {"number": number, "campaign": upload.campaign, "site": SITE}
    _insert(
        connection,
        "uploads",
        **shared,
        upload=upload.upload,
        body_hash=hashlib.sha256(upload.to_bytes()).digest(),
        records=upload.records,
        state="accepted" if waits else "counted",
        received_at=time.time(),
    )
    if waits:
        _insert(
            connection,
            "pending",
            **shared,
            records=upload.records,
            labels=reported.labels.tobytes(),
            evidence=reported.probabilities.tobytes(),
            evidence_dtype=reported.probabilities.dtype.name,
            attempts=0,
        )


def _insert(connection: Connection, table: str, **values: Any) -> None:
    names, places = ", ".join(values), ", ".join(f":{name}" for name in values)
    statement = f"INSERT INTO {table} ({names}) VALUES ({places})"  # noqa: S608 -- our own names
    connection.execute(text(statement), values)
