"""Drawing: policy, budget, coins and outbox in one transaction, once per record."""

import secrets
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.protocol import Column, Features, LabelCampaign, Upload
from tacit_client.coins import Randomized, randomize
from tacit_client.ledger.records import add_records, candidates, hashes_of
from tacit_client.ledger.spending import spend
from tacit_client.outbox import put_upload
from tacit_client.participation import Participation
from tacit_client.records import Records
from tacit_client.transport import Network

MOST_RECORDS = 10_000
"""Records in one upload."""
MOST_EVIDENCE_BYTES = 3 * 2**19
"""Bytes of evidence in one upload: two mebibytes as base64."""


@dataclass(frozen=True)
class Drawn:
    """How many of the given records were drawn now, and how many had been before."""

    drawn: int
    already: int


def draw(part: Participation[LabelCampaign], records: Records) -> Drawn:
    """Randomize the records that were never drawn, and put their uploads into the outbox.

    All in one transaction: after a crash either all of them are drawn or none. A record that was
    drawn before keeps its report, whatever label or evidence is given now.
    """
    key = part.key_for_drawing()
    campaign, number = part.campaign, part.joined.number
    hashes, persons = hashes_of(part.ledger, records.ids, records.persons)
    with (
        part.ledger.transaction("draw reports", advances=True) as connection,
        candidates(connection, number, hashes, persons) as fresh,
    ):
        part.check_candidates(connection)
        if fresh.size:
            reports = randomize(campaign, key, hashes[fresh], records.labels[fresh])
            for rows in upload_rows(len(fresh), part.network, records.evidence_bytes):
                positions = fresh[rows]
                upload = make_upload(
                    campaign, part.joined.digest, records, positions, _part(reports, rows)
                )
                into = put_upload(connection, number, upload)
                add_records(connection, number, into, positions)
            spend(connection, part.joined.epsilon_nano)
    return Drawn(len(fresh), len(records) - len(fresh))


def upload_rows(count: int, network: Network, evidence_bytes: int = 1) -> Iterator[slice]:
    """Runs of rows, with so many bytes of evidence each, that fit into one upload."""
    most = min(network.records_per_upload, MOST_RECORDS, MOST_EVIDENCE_BYTES // evidence_bytes)
    size = max(1, most)
    for start in range(0, count, size):
        yield slice(start, min(start + size, count))


def make_upload(
    campaign: LabelCampaign,
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
