"""Two servers see the same step due, and take it at the same moment: it happens once."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
from sqlalchemy import Connection

from tacit_aggregator.campaigns.documents import Terms
from tacit_aggregator.rounds import moving
from tacit_aggregator.rounds.ending import Turn
from tacit_aggregator.rounds.moving import Mover, Step
from tacit_aggregator.sites import queries as sites_queries
from tests.support.aggregator import PATIENCE
from tests.support.label_campaigns import problem_name
from tests.support.score_campaigns import ScoreScene, ScoreSite, bits, score_scene
from tests.support.two_servers import Meeting, TwoServers, at_once, two_servers


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoServers]:
    with two_servers(tmp_path_factory.mktemp("two")) as made:
        yield made


@dataclass(frozen=True)
class Both:
    """Both servers, each of which has found the same step due and begins to take it."""

    stage: TwoServers
    scene: ScoreScene
    monkeypatch: pytest.MonkeyPatch
    looks_again: bool
    """A broken version does not, when it is its turn."""

    def take(self, step: Step) -> None:
        """Have both take it; neither has any trouble."""
        meeting = Meeting(self.stage.url)
        turn_of = Mover._turn

        def turn(mover: Mover, connection: Connection, terms: Terms, step: Step) -> Turn | None:
            turn = turn_of(mover, connection, terms, step)
            if turn is not None:
                meeting.meet()
            return turn

        with self.monkeypatch.context() as patch:
            patch.setattr(Mover, "_turn", turn)
            if not self.looks_again:
                patch.setattr(moving, "due", lambda *_: step)
            works = [partial(self.stage.take, step, self.scene.digest, one) for one in range(2)]
            assert at_once(*works) == [True, True]

    def ask(self) -> ScoreSite:
        """Have one server ask the first question of a site."""
        site = self.scene.site(enrol=40)
        assert self.stage.take(Step.OPEN, self.scene.digest)
        return site

    def answer(self) -> None:
        """Have a site give three answers to the first question."""
        site = self.ask()
        site.answer(site.asked(), bits(1, 3))

    def rounds(self) -> list[tuple[Any, ...]]:
        """What became of each round."""
        found = "SELECT state, answers, extensions FROM rounds WHERE campaign = %s ORDER BY round"
        return self.stage.query(found, self.scene.digest)


def opens_once(both: Both) -> None:
    both.scene.site(enrol=40)
    both.take(Step.OPEN)
    assert both.rounds() == [("open", None, 0)]


def closes_once(both: Both) -> None:
    both.answer()
    both.scene.pass_deadline()
    both.take(Step.CLOSE)
    assert both.rounds() == [("closed", 3, 0), ("open", None, 0)]
    assert both.scene.status().records.counted == 3


def is_extended_once(both: Both) -> None:
    both.ask()
    both.scene.pass_deadline()
    both.take(Step.EXTEND)
    assert both.rounds() == [("open", None, 1)]


def ends_once(both: Both) -> None:
    both.answer()
    both.scene.pass_date()
    both.take(Step.END)
    assert both.rounds() == [("closed", 3, 0)]
    assert both.scene.status().records.counted == 3
    found = "SELECT which FROM thresholds WHERE campaign = %s"
    assert both.stage.query(found, both.scene.digest) == [("nominal",)]


ONCE = [opens_once, closes_once, is_extended_once, ends_once]


@pytest.mark.parametrize("happens", ONCE)
def test_a_step_that_two_servers_take_at_the_same_moment_happens_once(
    stage: TwoServers, happens: Callable[[Both], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    with score_scene(stage.servers[0]) as scene:
        happens(Both(stage, scene, monkeypatch, looks_again=True))


@pytest.mark.parametrize("happens", ONCE)
def test_if_nobody_looked_again_a_step_that_is_taken_twice_would_be_noticed(
    stage: TwoServers, happens: Callable[[Both], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    with score_scene(stage.servers[0]) as scene, pytest.raises(AssertionError):
        happens(Both(stage, scene, monkeypatch, looks_again=False))


def enrolled_and_asked(stage: TwoServers, scene: ScoreScene) -> tuple[int, int]:
    """The sum of what sites enrolled, and of how many records the first question was asked."""
    ((asked_n,),) = stage.query("SELECT asked_n FROM campaigns WHERE digest = %s", scene.digest)
    ((enrolled,),) = stage.query(
        "SELECT sum(enrolled) FROM sites WHERE campaign = %s", scene.digest
    )
    return int(enrolled), int(asked_n)


def test_who_enrols_while_the_first_question_is_asked_is_refused_and_not_among_the_asked(
    stage: TwoServers, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask_first = Turn.ask_first
    meeting = Meeting(stage.url)

    def ask_slowly(turn: Turn) -> bool:
        meeting.meet()
        return ask_first(turn)

    with score_scene(stage.servers[0]) as scene, ThreadPoolExecutor() as pool:
        north, south = scene.site("north", 40), stage.at_other(scene, scene.site("south"))
        monkeypatch.setattr(Turn, "ask_first", ask_slowly)
        asking = pool.submit(stage.take, Step.OPEN, scene.digest)
        assert meeting.came.wait(PATIENCE)
        refused = pool.submit(south.enrol, 7)
        refused.add_done_callback(lambda _: meeting.gone.set())
        assert problem_name(refused.result(PATIENCE)) == "enrolment-closed"
        assert asking.result(PATIENCE)
        assert problem_name(north.enrol(41)) == "enrolment-closed"
        assert enrolled_and_asked(stage, scene) == (40, 40)


def test_the_first_question_waits_for_who_is_being_enrolled_and_asks_them_too(
    stage: TwoServers, monkeypatch: pytest.MonkeyPatch
) -> None:
    change = sites_queries.change
    meeting = Meeting(stage.url)

    def change_slowly(*given: Any, **values: Any) -> None:
        meeting.meet()
        change(*given, **values)

    with score_scene(stage.servers[0]) as scene, ThreadPoolExecutor() as pool:
        north = stage.at_other(scene, scene.site("north", 40))
        monkeypatch.setattr(sites_queries, "change", change_slowly)
        enrolling = pool.submit(north.enrol, 45)
        assert meeting.came.wait(PATIENCE)
        asking = pool.submit(stage.take, Step.OPEN, scene.digest)
        asking.add_done_callback(lambda _: meeting.gone.set())
        assert enrolling.result(PATIENCE).status_code == 200
        assert asking.result(PATIENCE)
        assert enrolled_and_asked(stage, scene) == (45, 45)
