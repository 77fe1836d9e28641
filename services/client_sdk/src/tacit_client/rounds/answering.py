"""Answering round after round: poll, verify, draw, send, mark done; until the search is over."""

import time

import numpy as np
from numpy.typing import NDArray

from tacit.protocol import LONGEST_POLL, CurrentRound, RoundStatus, ScoreCampaign, SearchState
from tacit_client import sending
from tacit_client.api import Api
from tacit_client.errors import AnswersMissing, TacitClientError
from tacit_client.ledger.dealt import answers_taken, dealt_count, question_digest
from tacit_client.outbox import Outbox, OutboxEntry
from tacit_client.participation import Participation
from tacit_client.progress import OnProgress
from tacit_client.rounds.dealing import Hand
from tacit_client.rounds.drawing import checked_question, draw_answers
from tacit_client.rounds.waiting import Patience
from tacit_client.transport import may_be_tried_again

_SHORTEST_POLL = 1.0
"""Seconds that a poll must have taken if it told nothing new, or there is a pause after it."""

NOTHING = -1
"""Instead of a round: none was answered yet."""


class Answering:
    """One call's way through the rounds of a campaign."""

    def __init__(
        self, part: Participation[ScoreCampaign], api: Api, on_progress: OnProgress
    ) -> None:
        self._part = part
        self._api = api
        self._tell = on_progress
        self._outbox = Outbox(part.ledger, part.joined.number)
        self.sent: list[OutboxEntry] = []
        """The uploads that were sent, with the states that were answered."""
        self.drawn = 0

    def run(self, hand: Hand, scores: NDArray[np.float64], wait: float) -> CurrentRound:
        """Answer what is asked until the search is over or `wait` seconds have passed.

        With `wait` 0 it answers what is asked now, and ends where no round follows that is beyond
        those it has answered. How the search stood at last is returned.
        """
        ends = time.monotonic() + wait
        patience = Patience(self._part.network.patience_seconds)
        answered = furthest = NOTHING
        while True:
            left = max(0.0, ends - time.monotonic())
            began = time.monotonic()
            try:
                current = self.ask(answered, left)
                answered = self._step(current, hand, scores, answered)
                patience.restored()
            except TacitClientError as error:
                if not left or not may_be_tried_again(error):
                    raise
                self._pause(min(left, patience.pause(error)), answered)
                continue
            if current.state is SearchState.OVER or (answered <= furthest and not left):
                return current
            if answered <= furthest and time.monotonic() - began < min(_SHORTEST_POLL, left):
                time.sleep(min(patience.idle(), left))
            furthest = max(furthest, answered)

    def ask(self, answered: int = NOTHING, wait: float = 0.0) -> CurrentRound:
        """What is asked now, or once it is another round; and tell what is waited for."""
        # A poll must end before this side takes its silence for a broken connection.
        longest = min(LONGEST_POLL, max(0.0, self._part.network.read_seconds - 5.0))
        current = self._api.current_round(
            self._part.joined.digest, after=answered, wait=min(wait, longest)
        )
        self._say(current.round or 0, current.waiting_for, over=current.state is SearchState.OVER)
        return current

    def send_waiting(self, current: CurrentRound) -> None:
        """Send what was drawn for the open round and those before it; if all is over, everything.

        The answers of a round that has closed are late. What belongs to a round that this server
        has not asked yet stays here: it was restored from a copy, and may ask it again.
        """
        waiting = self._outbox.waiting()
        if current.state is not SearchState.OVER:
            newest = NOTHING if current.round is None else current.round
            waiting = [entry for entry in waiting if (entry.round or 0) <= newest]
        self._send(waiting)

    def mark_done(self, number: int) -> None:
        """Say that all answers of a round were sent; send again what the server has lost."""
        part = self._part
        taken = answers_taken(part.ledger, part.joined.number, number)
        try:
            status = self._api.done(part.joined.digest, number, taken)
        except AnswersMissing:
            gone = sending.lost(self._outbox, part.joined, self._api)
            self._send([entry for entry in gone if entry.round == number])
            status = self._api.done(part.joined.digest, number, taken)
        self._say(number, _waits(status, part.campaign.round_count))

    def knows(self, current: CurrentRound) -> bool:
        """Whether the open round's question is the one that was answered here."""
        if current.round is None or current.question is None:
            return False
        part = self._part
        opened = checked_question(part, current, current.question)
        return question_digest(part.ledger, part.joined.number, current.round) == opened.digest

    def _step(
        self, current: CurrentRound, hand: Hand, scores: NDArray[np.float64], answered: int
    ) -> int:
        """Answer the open round, if it is another than the last; which was answered last."""
        part = self._part
        if current.state is SearchState.ENROLLING and answered != NOTHING:
            # The server was restored from a copy of before the first question.
            enrolled = dealt_count(part.ledger, part.joined.number)
            sending.enrol(self._api, part.joined.digest, part.joined.site, enrolled)
            return NOTHING
        if current.round is None or current.question is None or current.round == answered:
            return answered
        question = checked_question(part, current, current.question)
        self.drawn += draw_answers(part, hand, scores, question, current.question)
        self.send_waiting(current)
        self.mark_done(current.round)
        return current.round

    def _send(self, uploads: list[OutboxEntry]) -> None:
        part = self._part
        self.sent += sending.send_uploads(part.ledger, part.joined, self._api, uploads, self._tell)

    def _say(self, number: int, sentence: str, *, over: bool = False) -> None:
        total = self._part.campaign.round_count
        self._tell(total if over else number, total, f"rounds: {sentence}")

    def _pause(self, seconds: float, answered: int) -> None:
        self._say(max(0, answered), f"The server does not answer; asked again in {seconds:.0f} s.")
        time.sleep(seconds)


def _waits(status: RoundStatus, total: int) -> str:
    """What an answered round waits for, in a sentence."""
    place = f"Round {status.round + 1} of {total}"
    if not status.waiting_sites:
        return f"{place} is answered."
    sites = "1 other site" if status.waiting_sites == 1 else f"{status.waiting_sites} other sites"
    return f"{place} is answered, and waits for {sites}; it may close in {status.ends_in:.0f} s."
