"""Dealing records out: each gets its round before any question is looked at, and keeps it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.protocol import ScoreCampaign, deal_by_key
from tacit_client.dates import check_not_past
from tacit_client.errors import EnrolmentClosed
from tacit_client.ledger.dealt import (
    NEVER,
    add_dealt,
    keep_undealt,
    last_dealing,
    places_of,
    unanswered_elsewhere,
    was_asked,
)
from tacit_client.ledger.records import Hashes, candidates, check_persons, hashes_of
from tacit_client.ledger.spending import check_budget
from tacit_client.participation import Participation
from tacit_client.rounds.records import ScoreRecords


@dataclass(frozen=True, eq=False, repr=False)
class Hand:
    """The given records: who they are, and in which round each answers."""

    records: Hashes
    persons: Hashes
    rounds: NDArray[np.int64]
    """`NEVER` where a record was not dealt out."""
    dealings: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.records)


def hand_of(part: Participation[ScoreCampaign], records: ScoreRecords) -> Hand:
    """The given records as the ledger knows them."""
    hashes, persons = hashes_of(part.ledger, records.ids, records.persons)
    return Hand(hashes, persons, *places_of(part.ledger, part.joined.number, hashes))


def deal(part: Participation[ScoreCampaign], hand: Hand, *, begun: bool) -> Hand:
    """Give every record that has no round one, at random by the campaign key; none if one may not.

    `begun` says that the first question was asked, of whomever: then no record can be added. The
    records of one call are dealt out among themselves. Each spends its ε when it answers; that
    all of them may is checked here.
    """
    key = part.key_for_drawing()
    number = part.joined.number
    fresh = np.flatnonzero(hand.rounds == NEVER)
    with (
        part.ledger.rehearsal() as connection,
        candidates(connection, number, hand.records, hand.persons),
    ):
        check_persons(connection)
    if not fresh.size:
        return hand
    if begun or was_asked(part.ledger, number):
        raise EnrolmentClosed.here(int(fresh.size))
    check_not_past(part.campaign, part.ledger.clock())
    with (
        part.ledger.transaction("deal records", advances=True) as connection,
        candidates(connection, number, hand.records, hand.persons),
    ):
        keep_undealt(connection, number)
        check_budget(connection, number, part.joined.epsilon_nano, part.policy)
        add_dealt(
            connection,
            number,
            hand.records[fresh],
            hand.persons[fresh],
            deal_by_key(key, hand.records[fresh], part.campaign.rounds.shares),
        )
    places = places_of(part.ledger, number, hand.records)
    return Hand(hand.records, hand.persons, *places)


def check_enrolled(
    part: Participation[ScoreCampaign], hand: Hand, enrolled: int
) -> NDArray[np.int64]:
    """Refuse records that the server has not enrolled.

    The rounds of those that it has, and that have not answered and are not at hand, are returned.
    """
    last = last_dealing(part.ledger, part.joined.number, enrolled)
    late = int(np.count_nonzero(hand.dealings > last))
    if late:
        raise EnrolmentClosed.here(late)
    return unanswered_elsewhere(part.ledger, part.joined.number, hand.records, last)
