"""Score campaigns on the command line, as far as no server is needed."""

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.protocol import (
    CampaignState,
    CampaignStatus,
    Model,
    Opened,
    RoundQuestion,
    RoundState,
    RoundStatus,
    ScoreCampaign,
    SigningKey,
    SiteStatus,
    Tally,
)
from tacit.scores import HPS
from tacit_client import Contributor, Policy
from tacit_client.cli import terms
from tacit_client.cli.errors import BadFile, BadOption
from tacit_client.cli.exits import ExitCode
from tacit_client.cli.files import Layout, read_records
from tacit_client.cli.output import Screen
from tacit_client.cli.round_terms import ModelOutputs, RoundTerms, margin_words
from tacit_client.cli.round_words import rounds_of
from tacit_client.cli.standing import Standing
from tacit_client.cli.words import campaign_facts
from tacit_client.errors import RuntimeMissing
from tacit_client.ledger import Membership
from tacit_client.ledger.campaigns import finish_campaign
from tacit_client.ledger.dealt import put_question
from tacit_client.outbox import put_upload
from tacit_client.rounds.drawing import make_upload
from tests.support.cli import Site
from tests.support.cli_files import CLASSES, GOOD, npz, text
from tests.support.score_world import dealt, part_of

OPENS = datetime(2026, 1, 1, tzinfo=UTC)
MODEL = Model(digest="0" * 64, dtype="uint8", shape=(2,), outputs="logits")


def campaign(**changes: Any) -> ScoreCampaign:
    given: dict[str, Any] = {
        "title": "Animals",
        "owner": "owner",
        "classes": CLASSES,
        "epsilon": 2.0,
        "score": HPS(),
        "alpha": 0.1,
        "planned_n": 10_000,
        "opens": OPENS,
        "enrol_until": OPENS + timedelta(days=20_000),
        "closes": OPENS + timedelta(days=26_000),
        "round_seconds": 3600,
    }
    return ScoreCampaign.of(**(given | changes))


@pytest.fixture
def site(tmp_path: Path) -> Site:
    joined = Site.invited(tmp_path, campaign())
    ended = joined.run("join", joined.invitation, "--campaign", joined.signed, "--json")
    assert ended.code == 0, ended.err
    assert ended.json["leaves"] == "bits"
    assert "one randomized bit" in ended.json["notice"]
    return joined


def scored(folder: Path, n: int = 40) -> Path:
    rows = "".join(f"r{index},{index / n}\n" for index in range(n))
    return text("id,score\n" + rows)(folder)


def test_joining_needs_no_permission_for_features_and_says_what_leaves(tmp_path: Path) -> None:
    invited = Site.invited(tmp_path, campaign())
    ended = invited.run("join", invited.invitation, "--campaign", invited.signed)
    assert ended.code == 0
    assert "2 for each whole record" in ended.out
    assert "nothing: one randomized bit of each record leaves" in ended.out
    assert "lasts 60 min at most" in ended.out
    assert "Next: tacit contribute FILE --dry-run" in ended.out


def test_a_policy_of_labels_alone_refuses(tmp_path: Path) -> None:
    invited = Site.invited(tmp_path, campaign())
    invited.home.mkdir()
    (invited.home / "policy.toml").write_text('methods = ["labels"]\n')
    ended = invited.run("join", invited.invitation, "--campaign", invited.signed)
    assert ended.code == ExitCode.REFUSED_HERE
    assert '"scores" to methods' in ended.err


def test_a_dry_run_shows_the_rounds_and_the_bits_and_deals_nothing_out(
    site: Site, tmp_path: Path
) -> None:
    ended = site.run("contribute", scored(tmp_path), "--dry-run", "--json")
    assert ended.code == 0, ended.err
    shown = ended.json
    assert shown["rounds"] == [4] * 10
    assert (shown["to_draw"], shown["uploads"], shown["enrolment"]) == (40, 10, {"records": 40})
    assert [column["name"] for column in shown["columns"]] == ["bits"]
    words = site.run("contribute", scored(tmp_path), "--dry-run").out
    assert "in the rounds" in words
    assert "in each round, once its question is verified" in words
    assert site.run("ledger", "show", "--json").json["campaigns"][0]["records"]["drawn"] == 0


def test_a_bundle_of_rounds_is_refused(site: Site, tmp_path: Path) -> None:
    ended = site.run("export", scored(tmp_path), "-o", tmp_path / "bundle.zip", "--json")
    assert (ended.code, ended.json["error"]) == (ExitCode.REFUSED_HERE, "NeedsNetwork")
    assert not (tmp_path / "bundle.zip").exists()


def test_a_score_out_of_range_is_exit_code_two_and_not_shown(site: Site, tmp_path: Path) -> None:
    ended = site.run("contribute", text("id,score\na,0.5\nb,7.125\n")(tmp_path), "--json")
    assert ended.code == ExitCode.BAD_INPUT
    assert "row 1" in ended.json["message"]
    assert "7.125" not in ended.err + ended.out


def test_a_file_gives_scores_probabilities_or_features(tmp_path: Path) -> None:
    plain, with_model = campaign(), campaign(model=MODEL)
    layout = Layout()
    found = read_records(scored(tmp_path, 4), plain, layout)
    assert found.given_labels is None
    assert found.evidence["scores"].tolist() == [0.0, 0.25, 0.5, 0.75]
    labelled = read_records(text(GOOD, "good.csv")(tmp_path), plain, layout)
    assert set(labelled.evidence) == {"probabilities"}
    features = "id,label,x_0,x_1\na,cat,7,9\n"
    path = text(features, "features.csv")(tmp_path)
    assert read_records(path, with_model, layout).evidence["features"].tolist() == [[7, 9]]
    with pytest.raises(BadFile, match="no probabilities"):
        read_records(path, plain, layout)
    both = text("id,label,score,p_0,p_1,p_2\na,cat,0.5,1,0,0\n", "both.csv")(tmp_path)
    with pytest.raises(BadFile, match=r"--scores score; .* --label label"):  # a risk's, perhaps
        read_records(both, plain, layout)
    assert set(read_records(both, plain, Layout(scores="score")).evidence) == {"scores"}
    assert set(read_records(both, plain, Layout(label="label")).evidence) == {"probabilities"}
    named = Layout(probabilities_prefix="p_")
    assert set(read_records(both, plain, named).evidence) == {"probabilities"}
    array = npz(s=np.array([0.1, 0.2, 0.3]))(tmp_path)
    assert "scores" in read_records(array, plain, Layout(scores="s")).evidence


@pytest.mark.parametrize(
    ("header", "row", "says"),
    [
        ("diagnosis,score,p_cat,p_dog,p_owl", "cat,0.9,0.7,0.2,0.1", "both score and p_cat"),
        ("diagnosis,scores,logit_0,logit_1,logit_2", "cat,0.9,1,2,3", "both scores and logit_0"),
        ("diagnosis,score,x_0,x_1", "cat,0.9,7,9", "both score and x_0"),
        ("score,scores", "0.9,0.8", "both score and scores"),
    ],
)
def test_a_column_score_beside_something_else_was_taken_without_being_named(
    site: Site, tmp_path: Path, header: str, row: str, says: str
) -> None:
    path = text(f"id,{header}\nr1,{row}\n")(tmp_path)
    ended = site.run("contribute", path, "--dry-run", "--json")
    assert ended.code == ExitCode.BAD_INPUT
    assert says in ended.json["message"]
    assert "--scores" in ended.json["message"]
    name = header.split(",")[0 if header == "score,scores" else 1]
    found = read_records(path, campaign(model=MODEL), Layout(scores=name))
    assert set(found.evidence) == {"scores"}
    if header.startswith("diagnosis"):
        computed = read_records(path, campaign(model=MODEL), Layout(label="diagnosis"))
        assert "scores" not in computed.evidence


@pytest.mark.parametrize("beside", ["probabilities", "logits", "features"])
def test_an_array_scores_beside_another_must_be_named_too(tmp_path: Path, beside: str) -> None:
    arrays = {"labels": None, "probabilities": None, "scores": np.ones(3), beside: np.eye(3)}
    with pytest.raises(BadFile, match=f"both scores and {beside}"):
        read_records(npz(**arrays)(tmp_path), campaign(), Layout())


def status(*rounds: RoundStatus, **changes: Any) -> CampaignStatus:
    tally = Tally(received=30, pending=10, counted=20, dropped=0, late=0)
    given: dict[str, Any] = {
        "campaign": "a" * 64,
        "title": "Animals",
        "owner": "owner",
        "state": CampaignState.OPEN,
        "closed_by": None,
        "planned_n": 100,
        "enrolled": 100,
        "records": tally,
        "site_count": 2,
        "sites": (),
        "opens_in": 0.0,
        "closes_in": 50.0,
        "waiting_for": ("Round 2 of 10 waits for 1 of 2 sites.",),
        "method": "scores",
        "rounds": rounds,
    }
    return CampaignStatus(**(given | changes))


CLOSED = RoundStatus(
    round=0,
    state=RoundState.CLOSED,
    threshold=0.5,
    low=0.0,
    high=1.0,
    answers=20,
    sites=2,
    coverage=0.8125,
    ends_in=0.0,
    extensions=0,
    waiting_sites=0,
    waiting_for=(),
)
OPEN = CLOSED.model_copy(
    update={
        "round": 1,
        "state": RoundState.OPEN,
        "threshold": 0.75,
        "low": 0.5,
        "answers": 10,
        "sites": None,
        "coverage": None,
        "ends_in": 40.0,
        "extensions": 2,
        "waiting_sites": 1,
        "waiting_for": ("north",),
    }
)


def test_rounds_are_shown_as_they_narrow(capsys: pytest.CaptureFixture[str]) -> None:
    Screen().show({}, *rounds_of(status(CLOSED, OPEN)))
    first, second = capsys.readouterr().out.splitlines()[-2:]
    assert first.split() == ["1", "0.5", "0", "1", "20", "2", "0.8125", "closed"]
    assert second.split()[:7] == ["2", "0.75", "0.5", "1", "10", "-", "-"]
    assert "waits for 1 site (north), may close in 40 s, extended 2 times" in second
    assert rounds_of(status()) == []


def test_a_round_that_was_extended_says_how_often_in_the_words_of_the_server(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for times, words in ((0, "40 s"), (1, "40 s, extended once"), (2, "40 s, extended 2 times")):
        extended = OPEN.model_copy(update={"extensions": times})
        Screen().show({}, *rounds_of(status(CLOSED, extended)))
        assert capsys.readouterr().out.rstrip().endswith(f"may close in {words}")


@pytest.mark.parametrize(
    ("site", "busy", "says"),
    [
        ("north", False, "this site to answer round 2: tacit contribute FILE. Round 2 of 10 waits"),
        ("north", True, "this site to answer round 2. Round 2 of 10 waits"),
        ("south", False, "Round 2 of 10 waits for 1 of 2 sites."),
    ],
)
def test_a_site_hears_whether_it_is_the_one_that_is_waited_for(
    site: str, busy: bool, says: str
) -> None:
    records = {"drawn": 0}
    own = SiteStatus(site=site, enrolled=50, left=False, records=status().records)
    found = status(CLOSED, OPEN, sites=(own,))
    standing = Standing("a" * 64, "t", Membership.JOINED, records, found, None, site, busy)
    assert standing.waits_for().startswith(says)


def ended_site(site: Site) -> None:
    """The site has dealt out 40 records, 4 answered in time, 4 too late, and all is over."""
    with Contributor.open(None, site.home, Policy()) as contributor:
        assert isinstance(contributor.campaign, ScoreCampaign)
        part = part_of(contributor, contributor.campaign)
        dealt(part, 40)
        with part.ledger.transaction("answer") as connection:
            for number, state in enumerate(("counted", "late")):
                question = RoundQuestion(campaign=contributor.digest, round=number, threshold=0.5)
                signed = SigningKey.generate().sign(question)
                put_question(connection, part.joined.number, number, "0" * 64, signed)
                answers = make_upload(Opened(question, "0" * 64), np.zeros(4, dtype=np.bool_))
                put_upload(connection, part.joined.number, answers, number)
                connection.execute("UPDATE uploads SET state = ? WHERE round = ?", (state, number))
            finish_campaign(connection, part.joined.number, Membership.ENDED)


def test_after_the_end_the_status_shows_what_the_ledger_knows(site: Site) -> None:
    ended_site(site)
    (shown,) = site.run("status", "--json").json["campaigns"]
    assert (shown["dealt"], shown["unanswered"], shown["records"]["late"]) == (40, 32, 4)
    assert [each["threshold"] for each in shown["rounds"]] == [0.5, 0.5] + [None] * 8
    assert shown["waits_for"] == "nothing: over for this site; 32 records never answered"
    out = site.run("status").out
    row = next(line for line in out.splitlines() if "Animals" in line).split()
    assert row[2:9] == ["ended", "over", "40", "0", "4", "4", "32"]
    second = next(line for line in out.splitlines() if line.split()[:2] == ["2", "0.5"])
    assert second.split() == ["2", "0.5", "4", "4", "4", "0"]
    assert "?" not in out


def test_a_ledger_says_that_what_is_randomized_may_leave(site: Site) -> None:
    shown = " ".join(site.run("ledger", "show").out.split())
    assert "may leave nothing but what is randomized" in shown
    assert "nothing but what is randomized may leave" in site.run("doctor").out


def test_the_status_can_be_asked_for_while_another_process_waits(site: Site) -> None:
    with Contributor.open(None, site.home, Policy()):
        ended = site.run("status", "--json")
        assert ended.code == ExitCode.TRY_LATER  # the server, not the ledger, is out of reach
        assert "No connection" in ended.json["campaigns"][0]["problem"]
        assert site.run("ledger", "show", "--json").json["campaigns"][0]["membership"] == "joined"


def test_doctor_looks_for_the_runtime_if_a_campaign_has_a_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    invited = Site.invited(tmp_path, campaign(model=MODEL))
    carried = ("--campaign", invited.signed)
    assert invited.run("join", invited.invitation, *carried).code == 0

    def found() -> dict[str, Any]:
        checks = invited.run("doctor", "--json").json["checks"]
        return next(check for check in checks if check["name"] == "onnxruntime")

    assert found()["state"] == "ok"
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert found()["problem"] == str(RuntimeMissing())
    assert "tacit-client[onnx]" in found()["fix"]


def test_without_a_model_doctor_says_nothing_of_the_runtime(site: Site) -> None:
    names = [check["name"] for check in site.run("doctor", "--json").json["checks"]]
    assert "onnxruntime" not in names


def test_rounds_are_a_number_or_shares() -> None:
    assert RoundTerms().shares() == (1,) * 10
    assert RoundTerms(rounds="4").shares() == (1,) * 4
    assert RoundTerms(rounds="1, 1,2").shares() == (1, 1, 2)
    for wrong in ("0", "65", "many"):
        with pytest.raises(BadOption):
            RoundTerms(rounds=wrong).shares()


def test_without_options_all_rounds_fit_into_the_second_half() -> None:
    closes = OPENS + timedelta(hours=20)
    asked = RoundTerms().first_question(OPENS, closes)
    assert asked == OPENS + timedelta(hours=10)
    assert RoundTerms().seconds(asked, closes) == 3600
    assert RoundTerms(round_for="90s").seconds(asked, closes) == 90
    assert RoundTerms(enrol_until="2h").first_question(OPENS, closes) == OPENS + timedelta(hours=2)
    with pytest.raises(BadOption):
        RoundTerms(round_for="soon").seconds(asked, closes)


def test_options_of_rounds_are_refused_in_a_label_campaign() -> None:
    RoundTerms().refuse_for_labels()
    with pytest.raises(BadOption, match="--round-for, --outputs is for score campaigns"):
        RoundTerms(round_for="1h", outputs=ModelOutputs.LOGITS).refuse_for_labels()


def test_a_fetched_model_needs_its_digest_and_what_it_takes() -> None:
    assert terms.fetched_model(None, None, "logits") is None
    assert terms.fetched_model("uint8:2", "0" * 64, "logits") == MODEL
    for features, model in (("uint8:2", None), (None, "0" * 64)):
        with pytest.raises(BadOption, match="--model"):
            terms.fetched_model(features, model, "logits")


def test_what_the_planned_records_are_worth_is_said_where_something_is_certified() -> None:
    assert margin_words(campaign()) is None
    said = margin_words(campaign(delta=0.05, planned_n=100_000))
    assert said is not None
    assert "covers at least 0.9" in said


def test_the_terms_of_a_campaign_name_its_model_and_its_rounds(
    capsys: pytest.CaptureFixture[str],
) -> None:
    document = campaign(model=MODEL, shares=(1, 1, 2), tolerance=0.02)
    Screen().show({}, campaign_facts(document, document.digest))
    shown = " ".join(capsys.readouterr().out.split())
    assert "3, with shares 1, 1, 2; stops within 0.01 of the coverage" in shown
    assert "of features uint8 of shape [2], fetched and run here" in shown
