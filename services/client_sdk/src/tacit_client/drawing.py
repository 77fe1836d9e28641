"""Drawing: policy, budget, coins and outbox in one transaction, once per record."""

import secrets
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.protocol import Campaign, Column, Features, Upload
from tacit_client.coins import Randomized, randomize
from tacit_client.dates import check_dates
from tacit_client.ledger import JoinedCampaign, Ledger
from tacit_client.ledger.records import (
    PERSON,
    RECORD,
    Hashes,
    add_records,
    candidates,
    check_persons,
    keyed_hashes,
)
from tacit_client.ledger.spending import check_budget, spend
from tacit_client.outbox import put_upload
from tacit_client.policy import Policy
from tacit_client.records import Records

MOST_RECORDS = 10_000
"""Records in one upload."""
MOST_EVIDENCE_BYTES = 3 * 2**19
"""Bytes of evidence in one upload: two mebibytes as base64."""


@dataclass(frozen=True)
class Drawn:
    """How many of the given records were drawn now, and how many had been before."""

    drawn: int
    already: int


def draw(
    ledger: Ledger,
    joined: JoinedCampaign,
    campaign: Campaign,
    policy: Policy,
    records: Records,
    *,
    per_upload: int = MOST_RECORDS,
) -> Drawn:
    """Randomize the records that were never drawn, and put their uploads into the outbox.

    All in one transaction: after a crash either all of them are drawn or none. A record that was
    drawn before keeps its report, whatever label or evidence is given now.
    """
    key = key_for_drawing(ledger, joined, campaign, policy)
    hashes, persons = hashes_of(ledger, records)
    with (
        ledger.transaction("draw reports", advances=True) as connection,
        candidates(connection, joined.number, hashes, persons) as fresh,
    ):
        check_candidates(connection, ledger, joined, campaign, policy)
        if fresh.size:
            reports = randomize(campaign, key, hashes[fresh], records.labels[fresh])
            for rows in upload_rows(records, len(fresh), per_upload):
                positions = fresh[rows]
                upload = make_upload(
                    campaign, joined.digest, records, positions, _part(reports, rows)
                )
                number = put_upload(
                    connection, joined.number, upload.upload, len(positions), upload.to_bytes()
                )
                add_records(connection, joined.number, number, positions)
            spend(connection, joined.epsilon_nano)
    return Drawn(len(fresh), len(records) - len(fresh))


def check_allowed(joined: JoinedCampaign, campaign: Campaign, policy: Policy) -> None:
    """Refuse a campaign that the policy, as it is now, does not let anything leave for."""
    policy.check_key(joined.key)
    policy.check(campaign)


def key_for_drawing(
    ledger: Ledger, joined: JoinedCampaign, campaign: Campaign, policy: Policy
) -> bytes:
    """The campaign key, if policy and ledger allow to draw for the campaign."""
    check_allowed(joined, campaign, policy)
    ledger.check_not_restored(campaign)
    return joined.usable_key()


def check_candidates(
    connection: sqlite3.Connection,
    ledger: Ledger,
    joined: JoinedCampaign,
    campaign: Campaign,
    policy: Policy,
) -> None:
    """Refuse to draw the candidates, if there are any and one of them must not be drawn."""
    if connection.execute("SELECT 1 FROM temp.candidates LIMIT 1").fetchone():
        check_dates(campaign, ledger.clock())
    check_persons(connection)
    check_budget(connection, joined.epsilon_nano, policy)


def count_fresh(ledger: Ledger, joined: JoinedCampaign, records: Records) -> int:
    """How many of the records were never drawn for the campaign."""
    hashes, persons = hashes_of(ledger, records)
    with (
        ledger.rehearsal() as connection,
        candidates(connection, joined.number, hashes, persons) as fresh,
    ):
        return len(fresh)


def hashes_of(ledger: Ledger, records: Records) -> tuple[Hashes, Hashes]:
    """The keyed hashes of records and persons; a record without a person is its own."""
    secret = ledger.meta.secret
    return (
        keyed_hashes(secret, RECORD, records.ids),
        keyed_hashes(secret, PERSON, records.persons),
    )


def upload_rows(records: Records, count: int, per_upload: int = MOST_RECORDS) -> Iterator[slice]:
    """Runs of rows that fit into one upload each."""
    per_record = np.dtype(records.evidence_dtype).itemsize * max(
        1, int(np.prod(records.evidence.shape[1:], dtype=np.int64))
    )
    size = max(1, min(per_upload, MOST_RECORDS, MOST_EVIDENCE_BYTES // per_record))
    for start in range(0, count, size):
        yield slice(start, min(start + size, count))


def make_upload(
    campaign: Campaign,
    digest: str,
    records: Records,
    positions: NDArray[np.int64],
    reports: Randomized,
) -> Upload:
    """The upload of the records at these positions, under a fresh random id."""
    evidence = Column.of(records.evidence[positions], records.evidence_dtype)
    features = isinstance(campaign.evidence, Features)
    return Upload(
        campaign=digest,
        upload=secrets.token_hex(16),
        labels=Column.of(reports.labels),
        probabilities=None if features else evidence,
        features=evidence if features else None,
        uniforms=None if reports.uniforms is None else Column.of(reports.uniforms),
    )


def _part(reports: Randomized, rows: slice) -> Randomized:
    uniforms = None if reports.uniforms is None else reports.uniforms[rows]
    return Randomized(reports.labels[rows], uniforms)
