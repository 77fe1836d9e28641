"""The sessions that pages show are what happens when somebody types them in."""

from pathlib import Path

import pytest

from tests.support.sessions import Session, commands

HOW_TO = Path(__file__).parents[2] / "docs" / "how-to"


@pytest.mark.parametrize("page", ["run-a-label-campaign.md", "run-a-score-campaign.md"])
def test_the_session_of_a_page_is_what_happens(page: str, tmp_path: Path) -> None:
    assert Session(tmp_path).run((HOW_TO / page).read_text()) == []


def test_a_line_that_is_not_printed_is_noticed(tmp_path: Path) -> None:
    page = "```console\n$ echo 12 records\n13 records\n```\n"
    assert "echo 12 records: 13 records" in Session(tmp_path).run(page)


def test_a_line_that_the_page_does_not_show_is_noticed(tmp_path: Path) -> None:
    session = Session(tmp_path)
    wrong = ["say: not on the page: and another"]
    assert session.compare("say", ["one"], ["one", "and another"], 0) == wrong
    assert session.compare("say", [], ["", "and another"], 0) == wrong
    assert session.compare("say", ["one", "…"], ["one", "and another"], 0) == []
    assert session.compare("say", ["one", "…", "three"], ["one", "two", "three"], 0) == []
    assert session.compare("say", ["two", "one"], ["one", "two"], 0) != []


def test_a_command_that_fails_is_noticed(tmp_path: Path) -> None:
    (wrong,) = Session(tmp_path).run("```console\n$ ls --no-such-option\n…\n```\n")
    assert "ended with" in wrong


def test_digests_differ_from_the_page_but_not_among_themselves(tmp_path: Path) -> None:
    session = Session(tmp_path)
    shown, own, other = "a" * 64, "b" * 64, "c" * 64
    assert session.compare("make", [f"made {shown}"], [f"made {own}"], 0) == []
    assert session.compare("show", [f"shows {shown[:12]}"], [f"shows {own[:12]}"], 0) == []
    assert session.compare("show", [f"shows {shown[:12]}"], [f"shows {other[:12]}"], 0) != []


def test_times_and_fractions_are_not_compared_but_whole_numbers_are(tmp_path: Path) -> None:
    session = Session(tmp_path)
    shown = ["2026-01-01 12:00 UTC: 0.25 of 100"]
    assert session.compare("say", shown, ["2027-02-02 13:30 UTC: 0.5 of 100"], 0) == []
    assert session.compare("say", shown, ["2026-01-01 12:00 UTC: 0.25 of 200"], 0) != []


def test_a_command_over_two_lines_is_one() -> None:
    assert list(commands("$ echo a \\\n    b\na b\n…\n")) == [("echo a b", ["a b", "…"])]
