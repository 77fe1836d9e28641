"""The library's story, as a newcomer meets it."""

import io
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from examples.digits_story.campaigns import Terms, compare
from examples.digits_story.main import main
from examples.digits_story.screen import show
from examples.digits_story.sites import ScoreCampaign, Site
from examples.digits_story.story import Setting, prepare
from examples.digits_story.words import caveats
from tacit.conformal import Question
from tacit_client.demo.display import blocks
from tacit_client.demo.figures import instructive, sampling_error

ROOT = Path(__file__).parents[2]
METHODS = ("not private", "LDP-CP-L ", "LDP-CP-L*", "LDP-CP-S ", "LDP-CP-S*")


@pytest.fixture(scope="module")
def setting() -> Setting:
    return prepare()


@pytest.fixture(scope="module")
def site(setting: Setting) -> Site:
    return setting.sites[0]


def question(turn: int, threshold: float = 0.5) -> Question:
    return Question(round=turn, threshold=threshold, low=0.0, high=1.0, found=1.0)


def campaign(setting: Setting, name: str = "scores") -> ScoreCampaign:
    terms = Terms()
    return ScoreCampaign(name, setting.model, terms.score, terms.bit_mechanism, terms.rounds)


def test_the_command_tells_the_story_and_saves_a_picture(tmp_path: Path) -> None:
    picture = tmp_path / "new folder" / "coverage.png"
    command = [sys.executable, "examples/digits.py", "--picture", str(picture)]
    environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": "80"}
    told = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True, timeout=300
    )
    assert told.stderr == ""
    assert "\x1b[" not in told.stdout
    for method in METHODS:
        (line, *_) = [line for line in told.stdout.splitlines() if line.startswith(method)]
        assert "±" in line
    assert "at least 80%, 95% sure" in told.stdout
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.name in told.stdout


def test_what_is_not_certifiable_says_how_many_records_would_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--alpha", "0.1", "--picture", str(tmp_path / "coverage.png")]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "Not certifiable with 1250 records" in told
    assert "1620 records would do" in told
    assert "Nothing was asked" in told


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--epsilon", "0", "ε must be a positive, finite number"),
        ("--alpha", "1", "α must lie strictly between 0 and 1"),
        ("--rounds", "0", "rounds must be an integer of at least 1"),
    ],
)
def test_terms_that_make_no_sense_are_refused_in_words(
    option: str,
    value: str,
    words: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    picture = tmp_path / "coverage.png"
    assert main([option, value, "--picture", str(picture)]) == 2
    assert words in " ".join(capsys.readouterr().out.split())
    assert not picture.exists()


def test_a_picture_that_cannot_be_saved_does_not_keep_the_story(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "build").touch()
    assert main(["--picture", str(tmp_path / "build" / "demo" / "coverage.png")]) == 1
    told = capsys.readouterr().out
    assert all(method in told for method in METHODS)
    assert "coverage.png cannot be saved: " in told.splitlines()[-1]


def test_a_picture_that_is_no_png_is_refused_before_any_work(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["--picture", "coverage.pdf"])
    assert stopped.value.code == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "name must end in .png" in captured.err


def test_a_reader_that_leaves_early_is_no_cause_for_a_traceback() -> None:
    readable, writable = os.pipe()
    os.close(readable)
    with os.fdopen(writable, "w") as pipe:
        command = [sys.executable, "examples/digits.py"]
        ended = subprocess.run(
            command, cwd=ROOT, check=False, stdout=pipe, stderr=subprocess.PIPE, timeout=300
        )
    assert ended.stderr == b""


def test_the_budget_is_of_the_realized_epsilons_not_of_the_one_asked_for(setting: Setting) -> None:
    terms = Terms(epsilon=700)
    budget = caveats(compare(setting.sites, setting.model, terms), held_out=447)["Budget"]
    labels, bits = terms.label_mechanism.epsilon, terms.bit_mechanism.epsilon
    assert max(labels, bits) < 700
    assert budget.endswith(f"{labels:g} + {bits:g} + {bits:g} = {labels + 2 * bits:g}.")


@pytest.mark.parametrize("width", [40, 80])
def test_the_headings_of_the_table_are_whole_words(setting: Setting, width: int) -> None:
    console = Console(width=width, file=io.StringIO(), record=True)
    show(console, compare(setting.sites, setting.model, Terms()), setting)
    told = console.export_text()
    assert " coverage " in told
    assert "…" not in told


def test_the_sites_hold_every_calibration_record_once(setting: Setting) -> None:
    sizes = [len(site) for site in setting.sites]
    assert len(sizes) == len(set(sizes)) == 5
    assert sum(sizes) == setting.n == 1250
    assert setting.n + 100 + len(setting.held_out) == 1797


def test_a_site_that_is_asked_again_sends_the_same_report(setting: Setting, site: Site) -> None:
    mechanism = Terms().label_mechanism
    first, second = site.report_labels(mechanism), site.report_labels(mechanism)
    assert (first.labels == second.labels).all()
    asked = question(turn=2)
    assert site.answer(asked, campaign(setting)) == site.answer(asked, campaign(setting))


def test_reported_labels_are_not_the_true_ones(site: Site) -> None:
    """False alarm: no replaced label among 500 differs, (1-0.31)^500 < 1e-80."""
    reports = site.report_labels(Terms().label_mechanism).labels
    assert (reports != site.records.labels).any()


def test_each_record_of_a_site_answers_in_one_round(setting: Setting, site: Site) -> None:
    rounds = Terms().rounds
    counts = [site.answer(question(turn), campaign(setting)).count for turn in range(rounds)]
    assert sum(counts) == len(site)
    assert max(counts) - min(counts) <= 1


def test_a_site_never_shows_its_key_or_records(site: Site) -> None:
    assert repr(site) == "Site(name='Ash')"


def test_the_model_is_the_same_in_every_run(setting: Setting) -> None:
    again = prepare()
    images = setting.held_out.images
    assert (again.model.probabilities(images) == setting.model.probabilities(images)).all()


def test_the_image_shown_is_one_that_a_set_rescues() -> None:
    probabilities = np.array([[0.6, 0.4, 0], [0.5, 0.3, 0.2], [0.9, 0, 0.1], [0.5, 0.45, 0.05]])
    labels = np.array([0, 1, 2, 1])
    sets = np.array([[1, 1, 1], [1, 1, 0], [1, 1, 0], [1, 0, 0]], dtype=bool)
    assert instructive(sets, probabilities, labels) == 1


def test_an_image_becomes_two_characters_for_each_pixel() -> None:
    assert blocks(np.array([[0, 1], [0.5, 0.25]])) == "  ██\n▒▒░░"


def test_the_sampling_error_is_not_zero_where_every_record_is_a_hit() -> None:
    assert sampling_error(0.8, 447) == pytest.approx(0.037, abs=5e-4)
    assert 0 < sampling_error(1.0, 447) < 0.01
