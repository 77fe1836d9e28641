"""The preview of a contribution to a score campaign: one bit of each record, in which round."""

import secrets
from typing import Any

import numpy as np

from tacit.protocol import Opened, RoundQuestion, ScoreCampaign, deal_by_key
from tacit_client.drawing import upload_rows
from tacit_client.errors import EnrolmentClosed
from tacit_client.ledger.dealt import (
    NEVER,
    dealt_count,
    keep_undealt,
    question_digest,
    was_asked,
)
from tacit_client.ledger.records import candidates, check_persons, undrawn
from tacit_client.ledger.spending import check_budget
from tacit_client.outbox import Outbox
from tacit_client.participation import Participation
from tacit_client.preview import NOT_DRAWN, RANDOM_ID, Preview, PreviewColumn
from tacit_client.rounds.dealing import hand_of
from tacit_client.rounds.drawing import make_upload
from tacit_client.rounds.records import ScoreRecords

NOT_ASKED = "(the digest of the question, once it is asked)"


def preview(part: Participation[ScoreCampaign], records: ScoreRecords) -> Preview:
    """All checks of a dealing, and how many records would answer in which round.

    Nothing is scored: what a record answers depends on what it will be asked.
    """
    key = part.key_for_drawing()
    ledger, number, campaign = part.ledger, part.joined.number, part.campaign
    hand = hand_of(part, records)
    fresh = np.flatnonzero(hand.rounds == NEVER)
    if fresh.size and was_asked(ledger, number):
        raise EnrolmentClosed.here(int(fresh.size))
    with (
        ledger.rehearsal() as connection,
        candidates(connection, number, hand.records, hand.persons),
    ):
        check_persons(connection)
        keep_undealt(connection, number)
        check_budget(connection, number, part.joined.epsilon_nano, part.policy)
    rounds = hand.rounds.copy()
    rounds[fresh] = deal_by_key(key, hand.records[fresh], campaign.rounds.shares)
    left = undrawn(ledger, number, hand.records, hand.persons)
    counts = np.bincount(rounds[left], minlength=campaign.round_count)
    sizes, first = _uploads(part, counts.tolist())
    waiting = Outbox(ledger, number).waiting()
    return Preview(
        records=len(records),
        already=len(records) - len(left),
        to_draw=len(left),
        uploads=len(sizes),
        bytes=sum(sizes),
        epsilon=campaign.channel.epsilon,
        waiting=sum(entry.records for entry in waiting),
        waiting_uploads=len(waiting),
        enrolled=dealt_count(ledger, number) + int(fresh.size) or None,
        columns=(PreviewColumn("bits", "uint8", (len(left),), as_it_is=False),),
        first_upload=first,
        rounds=tuple(counts.tolist()),
    )


def _uploads(
    part: Participation[ScoreCampaign], counts: list[int]
) -> tuple[list[int], dict[str, Any] | None]:
    """The sizes of the bodies that would be sent, and the first of them."""
    sizes: list[int] = []
    first: dict[str, Any] | None = None
    digest = part.joined.digest
    for number, count in enumerate(counts):
        # The size of a body does not depend on what is asked.
        asked = RoundQuestion(campaign=digest, round=number, threshold=0.0)
        known = question_digest(part.ledger, part.joined.number, number)
        question = Opened(asked, known or secrets.token_hex(32))
        for rows in upload_rows(count, part.network):
            upload = make_upload(question, np.zeros(rows.stop - rows.start, dtype=np.bool_))
            sizes.append(len(upload.to_bytes()))
            if first is None:
                first = upload.model_dump(mode="json")
                first["upload"], first["bits"]["data"] = RANDOM_ID, NOT_DRAWN
                first["question"] = known or NOT_ASKED
    return sizes, first
