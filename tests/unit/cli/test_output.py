import os
import subprocess
import sys
from pathlib import Path

import pytest

from tacit_client.cli.output import Screen, facts, many, printable, table


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
