"""Answers at two servers at the same moment, and at the end: each is stored once, or refused."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import httpx
import pytest

from tacit.protocol import AnswerUpload
from tacit_aggregator.ingest import queries
from tacit_aggregator.ingest.answers import StoringAnswers
from tacit_aggregator.rounds import queries as rounds
from tacit_aggregator.rounds.moving import Step
from tests.support.aggregator import PATIENCE
from tests.support.label_campaigns import problem_name
from tests.support.score_campaigns import ScoreScene, ScoreSite, bits, score_scene
from tests.support.two_servers import Meeting, TwoServers, at_once, two_servers


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoServers]:
    with two_servers(tmp_path_factory.mktemp("two")) as made:
        yield made


def became(answer: httpx.Response) -> str:
    """What became of an upload: its state, or why it was refused."""
    return str(answer.json()["state"]) if answer.status_code == 200 else problem_name(answer)


Both = Callable[[AnswerUpload, AnswerUpload], list[str]]


def sender(
    stage: TwoServers, scene: ScoreScene, site: ScoreSite, patch: pytest.MonkeyPatch
) -> Both:
    """Sends an upload to each server, and has both look at the same time at what is stored."""
    stored = queries.stored
    there = stage.at_other(scene, site)

    def both(one: AnswerUpload, other: AnswerUpload) -> list[str]:
        meeting = Meeting(stage.url)

        def stored_slowly(*given: Any) -> Iterator[Any]:
            found = list(stored(*given))
            meeting.meet()
            return iter(found)

        with patch.context() as during:
            during.setattr(queries, "stored", stored_slowly)
            return [became(one) for one in at_once(*puts(one, other))]

    def puts(one: AnswerUpload, other: AnswerUpload) -> list[Callable[[], httpx.Response]]:
        return [partial(site.put, one), partial(there.put, other)]

    return both


def stored_uploads(stage: TwoServers, scene: ScoreScene, state: str) -> tuple[int, int, int]:
    """Uploads of this state, their ones, and their answers."""
    statement = (
        "SELECT count(*), coalesce(sum(ones), 0), coalesce(sum(records), 0) FROM uploads"
        " WHERE campaign = %s AND state = %s"
    )
    ((uploads, ones, answers),) = stage.query(statement, scene.digest, state)
    return int(uploads), int(ones), int(answers)


def test_what_a_site_sends_to_two_servers_at_the_same_moment_is_stored_once(
    stage: TwoServers, monkeypatch: pytest.MonkeyPatch
) -> None:
    with score_scene(stage.servers[0]) as scene:
        site = scene.site(enrol=40)
        both = sender(stage, scene, site, monkeypatch)
        stage.take(Step.OPEN, scene.digest)
        of = partial(site.answers, site.asked())
        assert both(of(bits(1, 3)), of(bits(2, 5))) == ["accepted"] * 2
        same = of(bits(3, 4))
        assert both(same, same) == ["accepted"] * 2
        one, other = of(bits(4, 4), "ab" * 16), of(bits(0, 4), "ab" * 16)
        assert sorted(both(one, other)) == ["accepted", "upload-conflict"]
        # 24 of its 40 records are left: there is room for one of them.
        assert sorted(both(of(bits(7, 20)), of(bits(9, 20)))) == ["accepted", "not-enrolled"]
        scene.pass_deadline()
        stage.take(Step.CLOSE, scene.digest)
        late = of(bits(1, 2))
        assert both(late, late) == ["round-closed"] * 2
        uploads, ones, answers = stored_uploads(stage, scene, "accepted")
        assert (uploads, answers) == (5, 36)
        assert stored_uploads(stage, scene, "late") == (1, 1, 2)
        closed = "SELECT ones, answers, sites FROM rounds WHERE campaign = %s AND round = 0"
        assert stage.query(closed, scene.digest) == [(ones, 36, 1)]
        tally = scene.status().records
        assert (tally.received, tally.counted, tally.late, tally.pending) == (38, 36, 2, 0)


def test_if_a_site_were_locked_after_its_uploads_are_read_that_would_be_noticed(
    stage: TwoServers, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, read_stored = StoringAnswers._read, StoringAnswers._read_stored

    def read_too_early(storing: StoringAnswers, batch: Any) -> None:
        for one in batch:
            read_stored(storing, one.campaign, one.site, [one.upload])
        monkeypatch.setattr(storing, "_read_stored", lambda *_: None)
        read(storing, batch)

    with score_scene(stage.servers[0]) as scene:
        site = scene.site(enrol=40)
        both = sender(stage, scene, site, monkeypatch)
        stage.take(Step.OPEN, scene.digest)
        same = site.answers(site.asked(), bits(3, 4))
        monkeypatch.setattr(StoringAnswers, "_read", read_too_early)
        assert sorted(both(same, same)) == ["accepted", "internal"]


def pass_date(scene: ScoreScene) -> None:
    scene.pass_date()


def close_by_hand(scene: ScoreScene) -> None:
    scene.owner.post(f"{scene.address}/close").raise_for_status()


@pytest.mark.parametrize("end", [pass_date, close_by_hand])
def test_answers_between_the_end_of_a_campaign_and_that_of_its_search_are_late(
    stage: TwoServers, end: Callable[[ScoreScene], None]
) -> None:
    with score_scene(stage.servers[0]) as scene:
        site = scene.site(enrol=40)
        stage.take(Step.OPEN, scene.digest)
        question = site.asked()
        early, late = site.answers(question, bits(2, 3)), site.answers(question, bits(1, 5))
        site.put(early).raise_for_status()
        end(scene)
        assert scene.status().rounds[0].state == "open"  # nobody has moved it on
        for at in (site, stage.at_other(scene, site)):
            assert problem_name(at.put(late)) == "round-closed"
        assert became(site.put(early)) == "accepted"
        stage.take(Step.END, scene.digest)
        assert [(one.ones, one.answers) for one in scene.found().rounds] == [(2, 3)]
        tally = scene.status().records
        assert (tally.received, tally.counted, tally.late) == (8, 3, 5)


def abandon(scene: ScoreScene) -> httpx.Response:
    return scene.owner.post(f"{scene.address}/abandon")


@pytest.mark.parametrize("of_round", [0, 1])
def test_an_answer_that_comes_while_its_campaign_is_abandoned_is_refused_and_never_stored(
    stage: TwoServers, monkeypatch: pytest.MonkeyPatch, of_round: int
) -> None:
    meeting, drop = Meeting(stage.url), rounds.drop

    def drop_slowly(*given: Any) -> None:
        meeting.meet()
        drop(*given)

    with score_scene(stage.servers[0]) as scene, ThreadPoolExecutor() as pool:
        site = scene.site(enrol=40)
        stage.take(Step.OPEN, scene.digest)
        questions = [site.asked()]
        site.answer(questions[0], [1])
        scene.pass_deadline()
        stage.take(Step.CLOSE, scene.digest)
        questions.append(site.asked(1))
        monkeypatch.setattr(rounds, "drop", drop_slowly)
        abandoning = pool.submit(abandon, scene)
        assert meeting.came.wait(PATIENCE)
        there = stage.at_other(scene, site)
        sending = pool.submit(there.put, site.answers(questions[of_round], bits(1, 2)))
        sending.add_done_callback(lambda _: meeting.gone.set())
        assert became(sending.result(PATIENCE)) == "campaign-closed"
        assert abandoning.result(PATIENCE).status_code == 200
        tally = scene.status().records
        assert (tally.received, tally.counted, tally.late, tally.dropped) == (1, 1, 0, 0)
        assert stored_uploads(stage, scene, "late") == (0, 0, 0)


def test_abandoning_waits_for_an_answer_that_is_being_stored_and_drops_it(
    stage: TwoServers, monkeypatch: pytest.MonkeyPatch
) -> None:
    meeting, lock = Meeting(stage.url), queries.lock_answering

    def lock_slowly(*given: Any) -> Any:
        meeting.meet()  # its round is held, and its site is not locked yet
        return lock(*given)

    with score_scene(stage.servers[0]) as scene, ThreadPoolExecutor() as pool:
        site = stage.at_other(scene, scene.site(enrol=40))
        stage.take(Step.OPEN, scene.digest)
        upload = site.answers(site.asked(), bits(1, 2))
        monkeypatch.setattr(queries, "lock_answering", lock_slowly)
        sending = pool.submit(site.put, upload)
        assert meeting.came.wait(PATIENCE)
        abandoning = pool.submit(abandon, scene)
        abandoning.add_done_callback(lambda _: meeting.gone.set())
        assert became(sending.result(PATIENCE)) == "accepted"
        assert abandoning.result(PATIENCE).status_code == 200
        assert became(site.put(upload)) == "dropped"
        tally = scene.status().records
        assert (tally.received, tally.dropped, tally.late) == (2, 2, 0)
