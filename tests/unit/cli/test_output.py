import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from tacit_client.cli.output import Screen, facts, many, table
from tacit_client.printable import printable
from tacit_client.progress import progress_bar, progress_lines


def test_a_servers_words_cannot_steer_the_terminal() -> None:
    assert printable("\x1b[2Jgone\r\x07 ε ok\n") == "�[2Jgone�� ε ok\n"


def test_markup_in_a_title_is_printed_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    Screen().show({}, table(("title",), [("[red]x[/red] :smile:",)]), facts([("a", "[b]")]))
    out = capsys.readouterr().out
    assert "[red]x[/red] :smile:" in out
    assert "[b]" in out


def test_json_is_one_object_and_ascii(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen(json=True)
    screen.show({"ε": 1}, "words for people")
    screen.say("a note")
    captured = capsys.readouterr()
    assert captured.out == '{"\\u03b5": 1}\n'
    assert captured.err == "a note\n"


def test_quiet_leaves_results_and_errors(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen(quiet=True)
    screen.say("a note")
    screen.complain("an error")
    screen.show({}, "a result")
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("a result\n", "an error\n")


def test_progress_is_not_drawn_where_there_is_no_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with Screen().progress() as report:
        report(1, 2, "records sent")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "records sent" not in captured.err


def test_without_a_terminal_what_is_waited_for_is_said_when_it_changes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with Screen().progress() as report:
        report(0, 4, "rounds: 60 of 120 planned records enrolled.")
        report(0, 4, "rounds: 60 of 120 planned records enrolled.")
    assert capsys.readouterr().err == "0 of 4 rounds: 60 of 120 planned records enrolled.\n"
    with Screen(quiet=True).progress() as report:
        report(0, 4, "rounds: 60 of 120 planned records enrolled.")
    assert capsys.readouterr().err == ""


def test_lines_of_progress_are_few_and_leave_out_no_last_word() -> None:
    said: list[str] = []
    now = [0.0]
    report = progress_lines(said.append, lambda: now[0])
    told = (
        (0.0, "rounds: Round 1 waits for 2 sites; it may close in 60 s."),
        (9.0, "rounds: Round 1 waits for 2 sites; it may close in 51 s."),
        (10.0, "rounds: Round 1 waits for 1 site; it may close in 50 s."),
        (11.0, "rounds: Round 2 waits for 2 sites."),
        (12.0, "records sent"),
        (13.0, "records that failed: tell the owner"),
        (16.0, "rounds: Round 2 waits for 2 sites."),
    )
    for now[0], what in told:
        report(1, 4, what)
    assert said == [
        "1 of 4 rounds: Round 1 waits for 2 sites; it may close in 60 s.",
        "1 of 4 rounds: Round 1 waits for 1 site; it may close in 50 s.",
        "1 of 4 records that failed: tell the owner",
        "1 of 4 rounds: Round 2 waits for 2 sites.",
    ]


def test_one_is_not_many() -> None:
    assert [many(count, "upload") for count in (0, 1, 2000)] == [
        "0 uploads",
        "1 upload",
        "2,000 uploads",
    ]


def test_a_terminal_that_knows_only_ascii_gets_its_results(tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "LC_ALL": "C",
        "PYTHONIOENCODING": "ascii",
        "TACIT_HOME": str(tmp_path),
    }
    ended = subprocess.run(
        [sys.executable, "-m", "tacit_client.cli", "doctor"],
        env=environment,
        capture_output=True,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert b"at most ? = 4 per person" in ended.stdout


def test_a_reader_that_leaves_early_is_no_cause_for_a_traceback() -> None:
    readable, writable = os.pipe()
    os.close(readable)
    with os.fdopen(writable, "w") as pipe:
        ended = subprocess.run(
            [sys.executable, "-m", "tacit_client.cli", "plan"],
            check=False,
            stdout=pipe,
            stderr=subprocess.PIPE,
        )
    assert ended.returncode == 1
    assert ended.stderr == b""


def test_what_follows_a_colon_is_shown_on_the_bar_of_its_kind_as_it_is() -> None:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=120)
    with progress_bar(console) as show:
        show(1, 10, "rounds: Round 2 of 10 waits for 2 sites")
        show(2, 10, "rounds: [red]Round 3[/red] \x1b[2J waits for 1 site")
        show(5, 5, "records sent")
    shown = stream.getvalue()
    last = [line for line in shown.splitlines() if "10" in line][-1]
    assert "[red]Round 3[/red] �[2J waits for 1 site" in last
    assert "rounds:" not in shown
    assert "records sent" in shown
