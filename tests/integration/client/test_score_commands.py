"""The command line in a score campaign: create, contribute, watch it narrow, use what it found."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.protocol import Role
from tacit_client import Contributor, Policy
from tacit_client.cli.exits import ExitCode
from tests.integration.client.score_scenes import Stage, staged
from tests.support.aggregator import until
from tests.support.cli import Ended, tacit
from tests.support.score_world import names, scores

TERMS = (
    *("campaign", "create", "--method", "scores", "--title", "animals", "--classes", "cat,dog,owl"),
    *("--epsilon", "3", "--alpha", "0.2", "--planned-n", "80", "--closes", "2h"),
    *("--rounds", "4", "--round-for", "30m", "--enrol-until", "1h", "--least", "1"),
)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with staged(tmp_path_factory.mktemp("aggregator")) as made:
        yield made


@pytest.fixture
def owner(stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TACIT_URL", stage.aggregator.url)
    monkeypatch.setenv("TACIT_KEY", stage.aggregator.key)
    monkeypatch.setenv("TACIT_TOKEN", stage.aggregator.token(Role.OWNER, "owner"))
    return tmp_path / "owner"


def records(folder: Path, n: int = 80, name: str = "r") -> Path:
    path = folder / f"{name}.csv"
    rows = "".join(f"{name}{index},{index / n}\n" for index in range(n))
    path.write_text("id,scores\n" + rows)
    return path


def site(stage: Stage, folder: Path, digest: str, name: str) -> Path:
    home, line = folder / name, stage.aggregator.invitation(digest, name).to_text()
    assert tacit("join", line, "--json", home=home).code == 0
    return home


def ok(ended: Ended) -> dict[str, Any]:
    assert ended.code == 0, ended.err
    return ended.json


def test_a_campaign_is_created_answered_watched_and_its_threshold_used(
    stage: Stage, owner: Path, tmp_path: Path
) -> None:
    digest = ok(tacit(*TERMS, "--json", home=owner))["campaign"]
    shown = ok(tacit("campaign", "show", digest[:12], "--json", home=owner))
    assert (shown["document"]["method"], shown["status"]["method"]) == ("scores", "scores")
    home = site(stage, tmp_path, digest, "north")
    enrolled = ok(tacit("contribute", records(tmp_path, 40), "--no-wait", "--json", home=home))
    assert (enrolled["drawn"], enrolled["unasked"], enrolled["missed"]) == (0, 40, 0)
    waits = ok(tacit("status", "--json", home=home))["campaigns"][0]["waits_for"]
    assert "40 of 80" in waits
    other = site(stage, tmp_path, digest, "south")
    ok(tacit("contribute", records(tmp_path, 40, "s"), "--no-wait", "--json", home=other))
    until(lambda: ok(tacit("status", "--json", home=home))["campaigns"][0]["server"]["rounds"])
    asked = ok(tacit("status", "--json", home=home))["campaigns"][0]
    assert "this site to answer round 1: tacit contribute FILE" in asked["waits_for"]
    words = tacit("status", home=home).out
    assert "asked: at most" in words
    assert "open: waits for" in words

    def answer() -> None:
        with Contributor.open(None, other, Policy()) as south:
            south.contribute(ids=names(40, "s"), scores=scores(40))

    elsewhere = threading.Thread(target=answer)
    elsewhere.start()
    done = tacit("contribute", records(tmp_path, 40), home=home)
    elsewhere.join()
    assert done.code == 0, done.err
    assert "40 records accepted by" in done.out
    assert "40 records: 40 drawn now, 0 drawn before." in done.out
    table = tacit("campaign", "show", digest[:12], home=owner).out
    assert table.count("closed") >= 4
    saved = tmp_path / "threshold.json"
    found = tacit("threshold", "get", digest[:12], "-o", saved, home=owner)
    assert found.code == 0, found.err
    assert "the search was replayed, and leads here" in " ".join(found.out.split())
    assert tacit("threshold", "verify", saved, home=owner).code == 0
    (tmp_path / "new.csv").write_text("id,p_cat,p_dog,p_owl\na,0.8,0.1,0.1\n")
    sets = ok(tacit("predict", tmp_path / "new.csv", "--threshold", saved, "--json", home=owner))
    assert sets["records"] == 1
    assert tacit("status", home=home).code == 0


def test_a_site_that_missed_every_round_is_told_so_with_an_exit_code(
    stage: Stage, owner: Path, tmp_path: Path
) -> None:
    digest = ok(tacit(*TERMS, "--json", home=owner))["campaign"]
    home = site(stage, tmp_path, digest, "north")
    ok(tacit("contribute", records(tmp_path, 40), "--no-wait", "--json", home=home))
    other = site(stage, tmp_path, digest, "south")
    ok(tacit("contribute", records(tmp_path, 40, "s"), "--no-wait", "--json", home=other))
    until(lambda: ok(tacit("status", "--json", home=home))["campaigns"][0]["server"]["rounds"])
    ended = tacit("contribute", records(tmp_path, 50), "--json", home=home)
    assert (ended.code, ended.json["error"]) == (ExitCode.REFUSED_THERE, "EnrolmentClosed")
    assert tacit("campaign", "close", digest[:12], "--yes", home=owner).code == 0
    late = tacit("contribute", records(tmp_path, 40), "--json", home=home)
    assert late.json["drawn"] == 0
    assert late.json["missed"] + late.json["unasked"] == 40


def test_a_second_file_is_refused_until_all_records_are_given_or_left_behind(
    stage: Stage, owner: Path, tmp_path: Path
) -> None:
    digest = ok(tacit(*TERMS, "--json", home=owner))["campaign"]
    home = site(stage, tmp_path, digest, "north")
    first, second = records(tmp_path, 40, "a"), records(tmp_path, 40, "b")
    enrolled = tacit("contribute", first, "--no-wait", home=home)
    assert enrolled.code == 0
    assert "To answer, run the same command again." in enrolled.out
    refused = tacit("contribute", second, "--json", home=home)
    assert (refused.code, refused.json["error"]) == (ExitCode.BAD_INPUT, "RecordsAbsent")
    assert "40 enrolled records have not answered" in refused.json["message"]
    added = tacit("contribute", second, "--no-wait", home=home)
    assert added.code == 0
    assert "40 records enrolled before are not in this file, and have not answered." in added.out
    assert "run the same command again, with a file of all records together." in added.out
    until(lambda: ok(tacit("status", "--json", home=home))["campaigns"][0]["server"]["rounds"])
    assert tacit("contribute", second, "--no-wait", home=home).code == ExitCode.BAD_INPUT
    done = tacit("contribute", second, "--without-the-rest", home=home)
    assert done.code == 0, done.err
    assert "40 records: 40 drawn now" in done.out
    assert "rounds: Round" in done.err
    (over,) = ok(tacit("status", "--json", home=home))["campaigns"]
    assert (over["server"], over["unanswered"], len(over["rounds"])) == (None, 40, 4)
    assert over["waits_for"].endswith("40 records never answered")


def test_terms_that_cannot_certify_anything_say_how_many_records_it_takes(owner: Path) -> None:
    ended = tacit(*TERMS, "--delta", "0.05", home=owner)
    assert ended.code == ExitCode.BAD_INPUT
    assert "S* needs" in ended.err
    dry = tacit(*TERMS, "--delta", "0.05", "--planned-n", "1e5", "--dry-run", "--json", home=owner)
    assert ok(dry)["starred_needs"] < 10**5
    assert "With the 100,000 planned records" in dry.err


def test_options_of_rounds_belong_to_score_campaigns(owner: Path) -> None:
    labels = tacit(*TERMS, "--method", "labels", home=owner)
    assert labels.code == ExitCode.BAD_INPUT
    assert "--method scores" in labels.err


def test_status_shows_a_waiting_site_while_its_contribution_waits(
    stage: Stage, tmp_path: Path
) -> None:
    campaign = stage.create()
    with stage.join(campaign, tmp_path / "home") as waiting:
        waiting.contribute(ids=["a", "b"], scores=np.array([0.1, 0.2]), wait=False)
        shown = ok(tacit("status", "--json", home=tmp_path / "home"))["campaigns"][0]
        assert "2 of 120" in shown["waits_for"]
        assert shown["membership"] == "joined"
    with Contributor.open(None, tmp_path / "home", Policy()) as again:
        assert again.outbox.entries() == []
