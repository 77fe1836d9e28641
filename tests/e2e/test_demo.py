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

import pytest

COMMAND = [sys.executable, "-m", "tacit_client.cli"]
PATIENCE = 240
"""Seconds; it takes a tenth of that where nothing else runs."""
SECRET = re.compile(r"tacit_[A-Za-z0-9_-]{20,}|tacit-invitation\.")
RESULTS = ("not private", "LDP-CP-L ", "LDP-CP-L*")


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
    assert "The images: they left as they are" in demo.text
    assert "ε = 3" in demo.text


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
    listed = subprocess.run(
        [*COMMAND, "campaign", "list", "--json", *server, *home],
        capture_output=True,
        check=True,
        timeout=PATIENCE,
    )
    (campaign,) = json.loads(listed.stdout)["campaigns"]
    assert campaign["state"] == "closed"
    assert campaign["closed_by"] == "plan"
    assert {site["site"]: site["records"]["counted"] for site in campaign["sites"]} == {
        "Ash": 500,
        "Birch": 350,
        "Cedar": 200,
        "Elm": 150,
        "Fir": 50,
    }


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
    assert "Birch: 350 records accepted; it was killed on the way, and went on" in progress
    assert list(demo.folder.iterdir()) == []
    assert processes_of(demo.folder) == []


def test_the_demo_tells_the_truth_and_leaves_nothing_behind(tmp_path: Path) -> None:
    """One test, since the demo takes as long as many."""
    with kept_demo(tmp_path) as demo:
        the_results_stand_beside_the_one_without_privacy(demo)
        the_site_that_was_killed_went_on_without_drawing_again(demo)
        one_message_of_each_kind_is_shown(demo)
        the_images_are_gone_and_the_keys_erased(demo)
        it_fits_a_terminal_of_80_columns(demo)
        the_service_that_stays_up_answers_the_commands_that_were_named(demo)
        nothing_secret_is_printed_and_nothing_stays_behind(demo)


@pytest.mark.parametrize(
    ("end", "step", "code"),
    [
        (interrupt, "five sites are invited", 130),
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
    assert told["records"] == {"received": 1250, "pending": 0, "counted": 1250, "dropped": 0}
    assert told["crash"]["drawn_again"] == 0
    assert told["crash"]["counted"] == told["crash"]["drawn_in_all"] == 350
    assert told["results"]["LDP-CP-L*"]["needed"] > 1250
    assert 0 < told["results"]["not private"]["coverage"] <= 1
    assert [message["what"] for message in told["messages"]] == [
        "campaign",
        "enrolment",
        "upload",
        "receipt",
        "threshold",
    ]
    assert not SECRET.search(printed)
