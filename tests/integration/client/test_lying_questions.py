"""A server that lies about what is asked gets no answer that it should not have."""

import shutil
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tacit.errors import WrongKey
from tacit.protocol import CurrentRound, RoundQuestion, SearchState, SigningKey
from tacit_client import Contributor, Membership, Policy, ReportState
from tacit_client.api import Api
from tacit_client.errors import QuestionRefused, SecondQuestion, TransportError, Unreachable
from tests.integration.client.score_scenes import (
    HALF,
    HASTY,
    SMALL_UPLOADS,
    Stage,
    contributed,
    is_asked,
    staged,
)
from tests.support.aggregator import until
from tests.support.liar import Forward, instead, liar
from tests.support.score_world import names, scores
from tests.support.small_server import Reply, Request

BRIEF = replace(HASTY, attempts=1, read_seconds=5.2)
"""Polls of a fifth of a second."""
FORGER = SigningKey.generate()


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with staged(tmp_path_factory.mktemp("aggregator")) as made:
        yield made


def question_of(body: bytes) -> tuple[CurrentRound, RoundQuestion | None]:
    current = CurrentRound.model_validate_json(body)
    if current.question is None:
        return current, None
    return current, RoundQuestion.from_bytes(current.question.payload.encode())


def asking(change: Callable[[RoundQuestion], RoundQuestion]) -> Callable[[bytes], bytes]:
    """Say that another question was asked, with a signature of the server's own making."""

    def answer(body: bytes) -> bytes:
        current, question = question_of(body)
        if question is None:
            return body
        lie = current.model_copy(update={"question": FORGER.sign(change(question))})
        return lie.model_dump_json().encode()

    return answer


@pytest.mark.parametrize("change", [{"threshold": 0.4}, {}], ids=["another", "the same"])
def test_a_question_that_another_key_signed_is_not_answered(
    stage: Stage, tmp_path: Path, change: dict[str, Any]
) -> None:
    campaign = stage.create(planned_n=HALF)
    lie = asking(lambda question: question.model_copy(update=change))
    with liar(stage.aggregator.url, instead("/round", lie)) as server:
        lying = stage.invitation(campaign).model_copy(update={"url": server.url})
        with Contributor.join(lying, tmp_path / "home", Policy(), network=HASTY) as site:
            with pytest.raises(WrongKey):
                contributed(site)
            assert site.outbox.entries() == []
            assert site.ledger.read("SELECT * FROM questions") == []
            assert site.ledger.read("SELECT count(*) FROM dealt") == [(HALF,)]
    assert stage.owner.status(campaign.digest).records.received == 0


def asked_elsewhere(stage: Stage) -> CurrentRound:
    """What another campaign of the same server asks, truly signed."""
    other = stage.create(planned_n=HALF)
    with Api(stage.aggregator.url, stage.invitation(other).token, HASTY) as api:
        api.enrol(other.digest, HALF)
        until(lambda: api.current_round(other.digest).question)
        return api.current_round(other.digest)


def test_the_question_of_another_campaign_is_not_answered(stage: Stage, tmp_path: Path) -> None:
    campaign = stage.create(planned_n=HALF)
    told = asked_elsewhere(stage).model_copy(update={"campaign": campaign.digest})

    def lie(body: bytes) -> bytes:
        return told.model_dump_json().encode() if b"payload" in body else body

    with liar(stage.aggregator.url, instead("/round", lie)) as server:
        lying = stage.invitation(campaign).model_copy(update={"url": server.url})
        with Contributor.join(lying, tmp_path / "home", Policy(), network=HASTY) as site:
            with pytest.raises(QuestionRefused, match="another campaign"):
                contributed(site)
            assert site.outbox.entries() == []


def test_a_question_other_than_the_one_that_was_seen_is_not_answered(
    stage: Stage, tmp_path: Path
) -> None:
    campaign = stage.create(planned_n=HALF)
    with stage.join(campaign, tmp_path / "home") as site:
        contributed(site, n=HALF - 1, wait=False)
        with stage.join(campaign, tmp_path / "other", "other") as other:
            contributed(other, "o", n=1, wait=False)
        with site.ledger.transaction("see another question") as connection:
            connection.execute("INSERT INTO questions VALUES (1, 0, ?, '{}')", ("0" * 64,))
        until(lambda: is_asked(site, 0))
        with pytest.raises(SecondQuestion):
            contributed(site, n=HALF - 1)
        assert site.outbox.entries() == []


def test_an_old_round_asked_again_draws_nothing_and_does_not_spin(
    stage: Stage, tmp_path: Path
) -> None:
    campaign = stage.create()
    first: list[bytes] = []

    def lie(body: bytes) -> bytes:
        current, question = question_of(body)
        if question is None:
            return body
        if current.round == 0 and not first:
            first.append(body)
        return first[0] if first else body

    with (
        stage.join(campaign, tmp_path / "other", "other") as other,
        liar(stage.aggregator.url, instead("/round", lie)) as server,
    ):
        lying = stage.invitation(campaign).model_copy(update={"url": server.url})
        with Contributor.join(lying, tmp_path / "home", Policy(), network=HASTY) as site:
            contributed(other, "o", wait=False)
            until(lambda: contributed(site, wait=False).already)
            contributed(other, "o", wait=False)
            asked = len(server.requests)
            done = contributed(site, wait=2.0)
            assert (done.drawn, done.already) == (0, HALF // 4)
            assert len(server.requests) - asked < 20
            assert len(site.outbox.entries()) == 1


def enrolling(body: bytes) -> bytes:
    """Say that nothing was asked yet, as a server does that was restored from an early copy."""
    current = CurrentRound.model_validate_json(body)
    changes = {"state": SearchState.ENROLLING, "round": None, "question": None}
    return current.model_copy(update=changes).model_dump_json().encode()


def test_answers_to_a_round_that_a_server_has_not_asked_yet_stay_here_until_it_does(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise Unreachable

    campaign = stage.create(planned_n=HALF)
    with stage.join(campaign, tmp_path / "home") as site, monkeypatch.context() as patch:
        patch.setattr(Api, "upload", broken)
        with pytest.raises(Unreachable):
            until(lambda: contributed(site, wait=False).drawn)
    with liar(stage.aggregator.url, instead("/round", enrolling)) as server:
        lying = stage.invitation(campaign).model_copy(update={"url": server.url})
        with Contributor.join(lying, tmp_path / "home", Policy(), network=HASTY) as site:
            assert site.resend().uploads == 0
            assert site.outbox.counts()[ReportState.DRAWN] == HALF // 4
    with stage.join(campaign, tmp_path / "home") as site:
        assert site.resend().accepted == HALF // 4


def test_a_server_that_goes_away_is_waited_for_and_then_is_an_error(
    stage: Stage, tmp_path: Path
) -> None:
    campaign = stage.create(planned_n=HALF)
    away = threading.Event()
    told: list[str] = []

    def moody(request: Request, forward: Forward) -> Reply | None:
        return None if away.is_set() else forward(request)

    def on_progress(_done: int, _total: int, what: str) -> None:
        told.append(what)
        if "Round 2" in what and not any("does not answer" in each for each in told):
            away.set()
            threading.Timer(1.5, away.clear).start()

    with liar(stage.aggregator.url, moody) as server:
        lying = stage.invitation(campaign).model_copy(update={"url": server.url})
        patient = replace(BRIEF, patience_seconds=30.0)
        with Contributor.join(lying, tmp_path / "home", Policy(), network=patient) as site:
            done = site.contribute(ids=names(HALF), scores=scores(HALF), on_progress=on_progress)
            assert (done.accepted, site.membership) == (HALF, Membership.ENDED)
        assert any("The server does not answer; asked again in" in what for what in told)
        campaign = stage.create(planned_n=2 * HALF)
        lying = stage.invitation(campaign).model_copy(update={"url": server.url})
        hasty = replace(BRIEF, patience_seconds=0.5)
        with Contributor.join(lying, tmp_path / "hasty", Policy(), network=hasty) as site:
            contributed(site, wait=False)
            began = time.monotonic()
            threading.Timer(0.3, away.set).start()
            with pytest.raises(TransportError):
                contributed(site)
            assert time.monotonic() - began < 60


def copied(source: Path, target: Path) -> None:
    with closing(sqlite3.connect(source)) as one, closing(sqlite3.connect(target)) as other:
        one.backup(other)


def test_an_aggregator_that_was_restored_gets_again_what_it_has_lost(tmp_path: Path) -> None:
    (tmp_path / "server").mkdir()
    with staged(tmp_path / "server") as stage:
        campaign = stage.create()
        north = stage.join(campaign, tmp_path / "north", "north", SMALL_UPLOADS)
        south = stage.join(campaign, tmp_path / "south", "south")
        with north, south:
            contributed(north, "n", wait=False)
            contributed(south, "s", wait=False)
            database, backup = stage.aggregator.database_file, tmp_path / "backup.db"
            until(lambda: is_asked(north, 0))
            copied(database, backup)
            before = contributed(north, "n", wait=False)
            assert before.accepted >= HALF // 4
            stage.aggregator.kill()
            for file in database.parent.glob(database.name + "-*"):
                file.unlink()
            shutil.copy(backup, database)
            stage.aggregator.start()
            again = contributed(north, "n", wait=False)
            assert again.accepted >= HALF // 4
            until(lambda: ends(north, south))
            assert north.outbox.counts()[ReportState.COUNTED] == HALF
        tally = stage.owner.status(campaign.digest).records
        assert (tally.received, tally.counted) == (2 * HALF, 2 * HALF)


def ends(north: Contributor, south: Contributor) -> bool:
    for site, prefix in ((south, "s"), (north, "n")):
        if site.membership is Membership.JOINED:
            contributed(site, prefix, wait=False)
    return {north.membership, south.membership} == {Membership.ENDED}
