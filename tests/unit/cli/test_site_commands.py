import json
import sqlite3
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tacit.protocol import Column, Features, SigningKey
from tacit_client.cli.exits import ExitCode
from tests.support.cli import NOWHERE, TOKEN, Site, tacit
from tests.support.cli_files import BAD, GOOD, UNSHOWN, Bad, campaign, text


@pytest.fixture
def site(tmp_path: Path) -> Site:
    joined = Site.invited(tmp_path, campaign())
    assert joined.join("--json").code == 0
    return joined


def drawn(site: Site) -> int:
    with sqlite3.connect(site.home / "ledger.db") as connection:
        return int(connection.execute("SELECT count(*) FROM records").fetchone()[0])


def test_joining_offline_says_what_will_leave_and_what_is_protected(tmp_path: Path) -> None:
    ended = Site.invited(tmp_path, campaign()).join()
    assert ended.code == 0
    assert "Only the label is protected" in ended.out
    assert "Joined as north" in ended.out
    assert "policy" in ended.err


def test_an_invitation_may_be_a_file_a_line_or_standard_input(tmp_path: Path) -> None:
    site = Site.invited(tmp_path, campaign())
    line = site.invitation.read_text()
    carried = ("--campaign", site.signed, "--may-leave", "probabilities", "--json")
    ways = [site.run("join", given, *carried) for given in (site.invitation, line.strip())]
    ways.append(site.run("join", "-", *carried, stdin=line))
    assert [ended.json["campaign"] for ended in ways] == [site.campaign.digest] * 3


@pytest.mark.parametrize("broken", [lambda line: line[:-30], lambda line: "x" + line])
def test_a_broken_invitation_is_refused_without_being_shown(
    tmp_path: Path, broken: Callable[[str], str]
) -> None:
    site = Site.invited(tmp_path, campaign())
    given = broken(site.invitation.read_text().strip())
    ended = site.run("join", given)
    assert ended.code == ExitCode.BAD_INPUT
    assert given[20:60] not in ended.err + ended.out
    assert ended.err.startswith("tacit: ")


def test_a_policy_that_says_nothing_refuses_and_nothing_is_stored(tmp_path: Path) -> None:
    site = Site.invited(tmp_path, campaign())
    ended = site.run("join", site.invitation, "--campaign", site.signed)
    assert ended.code == ExitCode.REFUSED_HERE
    assert "--may-leave" in ended.err
    assert str(site.home / "policy.toml") in ended.err
    assert site.run("ledger", "show", "--json").json["campaigns"] == []
    assert not (site.home / "policy.toml").exists()


def test_a_policy_with_less_epsilon_refuses(tmp_path: Path) -> None:
    ended = Site.invited(tmp_path, campaign()).join("--max-epsilon", "1.5")
    assert ended.code == ExitCode.REFUSED_HERE
    assert "allows a person 1.5" in ended.err


def test_a_campaign_signed_by_another_key_is_exit_code_six(tmp_path: Path) -> None:
    site = Site.invited(tmp_path, campaign(), key=SigningKey.generate())
    ended = site.join("--json")
    assert ended.code == ExitCode.UNVERIFIED
    assert ended.json == {
        "error": "WrongKey",
        "message": ended.err.removeprefix("tacit: ").strip(),
        "exit_code": 6,
    }


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.name)
def test_a_bad_file_is_one_sentence_exit_code_two_and_nothing_drawn(
    bad: Bad, site: Site, tmp_path: Path
) -> None:
    ended = site.run("contribute", bad.write(tmp_path), "--json")
    assert ended.code == ExitCode.BAD_INPUT
    assert ended.err.startswith("tacit: ")
    assert ended.err.count("\n") == 1
    assert ended.json["exit_code"] == 2
    for words in bad.says:
        assert words in ended.json["message"]
    assert UNSHOWN not in ended.err + ended.out
    assert drawn(site) == 0


def test_a_dry_run_shows_what_would_leave_and_changes_nothing(site: Site, tmp_path: Path) -> None:
    before = sqlite3.connect(site.home / "ledger.db").execute("SELECT * FROM meta").fetchall()
    ended = site.run("contribute", text(GOOD)(tmp_path), "--dry-run", "--json")
    assert ended.code == 0
    shown = ended.json
    assert (shown["records"], shown["to_draw"], shown["already"]) == (3, 3, 0)
    assert [(c["name"], c["dtype"], c["shape"], c["bytes"]) for c in shown["columns"]] == [
        ("labels", "uint8", [3], 3),
        ("probabilities", "float64", [3, 3], 72),
    ]
    assert shown["enrolment"] == {"records": 3}
    assert shown["waiting"] == {"records": 0, "uploads": 0}
    labels = {"dtype": "uint8", "shape": [3], "data": "(not drawn yet)"}
    assert shown["first_upload"]["labels"] == labels
    sent = Column.model_validate_json(json.dumps(shown["first_upload"]["probabilities"])).array()
    assert sent[0].tolist() == [0.5, 0.25, 0.25]
    assert shown["most_epsilon_per_person"] == {
        "before": 0.0,
        "after": site.campaign.epsilon,
        "allowed": 4.0,
    }
    assert drawn(site) == 0
    after = sqlite3.connect(site.home / "ledger.db").execute("SELECT * FROM meta").fetchall()
    assert after == before


def test_a_dry_run_for_people_says_that_nothing_was_sent(site: Site, tmp_path: Path) -> None:
    ended = site.run("contribute", text(GOOD)(tmp_path), "--dry-run")
    assert "Dry run: nothing was drawn, stored or sent." in ended.out
    assert "Only the label is protected" in ended.out
    assert "as it is" in ended.out


def test_a_dry_run_shows_the_enrolment_and_the_first_body_as_they_would_be_sent(
    site: Site, tmp_path: Path
) -> None:
    path, bundle = text(GOOD)(tmp_path), tmp_path / "bundle.zip"
    lines = site.run("contribute", path, "--dry-run").out.splitlines()
    at = f"PUT /v1/campaigns/{site.campaign.digest}"
    assert lines[lines.index(f"{at}/enrolment") + 1] == '{"records":3}'
    shown = json.loads(lines[lines.index(f"{at}/uploads/(random when drawn)") + 1])
    assert site.run("export", path, "-o", bundle).code == 0
    with zipfile.ZipFile(bundle) as archive:
        (name,) = (name for name in archive.namelist() if name.startswith("uploads/"))
        body = json.loads(archive.read(name))
    assert shown["labels"] == body["labels"] | {"data": "(not drawn yet)"}
    begins, _, length = shown["probabilities"].pop("data").partition("… ")
    data = body["probabilities"].pop("data")
    assert (data.startswith(begins), length) == (True, f"({len(data)} characters)")
    for name in ("upload", "labels"):
        shown.pop(name), body.pop(name)
    assert list(shown.items()) == list(body.items())


def test_a_dry_run_after_everything_was_drawn_says_what_waits_to_be_sent(
    site: Site, tmp_path: Path
) -> None:
    path = text(GOOD)(tmp_path)
    assert site.run("export", path, "-o", tmp_path / "bundle.zip").code == 0
    shown = site.run("contribute", path, "--dry-run", "--json").json
    assert (shown["to_draw"], shown["first_upload"]) == (0, None)
    assert shown["waiting"] == {"records": 3, "uploads": 1}
    assert shown["enrolment"] == {"records": 3}
    said = site.run("contribute", path, "--dry-run").out
    assert "1 upload of 3 records drawn before, byte for byte" in said
    assert "null" not in said


def test_a_policy_that_was_withdrawn_keeps_back_what_was_drawn(site: Site, tmp_path: Path) -> None:
    assert site.run("export", text(GOOD)(tmp_path), "-o", tmp_path / "bundle.zip").code == 0
    (site.home / "policy.toml").write_text("may_leave = []\n")
    ended = site.run("contribute", "--resend", "--json")
    assert (ended.code, ended.json["error"]) == (ExitCode.REFUSED_HERE, "PolicyRefused")


def test_quiet_leaves_the_result_of_joining_and_of_a_dry_run_alone(tmp_path: Path) -> None:
    site = Site.invited(tmp_path, campaign())
    joined = site.join("--quiet")
    assert (joined.out, joined.err) == ("Joined as north.\n", "")
    path = text(GOOD)(tmp_path)
    assert (
        "Only the label is protected"
        not in site.run("contribute", path, "--dry-run", "--quiet").out
    )
    exported = site.run("export", path, "-o", tmp_path / "b.zip", "--quiet")
    assert len(exported.out.splitlines()) == 2
    assert "Carry it" not in exported.out


def test_what_to_do_next_names_the_home_that_was_named(tmp_path: Path) -> None:
    site = Site.invited(tmp_path, campaign())
    said = site.join().out
    assert f"Next: tacit export FILE -o BUNDLE --home {site.home}" in said


def test_a_dry_run_counts_a_persons_records_together(site: Site, tmp_path: Path) -> None:
    content = "id,person,label,p_0,p_1,p_2\na,x,cat,1,0,0\nb,x,cat,1,0,0\nc,y,cat,1,0,0\n"
    ended = site.run("contribute", text(content)(tmp_path), "--dry-run", "--json")
    assert ended.json["most_epsilon_per_person"]["after"] == 2 * site.campaign.epsilon


def test_a_person_over_budget_is_exit_code_three_and_nothing_drawn(
    site: Site, tmp_path: Path
) -> None:
    rows = "".join(f"{name},x,cat,1,0,0\n" for name in "abc")
    path = text("id,person,label,p_0,p_1,p_2\n" + rows)(tmp_path)
    for command in (("contribute", path, "--dry-run"), ("export", path, "-o", tmp_path / "b.zip")):
        ended = site.run(*command)
        assert ended.code == ExitCode.REFUSED_HERE
        assert "1 persons with 3 of the records" in ended.err
    assert drawn(site) == 0


def test_a_server_that_is_not_there_is_exit_code_four_and_nothing_drawn(
    site: Site, tmp_path: Path
) -> None:
    ended = site.run("contribute", text(GOOD)(tmp_path), "--json")
    assert ended.code == ExitCode.TRY_LATER
    assert f"No connection to {NOWHERE.removeprefix('http://')}." in ended.json["message"]
    assert "Only the label is protected" in ended.err
    assert drawn(site) == 0
    status = site.run("status", "--json")
    assert status.code == ExitCode.TRY_LATER
    assert "No connection" in status.json["campaigns"][0]["problem"]


def test_an_export_draws_once_and_the_ledger_shows_it(site: Site, tmp_path: Path) -> None:
    path, bundle = text(GOOD)(tmp_path), tmp_path / "bundle.zip"
    first = site.run("export", path, "-o", bundle, "--json")
    again = site.run("export", path, "-o", bundle, "--json")
    assert (first.json["drawn"], again.json["drawn"], again.json["already"]) == (3, 0, 3)
    assert bundle.exists()
    shown = site.run("ledger", "show", "--json").json
    assert shown["campaigns"][0]["records"]["drawn"] == 3
    assert shown["persons"] == 3
    assert shown["most_epsilon"] == pytest.approx(site.campaign.epsilon, abs=1e-8)
    assert TOKEN not in first.out + first.err + site.run("ledger", "show").out


def test_features_leave_in_the_campaigns_type(tmp_path: Path) -> None:
    asked = campaign(evidence=Features(model="0" * 64, dtype="uint8", shape=(2,)))
    site = Site.invited(tmp_path, asked)
    carried = ("--campaign", site.signed, "--may-leave", "features")
    assert site.run("join", site.invitation, *carried).code == 0
    path = text("id,label,x_0,x_1\na,cat,7,9\n")(tmp_path)
    shown = site.run("contribute", path, "--dry-run", "--json").json
    features = Column.model_validate_json(json.dumps(shown["first_upload"]["features"])).array()
    assert features.tolist() == [[7, 9]]
    assert shown["columns"][1]["dtype"] == "uint8"


def test_warnings_are_on_standard_error_and_quiet_silences_them(tmp_path: Path) -> None:
    site = Site.invited(tmp_path, campaign(classes=("1", "2", "3")))
    assert site.join().code == 0
    path = text("id,label,p_1,p_2,p_3\na,1,1,0,0\nb,2,1,0,0\n")(tmp_path)
    loud = site.run("contribute", path, "--dry-run", "--json")
    assert "read as names" in loud.err
    assert loud.json["records"] == 2
    assert site.run("contribute", path, "--dry-run", "--json", "--quiet").err == ""


def test_a_campaign_that_was_never_joined_is_exit_code_two(tmp_path: Path) -> None:
    for command in (("contribute", "x.csv"), ("leave", "--yes"), ("status", "abc")):
        ended = tacit(*command, home=tmp_path / "home")
        assert ended.code == ExitCode.BAD_INPUT
        assert "No campaign is joined yet: tacit join INVITATION" in ended.err


def test_another_campaign_than_the_joined_one_is_exit_code_two(site: Site) -> None:
    ended = site.run("status", "zz")
    assert ended.code == ExitCode.BAD_INPUT
    assert "join it with its invitation" in ended.err


def test_leaving_without_a_terminal_needs_yes(site: Site) -> None:
    ended = site.run("leave")
    assert ended.code == ExitCode.BAD_INPUT
    assert "--yes" in ended.err


def test_a_file_or_resend_is_needed_but_not_both(site: Site, tmp_path: Path) -> None:
    for arguments in ((), (tmp_path / "x.csv", "--resend"), ("--resend", "--dry-run")):
        assert site.run("contribute", *arguments).code == ExitCode.BAD_INPUT


def test_without_a_campaign_status_says_how_to_join(tmp_path: Path) -> None:
    ended = tacit("status", home=tmp_path / "home")
    assert ended.code == 0
    assert "tacit join" in ended.out
