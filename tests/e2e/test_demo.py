"""`tacit demo` as a newcomer meets it: the real command, run once and left up, then ended."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tacit.conformal import Answers, BinarySearch, Calibration, Question
from tacit.mechanisms import BinaryChannel
from tacit.planning import n_for_scores
from tacit.scores import APS

COMMAND = [sys.executable, "-m", "tacit_client.cli"]
PATIENCE = 240
"""Seconds; it takes a tenth of that where nothing else runs."""
SECRET = re.compile(r"tacit_[A-Za-z0-9_-]{20,}|tacit-invitation\.")
RESULTS = ("not private", "LDP-CP-L ", "LDP-CP-L*", "LDP-CP-S ")
SIZES = {"Ash": 500, "Birch": 350, "Cedar": 200, "Elm": 150, "Fir": 50}

CERTIFIED_FROM = n_for_scores(0.1, BinaryChannel.for_epsilon(3.0).flip, 10, 0.05)
ROUND = re.compile(
    r"\s+(?P<round>\d+)  +(?P<asked>\d\.\d{4})  +(?P<bits>\d+)  +(?P<estimate>-?[\d.]+)%"
)
"""A line of the table of rounds."""


@dataclass
class Demo:
    """A demo that was told to keep its service up, and has told everything."""

    process: subprocess.Popen[str]
    folder: Path
    told: list[str]

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.told).split())

    def after(self, words: str) -> str:
        """The word that follows."""
        found = re.search(re.escape(words) + r"\s*([^\s;]+)", self.text)
        assert found is not None, words
        return found[1].rstrip(".")

    @property
    def rounds(self) -> list[re.Match[str]]:
        """The rows of the table of rounds."""
        return [found for line in self.told if (found := ROUND.match(line))]

    def message(self, what: str) -> str:
        """One of the messages, as it was printed."""
        (begin,) = [i for i, line in enumerate(self.told) if line.startswith(f"{what}  ")]
        end = next(i for i in range(begin, len(self.told)) if not self.told[i].strip())
        return "".join(self.told[begin:end])


def start(folder: Path, *options: str) -> subprocess.Popen[str]:
    others = {k: v for k, v in os.environ.items() if not k.startswith("TACIT_")}
    return subprocess.Popen(
        [*COMMAND, "demo", *options],
        env={**others, "TMPDIR": str(folder), "NO_COLOR": "1", "COLUMNS": "80"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
        encoding="utf-8",
    )


def interrupt(process: subprocess.Popen[str]) -> None:
    """What Ctrl-C does in a terminal: every process of the command gets the signal."""
    os.killpg(process.pid, signal.SIGINT)


def processes_of(folder: Path) -> list[str]:
    """Processes that were started with this folder as their place for temporary files."""
    marker = f"TMPDIR={folder}\0".encode()
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if marker in (process / "environ").read_bytes():
                found.append(process.name)
        except OSError:  # ended meanwhile, or somebody else's
            continue
    return found


@contextmanager
def kept_demo(folder: Path) -> Iterator[Demo]:
    process = start(folder, "--keep")
    assert process.stdout is not None
    told = []
    for line in process.stdout:
        told.append(line)
        if "tacit-aggregator token list" in line:
            break
    try:
        assert told, process.communicate(timeout=PATIENCE)[1]
        yield Demo(process, folder, told)
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE)


def the_results_stand_beside_the_one_without_privacy(demo: Demo) -> None:
    for method in RESULTS:
        (line, *_) = [line for line in demo.told if line.startswith(method)]
        assert "±" in line
        assert "90%" in line or line.rstrip().endswith("aims higher, not proved")
    assert "no certificate" in demo.text
    assert "for finitely many records nothing is guaranteed" in demo.text
    assert "In L the images: they left as they are" in demo.text
    assert demo.text.count("(ε = 3)") == 2
    assert "here 6 for each record, of 6 that the policies allow" in demo.text
    assert "the whole record is protected" in demo.text
    assert f"it needs {CERTIFIED_FROM:,} records at the very least" in demo.text


def the_rounds_narrow_as_the_search_says_and_end_at_the_threshold(demo: Demo) -> None:
    """The table is replayed: each question follows from the estimate in the row before.

    The halves of [0, 1] are exact as floats, so what is printed is compared digit by digit.
    """
    rows = demo.rounds
    assert [int(row["round"]) for row in rows] == list(range(1, 11))
    assert sum(int(row["bits"]) for row in rows) == 1250
    low, asked, high = 0.0, 0.5, 1.0
    for row in rows:
        asked = (low + high) / 2
        assert row["asked"] == f"{asked:.4f}"
        low, high = (low, asked) if float(row["estimate"]) > 90 else (asked, high)
    (result,) = [line for line in demo.told if line.startswith("LDP-CP-S ") and "±" in line]
    assert f"  {asked:.3f}  " in result
    assert "1,250 bits left the sites, for 1,250 records" in demo.text


def the_round_waited_for_the_site_that_was_killed_in_it(demo: Demo) -> None:
    killed = re.search(
        r"In S Cedar's process was killed in round 4: the server had stored its (\d+) answers,"
        r" but the receipt never arrived\. .* “Round 4 of 10 waits for 1 of 5 sites",
        demo.text,
    )
    assert killed is not None
    assert int(killed[1]) == 20
    again = re.search(
        r"(\d+) answers found in the ledger, the upload without a receipt sent again byte for byte"
        r" as it was, and (\d+) answers drawn in the rounds that followed\. In the end the ledger"
        r" holds 200 records, each drawn once, and the server counted 200\.",
        demo.text,
    )
    assert again is not None
    assert (int(again[1]), int(again[2])) == (80, 120)


def the_site_that_was_killed_went_on_without_drawing_again(demo: Demo) -> None:
    assert (
        "was killed (SIGKILL) when 350 labels were drawn: 100 had a receipt, 100 were stored by the"
        " server but the receipt never arrived, 150 had not been sent." in demo.text
    )
    assert "0 records drawn, 350 found in the ledger" in demo.text
    assert "went out again byte for byte as it was" in demo.text
    assert "the ledger holds 350 records, each drawn once, and the server counted 350." in demo.text


def one_message_of_each_kind_is_shown(demo: Demo) -> None:
    assert '"planned_n": 1250' in demo.message("campaign")
    assert '"signature"' in demo.message("campaign")
    assert '{"records": 50}' in demo.message("enrolment")
    assert '"features"' in demo.message("upload")
    assert '"state": "accepted"' in demo.message("receipt")
    assert '"method": "ldp-cp-l"' in demo.message("threshold")
    assert '"tacit": "question"' in demo.message("question")
    assert '"threshold": 0.5' in demo.message("question")
    assert '"shape": [5]' in demo.message("answers")
    assert "features" not in demo.message("answers")
    assert '{"answers": 5}' in demo.message("done")


def the_images_are_gone_and_the_keys_erased(demo: Demo) -> None:
    assert "finds 0 of the 1,250 images" in demo.text
    assert "5 of 5 sites have learnt that all is counted" in demo.text


def it_fits_a_terminal_of_80_columns(demo: Demo) -> None:
    story = demo.told[: next(i for i, line in enumerate(demo.told) if "stays up" in line)]
    assert [line for line in story if len(line.rstrip()) > 80] == []
    assert not any("\x1b" in line for line in story)


def the_service_that_stays_up_answers_the_commands_that_were_named(demo: Demo) -> None:
    url, token_file = demo.after("stays up at"), demo.after("owner's token is in")
    server = ["--url", url, "--key", demo.after("TACIT_KEY="), "--token-file", token_file]
    home = ["--home", demo.after("TACIT_HOME=")]

    def told_by(*command: str) -> dict[str, Any]:
        run = [*COMMAND, *command, "--json", *server, *home]
        done = subprocess.run(run, capture_output=True, check=True, timeout=PATIENCE)
        fields: dict[str, Any] = json.loads(done.stdout)
        return fields

    campaigns = told_by("campaign", "list")["campaigns"]
    assert len(campaigns) == 2
    for campaign in campaigns:
        assert campaign["state"] == "closed"
        assert campaign["closed_by"] == "plan"
        counted = {site["site"]: site["records"]["counted"] for site in campaign["sites"]}
        assert counted == SIZES
    asked = told_by("campaign", "show", demo.after("tacit campaign show"))["status"]["rounds"]
    assert [f"{each['threshold']:.4f}" for each in asked] == [row["asked"] for row in demo.rounds]


def nothing_secret_is_printed_and_nothing_stays_behind(demo: Demo) -> None:
    """Ends the demo."""
    token = Path(demo.after("owner's token is in")).read_text().strip()
    assert SECRET.match(token)
    assert processes_of(demo.folder) != []
    interrupt(demo.process)
    rest, progress = demo.process.communicate(timeout=PATIENCE)
    assert demo.process.returncode == 0
    assert "Traceback" not in progress
    assert not SECRET.search("".join(demo.told) + rest + progress)
    for killed in ("Birch: 350", "Cedar: 200"):
        assert f"{killed} records accepted; it was killed on the way, and went on" in progress
    assert list(demo.folder.iterdir()) == []
    assert processes_of(demo.folder) == []


def test_the_demo_tells_the_truth_and_leaves_nothing_behind(tmp_path: Path) -> None:
    """One test, since the demo takes as long as many."""
    with kept_demo(tmp_path) as demo:
        the_results_stand_beside_the_one_without_privacy(demo)
        the_rounds_narrow_as_the_search_says_and_end_at_the_threshold(demo)
        the_round_waited_for_the_site_that_was_killed_in_it(demo)
        the_site_that_was_killed_went_on_without_drawing_again(demo)
        one_message_of_each_kind_is_shown(demo)
        the_images_are_gone_and_the_keys_erased(demo)
        it_fits_a_terminal_of_80_columns(demo)
        the_service_that_stays_up_answers_the_commands_that_were_named(demo)
        nothing_secret_is_printed_and_nothing_stays_behind(demo)


@pytest.mark.parametrize(
    ("end", "step", "code"),
    [
        pytest.param(interrupt, "five sites are invited", 130, marks=pytest.mark.long),
        (subprocess.Popen.terminate, "aggregator starts", 143),
    ],
)
def test_a_demo_that_is_ended_early_leaves_nothing_behind(
    end: Callable[[subprocess.Popen[str]], None], step: str, code: int, tmp_path: Path
) -> None:
    process = start(tmp_path, "--json")
    assert process.stderr is not None
    for line in process.stderr:  # each line is a step that is over
        if step in line:
            break
    end(process)
    printed, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == code
    assert "results" not in printed
    assert "Traceback" not in said
    assert list(tmp_path.iterdir()) == []
    assert processes_of(tmp_path) == []


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--epsilon", "0", "ε must be a positive, finite number"),
        ("--epsilon", "1e-12", "ε must be at least 2^-30"),
        ("--alpha", "1", "α must lie strictly between 0 and 1"),
    ],
)
def test_terms_that_make_no_sense_are_refused_before_anything_starts(
    option: str, value: str, words: str, tmp_path: Path
) -> None:
    process = start(tmp_path, option, value)
    printed, complaint = process.communicate(timeout=PATIENCE)
    assert process.returncode == 2
    assert printed == ""
    assert words in " ".join(complaint.split())
    assert "aggregator starts" not in complaint


@pytest.mark.long
def test_the_outcome_for_programs_is_one_object(tmp_path: Path) -> None:
    process = start(tmp_path, "--json", "--quiet", "--epsilon", "1")
    printed, complaint = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, complaint
    assert complaint == ""
    told = json.loads(printed)
    every = {"received": 1250, "pending": 0, "counted": 1250, "dropped": 0}
    for campaign, site in (("labels", "Birch"), ("scores", "Cedar")):
        part = told[campaign]
        assert part["records"] == every
        assert part["sites"] == SIZES
        assert part["crash"]["site"] == site
        assert part["crash"]["resent_alike"]
        assert part["crash"]["counted"] == part["crash"]["drawn_in_all"] == SIZES[site]
        assert part["crash"]["drawn_again"] + part["crash"]["already"] == SIZES[site]
    assert told["labels"]["crash"]["drawn_again"] == 0
    assert told["results"]["LDP-CP-L*"]["needed"] > 1250
    assert 0 < told["results"]["not private"]["coverage"] <= 1
    assert [message["what"] for message in told["messages"]] == [
        *("campaign", "enrolment", "upload", "receipt", "threshold"),
        *("question", "answers", "done"),
    ]
    assert told["spent"] == pytest.approx(2.0)
    assert not SECRET.search(printed)
    the_threshold_is_that_of_the_rounds(told)


def the_threshold_is_that_of_the_rounds(told: dict[str, Any]) -> None:
    """The core's search, asked with the counts that were told, says the same."""
    channel = BinaryChannel.for_epsilon(1.0)
    search = BinarySearch(APS(), 10, channel, 0.1, told["scores"]["asked_n"], 10)
    step: Question | Calibration = search.start()
    for each in told["scores"]["rounds"]:
        assert isinstance(step, Question)
        assert (step.threshold, step.low, step.high) == (
            each["threshold"],
            each["low"],
            each["high"],
        )
        assert each["sites"] == 5
        step = search.advance(step, Answers(each["ones"], each["answers"]))
    assert isinstance(step, Calibration)
    assert step.threshold == told["results"]["LDP-CP-S"]["threshold"]
    assert step.n == told["scores"]["bits"] == 1250
