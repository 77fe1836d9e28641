"""A contribution to a score campaign, from checked records to the end of the search."""

from math import inf

import numpy as np
from numpy.typing import NDArray

from tacit.networks import Predictor
from tacit.protocol import CurrentRound, ScoreCampaign, SearchState
from tacit_client import sending
from tacit_client.api import Api
from tacit_client.contribution import Contribution
from tacit_client.errors import BadRecords, CampaignEnded, RecordsAbsent
from tacit_client.ledger.dealt import NEVER, dealt_count, unanswered_elsewhere
from tacit_client.ledger.records import undrawn
from tacit_client.news import OVER
from tacit_client.participation import Participation
from tacit_client.progress import OnProgress
from tacit_client.rounds.answering import Answering
from tacit_client.rounds.dealing import Hand, check_enrolled, deal, hand_of
from tacit_client.rounds.model import load_model
from tacit_client.rounds.records import ScoreRecords
from tacit_client.rounds.scoring import Scored, scores_of

Part = Participation[ScoreCampaign]

_ADDING = (
    " With wait=False, or --no-wait, the given ones are enrolled beside them, and nothing is"
    " answered."
)


def contribute(
    part: Part,
    api: Api,
    records: ScoreRecords,
    wait: float | bool,
    on_progress: OnProgress,
    *,
    absent_ok: bool = False,
) -> Contribution:
    """Deal out the records, enrol them, score them, and answer round after round.

    `wait` is for how many seconds; True: until the search is over, False: what is asked now.
    Enrolled records that have not answered and are not given now never could: `RecordsAbsent`,
    before anything is drawn, unless that is `absent_ok`. While no question was asked, `wait=False`
    adds records to those of earlier calls, and then all of them answer together.
    """
    status = api.status(part.joined.digest)
    part.check_not_left(status)
    part.key_for_drawing()
    hand = hand_of(part, records)
    answering = Answering(part, api, on_progress)
    if status.state in OVER:
        return _finish(part, api, answering, hand)
    part.check_alone(status, dealt_count(part.ledger, part.joined.number))
    # What a model makes of the records must not decide whether they are enrolled.
    model = _model(part, api, records, hand)
    asked = answering.ask()
    if asked.state is SearchState.OVER:
        return _finish(part, api, answering, hand)
    seconds = _seconds(wait)
    if asked.state is SearchState.ENROLLING and seconds and not absent_ok:
        _refuse_absent(unanswered_elsewhere(part.ledger, part.joined.number, hand.records), _ADDING)
    hand = deal(part, hand, begun=asked.state is SearchState.OPEN)
    absent = _enrol(part, api, hand)
    if asked.round is not None and not absent_ok:
        _refuse_absent(absent[absent >= asked.round])
    elif absent.size and not absent_ok:
        return _told(part, api, answering, hand, asked)
    if seconds:
        answering.ask()  # what was said before this site enrolled is no longer true
    scored = _scored(part, records, hand, model, on_progress)
    last = answering.run(hand, scored.scores, seconds)
    return _told(part, api, answering, hand, last, failed=scored.failed)


def resend(part: Part, api: Api, on_progress: OnProgress) -> Contribution:
    """Send what waits, and mark the open round done if its answers were drawn."""
    part.check_allowed()
    answering = Answering(part, api, on_progress)
    current = answering.ask()
    answering.send_waiting(current)
    if current.round is not None and answering.knows(current):
        answering.mark_done(current.round)
    return Contribution.of(answering.sent)


def _model(part: Part, api: Api, records: ScoreRecords, hand: Hand) -> Predictor | None:
    """The campaign's model, if there is anything that it must score."""
    left = undrawn(part.ledger, part.joined.number, hand.records, hand.persons)
    if records.features is None or not left.size:
        return None
    if part.campaign.model is None:
        raise BadRecords("This campaign names no model that could score features.")
    return load_model(part.ledger.home, api, part.campaign.model, part.campaign.k)


def _scored(
    part: Part,
    records: ScoreRecords,
    hand: Hand,
    model: Predictor | None,
    on_progress: OnProgress,
) -> Scored:
    def load() -> Predictor:
        if model is None:  # then there was nothing to score
            raise BadRecords
        return model

    return scores_of(
        part.campaign,
        records,
        undrawn(part.ledger, part.joined.number, hand.records, hand.persons),
        key=part.key_for_drawing(),
        hashes=hand.records,
        load=load,
        on_progress=on_progress,
    )


def _enrol(part: Part, api: Api, hand: Hand) -> NDArray[np.int64]:
    """Say how many records this site has; the rounds of those that were not given now."""
    dealt = dealt_count(part.ledger, part.joined.number)
    part.ledger.check_witnessed()
    enrolled = sending.enrol(api, part.joined.digest, part.joined.site, dealt)
    return check_enrolled(part, hand, enrolled)


def _refuse_absent(rounds: NDArray[np.int64], more: str = "") -> None:
    if rounds.size:
        raise RecordsAbsent.so_many(int(rounds.size), more)


def _finish(part: Part, api: Api, answering: Answering, hand: Hand) -> Contribution:
    """Send what waits to a search that is over; refuse records that it never knew."""
    last = answering.ask()
    answering.send_waiting(last)
    told = _told(part, api, answering, hand, last)
    if (hand.rounds == NEVER).any():
        raise CampaignEnded
    return told


def _told(
    part: Part,
    api: Api,
    answering: Answering,
    hand: Hand,
    last: CurrentRound,
    failed: int = 0,
) -> Contribution:
    """What became of the given records; if the search is over, the ledger is told first."""
    opened = last.round or 0
    if last.state is SearchState.OVER:
        answering.send_waiting(last)
        opened = len(sending.refresh(part.ledger, part.joined, api).rounds)
    left = undrawn(part.ledger, part.joined.number, hand.records, hand.persons)
    missed = int(np.count_nonzero(hand.rounds[left] < opened))
    return Contribution.of(
        answering.sent,
        records=len(hand),
        drawn=answering.drawn,
        already=len(hand) - len(left) - answering.drawn,
        missed=missed,
        unasked=len(left) - missed,
        absent=len(unanswered_elsewhere(part.ledger, part.joined.number, hand.records)),
        failed=failed,
    )


def _seconds(wait: float | bool) -> float:
    if isinstance(wait, bool):
        return inf if wait else 0.0
    return max(0.0, float(wait))
