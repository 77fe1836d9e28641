"""Answering ends where a server tells nothing new, whatever it says instead."""

import time
from pathlib import Path

import pytest

from tacit.protocol import (
    CurrentRound,
    Enrolment,
    Receipt,
    RoundState,
    RoundStatus,
    SiteStatus,
    Tally,
    UploadState,
)
from tacit_client import sending
from tacit_client.api import Api
from tacit_client.errors import NotAServer
from tacit_client.progress import silent
from tacit_client.rounds.answering import Answering
from tests.support.client_world import NOWHERE
from tests.support.score_world import ScoreWorld, dealt, joined_part, score_world, scores


class Asking(Api):
    """A server that asks these rounds, one after the other, and then from the beginning again."""

    def __init__(self, world: ScoreWorld, *rounds: int) -> None:
        super().__init__(NOWHERE)
        self._world = world
        self._rounds = rounds
        self.asked = 0

    def current_round(self, digest: str, *, after: int = -1, wait: float = 0.0) -> CurrentRound:
        number = self._rounds[self.asked % len(self._rounds)]
        self.asked += 1
        assert self.asked < 100, (digest, after, wait)
        return self._world.asked(number)[0]

    def upload(self, digest: str, upload: str, body: bytes) -> Receipt:
        assert digest in body.decode()
        return Receipt(upload=upload, records=5, state=UploadState.ACCEPTED)

    def done(self, digest: str, number: int, answers: int) -> RoundStatus:
        assert digest == self._world.campaign.digest
        return RoundStatus(
            round=number,
            state=RoundState.OPEN,
            threshold=0.5,
            low=0.0,
            high=1.0,
            answers=answers,
            sites=None,
            coverage=None,
            ends_in=1.0,
            extensions=0,
            waiting_sites=0,
            waiting_for=(),
        )


@pytest.mark.parametrize(("rounds", "answered"), [((0, 1), 10), ((1, 0), 10), ((2,), 5)])
def test_what_is_asked_now_comes_to_an_end_though_a_server_goes_back_and_forth(
    tmp_path: Path, rounds: tuple[int, ...], answered: int
) -> None:
    world = score_world()
    with joined_part(world, tmp_path / "home") as part, Asking(world, *rounds) as server:
        hand = dealt(part, 20)
        answering = Answering(part, server, silent)
        answering.run(hand, scores(20), 0.0)
        assert server.asked <= 3
        assert answering.drawn == answered


def test_rounds_that_follow_one_another_are_all_answered_without_waiting(tmp_path: Path) -> None:
    world = score_world()
    with joined_part(world, tmp_path / "home") as part, Asking(world, 0, 1, 2, 3, 3) as server:
        answering = Answering(part, server, silent)
        assert answering.run(dealt(part, 20), scores(20), 0.0).round == 3
        assert answering.drawn == 20


def test_a_server_that_goes_back_and_forth_is_not_asked_without_end(tmp_path: Path) -> None:
    world = score_world()
    with joined_part(world, tmp_path / "home") as part, Asking(world, 0, 1) as server:
        began = time.monotonic()
        Answering(part, server, silent).run(dealt(part, 20), scores(20), 1.5)
        assert time.monotonic() - began < 10
        assert server.asked < 10


class Enrolling(Api):
    """A server that says how many records the site has enrolled already."""

    def __init__(self, enrolled: int) -> None:
        super().__init__(NOWHERE)
        self._enrolled = enrolled
        self.said: list[int] = []

    def status(self, digest: str) -> object:  # type: ignore[override]  # no more of it is read
        assert digest

        class Status:
            sites = (self._site(self._enrolled),)

        return Status

    def enrol(self, digest: str, records: int) -> SiteStatus:
        assert digest
        self.said.append(records)
        return self._site(records)

    @staticmethod
    def _site(enrolled: int) -> SiteStatus:
        tally = Tally(received=0, pending=0, counted=0, dropped=0)
        return SiteStatus(site="a site", enrolled=enrolled, left=False, records=tally)


def test_more_enrolled_records_than_a_site_can_say_are_no_servers_word() -> None:
    assert Enrolment(records=sending.MOST_ENROLLED)
    with pytest.raises(ValueError, match="less than or equal"):
        Enrolment(records=sending.MOST_ENROLLED + 1)
    with Enrolling(2**53 - 1) as server, pytest.raises(NotAServer, match="more records than any"):
        sending.enrol(server, "0" * 64, "a site", 5)
    with Enrolling(7) as server:
        assert sending.enrol(server, "0" * 64, "a site", 5) == 7
        assert server.said == [7]
