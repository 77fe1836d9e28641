"""All goes by the database's clock; the server's own may be hours off."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tacit.protocol import Role
from tacit_aggregator.clock import Clock
from tacit_aggregator.database.engine import Database
from tacit_aggregator.tokens.service import mint
from tests.support.label_campaigns import problem_name
from tests.support.score_campaigns import ScoreScene, bits, score_document, score_scene
from tests.support.two_servers import TwoServers, two_servers

true_time = time.time


@pytest.fixture(scope="module", params=[7200.0, -7200.0], ids=["ahead", "behind"])
def wrong(request: pytest.FixtureRequest) -> Clock:
    return lambda: true_time() + request.param


@pytest.fixture(scope="module")
def stage(wrong: Clock, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoServers]:
    with two_servers(tmp_path_factory.mktemp("wrong"), wrong) as made:
        yield made


@pytest.fixture(autouse=True)
def _wrong_in_this_process(wrong: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", wrong)


def move(stage: TwoServers) -> None:
    """Have a server take every step that it finds due."""
    while stage.movers[0].move():
        pass


def have_passed(stage: TwoServers, scene: ScoreScene, which: str, table: str = "campaigns") -> None:
    """Have this time be a minute ago."""
    name = {"campaigns": "digest", "rounds": "campaign"}[table]
    passed = f"UPDATE {table} SET {which} = %s WHERE {name} = %s RETURNING 1"  # noqa: S608 -- names of this file
    assert stage.query(passed, true_time() - 60, scene.digest) == [(1,)]


def rounds(scene: ScoreScene) -> list[tuple[str, int, int]]:
    return [(one.state, one.answers, one.extensions) for one in scene.status().rounds]


@contextmanager
def campaign(stage: TwoServers, **terms: Any) -> Iterator[ScoreScene]:
    """A campaign of today."""
    with score_scene(stage.servers[0], score_document(now=true_time(), **terms)) as made:
        yield made


def test_a_server_whose_clock_is_off_moves_rounds_neither_early_nor_late(stage: TwoServers) -> None:
    with (
        campaign(stage) as waits,
        campaign(stage, least=3) as few,
        campaign(stage, least=2) as enough,
    ):
        waits.site(enrol=10)
        sites = [scene.site(enrol=40) for scene in (few, enough)]
        move(stage)
        for site in sites:
            site.answer(site.asked(), bits(1, 2))
        move(stage)
        # Nothing is over yet: neither enrolment nor a round nor a campaign.
        assert rounds(waits) == []
        assert rounds(few) == rounds(enough) == [("open", 2, 0)]
        assert {one.status().state for one in (waits, few, enough)} == {"open"}
        have_passed(stage, waits, "enrol_until")
        for scene in (few, enough):
            have_passed(stage, scene, "ends_at", "rounds")
        move(stage)
        assert rounds(waits) == [("open", 0, 0)]
        assert rounds(few) == [("open", 2, 1)]
        assert 500 < few.status().rounds[0].ends_in <= 600
        assert rounds(enough) == [("closed", 2, 0), ("open", 0, 0)]
        late = sites[0].answers(sites[0].asked(), [1])
        have_passed(stage, few, "closes_at")
        assert problem_name(sites[0].put(late)) == "round-closed"
        move(stage)
        assert few.status().closed_by == "date"


def test_a_server_whose_clock_is_off_takes_a_token_until_it_expires_and_no_longer(
    stage: TwoServers,
) -> None:
    now = true_time()
    database = Database(stage.url)
    with database.transaction("test tokens") as connection:
        valid, expired = (
            mint(connection, Role.OWNER, "owner", campaign=None, expires_at=at, now=now - 7200)
            for at in (now + 1800, now - 1800)
        )
    database.close()
    for token, status in ((valid, 200), (expired, 401)):
        with stage.servers[0].client(token) as http:
            assert http.get("/v1/token").status_code == status
