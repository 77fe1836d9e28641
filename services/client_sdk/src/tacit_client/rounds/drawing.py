"""Drawing answers: the question, coins, budget and outbox in one transaction, once per record."""

import secrets

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidDocument
from tacit.mechanisms import BinaryRandomizedResponse, RecordCoins
from tacit.protocol import (
    AnswerUpload,
    Column,
    CurrentRound,
    Opened,
    RoundQuestion,
    ScoreCampaign,
    Signed,
    order_by_key,
)
from tacit_client.drawing import upload_rows
from tacit_client.errors import QuestionRefused, SecondQuestion
from tacit_client.ledger.dealt import put_question, question_digest
from tacit_client.ledger.records import Hashes, add_records, candidates, undrawn
from tacit_client.ledger.spending import spend
from tacit_client.outbox import put_upload
from tacit_client.participation import Participation
from tacit_client.rounds.dealing import Hand


def checked_question(
    part: Participation[ScoreCampaign], current: CurrentRound, signed: Signed
) -> Opened[RoundQuestion]:
    """The question, if the pinned key signed it and it is one that this site answers.

    One that the campaign cannot ask, or another one for its round, is `Untrusted`.
    """
    opened = signed.open(RoundQuestion, key=part.joined.key)
    try:
        opened.document.check(part.campaign, part.joined.digest)
    except InvalidDocument as error:
        raise QuestionRefused(f"{error} Nothing was drawn; tell the owner.") from None
    if opened.document.round != current.round:
        raise QuestionRefused("The server asks a question of another round; nothing was drawn.")
    known = question_digest(part.ledger, part.joined.number, opened.document.round)
    if known not in (None, opened.digest):
        raise SecondQuestion
    return opened


def draw_answers(
    part: Participation[ScoreCampaign],
    hand: Hand,
    scores: NDArray[np.float64],
    question: Opened[RoundQuestion],
    signed: Signed,
) -> int:
    """Answer for the records of the question's round that have not answered; how many they are.

    All in one transaction: after a crash the question is stored and all of them are drawn, or
    none is. Records that answered before keep their answers. They go into uploads in a random
    order: a round may close between two, and what it has must not be the beginning of a file.
    """
    key = part.key_for_drawing()
    number, asked = part.joined.number, question.document
    rows = np.flatnonzero(hand.rounds == asked.round)
    rows = rows[order_by_key(key, hand.records[rows])]
    records, persons = hand.records[rows], hand.persons[rows]
    known = question_digest(part.ledger, number, asked.round) is not None
    if known and not undrawn(part.ledger, number, records, persons).size:
        return 0
    with (
        part.ledger.transaction("draw answers", advances=True) as connection,
        candidates(connection, number, records, persons) as fresh,
    ):
        put_question(connection, number, asked.round, question.digest, signed)
        part.check_candidates(connection)
        if fresh.size:
            at_most = scores[rows[fresh]] <= asked.threshold
            bits = randomize(part.campaign, key, records[fresh], at_most)
            for some in upload_rows(len(fresh), part.network):
                upload = make_upload(question, bits[some])
                into = put_upload(connection, number, upload, asked.round)
                add_records(connection, number, into, fresh[some])
            spend(connection, part.joined.epsilon_nano)
    return len(fresh)


def randomize(
    campaign: ScoreCampaign, key: bytes, records: Hashes, at_most: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Bits through the campaign's channel, with the coins of (campaign key, record)."""
    mechanism = BinaryRandomizedResponse.from_channel(campaign.channel)
    return mechanism.privatize(at_most, RecordCoins(key, records, purpose="answers"))


def make_upload(question: Opened[RoundQuestion], bits: NDArray[np.bool_]) -> AnswerUpload:
    """The upload of these answers, under a fresh random id."""
    return AnswerUpload(
        campaign=question.document.campaign,
        upload=secrets.token_hex(16),
        round=question.document.round,
        question=question.digest,
        bits=Column.of(bits.astype(np.uint8)),
    )
