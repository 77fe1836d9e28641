"""The preview: exactly what would leave, with nothing drawn and nothing stored."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tacit.protocol import LabelCampaign, label_dtype
from tacit_client.coins import Randomized
from tacit_client.drawing import make_upload, upload_rows
from tacit_client.ledger.records import candidates, drawn_count, hashes_of
from tacit_client.outbox import Outbox
from tacit_client.participation import Participation
from tacit_client.records import Records

NOT_DRAWN = "(not drawn yet)"
RANDOM_ID = "(random when drawn)"


@dataclass(frozen=True)
class PreviewColumn:
    """One column of the uploads."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    """Over all uploads together."""
    as_it_is: bool
    """Whether it leaves unprotected."""


@dataclass(frozen=True)
class Preview:
    """What a contribution of these records would draw and send."""

    records: int
    already: int
    """Records that were drawn before, and are not drawn again."""
    to_draw: int
    """Of score campaigns: if their rounds are asked, one bit of each."""
    uploads: int
    bytes: int
    """The size of the bodies, exactly."""
    epsilon: float
    """What each record to be drawn spends."""
    waiting: int
    """Records drawn before that the server has not acknowledged; they would be sent as they are."""
    waiting_uploads: int
    enrolled: int | None
    """How many records the server would be told that this site has; None: nothing would be sent."""
    columns: tuple[PreviewColumn, ...]
    first_upload: dict[str, Any] | None = field(repr=False)
    """The first body as it would be sent; what is randomized or random is left open."""
    rounds: tuple[int, ...] = ()
    """Of score campaigns: how many of the records to be drawn answer in each round."""


def preview(part: Participation[LabelCampaign], records: Records) -> Preview:
    """All checks of a drawing, and the uploads it would make but for their random parts."""
    part.key_for_drawing()
    ledger, joined, campaign = part.ledger, part.joined, part.campaign
    hashes, persons = hashes_of(ledger, records.ids, records.persons)
    with (
        ledger.rehearsal() as connection,
        candidates(connection, joined.number, hashes, persons) as fresh,
    ):
        part.check_candidates(connection)
    size, uploads, first = 0, 0, None
    for rows in upload_rows(len(fresh), part.network, records.evidence_bytes):
        blank = _blank(campaign, rows.stop - rows.start)
        upload = make_upload(campaign, joined.digest, records, fresh[rows], blank)
        if first is None:
            first = _left_open(upload.model_dump(mode="json", exclude_none=True))
        size, uploads = size + len(upload.to_bytes()), uploads + 1
    waiting = Outbox(ledger, joined.number).waiting()
    sends = bool(waiting) or fresh.size > 0
    return Preview(
        records=len(records),
        already=len(records) - len(fresh),
        to_draw=len(fresh),
        uploads=uploads,
        bytes=size,
        epsilon=campaign.channel.epsilon,
        waiting=sum(entry.records for entry in waiting),
        waiting_uploads=len(waiting),
        enrolled=drawn_count(ledger, joined.number) + len(fresh) if sends else None,
        columns=_columns(campaign, records, len(fresh)),
        first_upload=first,
    )


def _blank(campaign: LabelCampaign, rows: int) -> Randomized:
    """Reports of the right type and size that say nothing."""
    uniforms = np.zeros(rows) if campaign.conformity_score().randomized else None
    return Randomized(np.zeros(rows, dtype=label_dtype(campaign.k)), uniforms)


def _left_open(body: dict[str, Any]) -> dict[str, Any]:
    body["upload"] = RANDOM_ID
    for name in ("labels", "uniforms"):
        if name in body:
            body[name]["data"] = NOT_DRAWN
    return body


def _columns(campaign: LabelCampaign, records: Records, count: int) -> tuple[PreviewColumn, ...]:
    labels = PreviewColumn("labels", label_dtype(campaign.k), (count,), as_it_is=False)
    evidence = PreviewColumn(
        campaign.evidence.kind,
        records.evidence_dtype,
        (count, *records.evidence.shape[1:]),
        as_it_is=True,
    )
    if not campaign.conformity_score().randomized:
        return labels, evidence
    return labels, evidence, PreviewColumn("uniforms", "float64", (count,), as_it_is=False)
