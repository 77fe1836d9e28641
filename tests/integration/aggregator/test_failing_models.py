"""Models that die, hang or want too much memory: nobody is dropped for what is not his fault."""

import os
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from structlog.testing import capture_logs

from tacit.protocol import LabelCampaign
from tacit_aggregator.scoring import counting
from tacit_aggregator.settings import Settings
from tests.support.aggregator import as_process, in_thread, migrated, until
from tests.support.deadly_models import ALWAYS, MOODS
from tests.support.label_campaigns import (
    Reported,
    campaign_document,
    problem,
    scene,
)
from tests.support.scored_campaigns import (
    evidence_of,
    features_of,
    registered,
    save_weights,
    upload_of,
)
from tests.support.tiny_models import CLASSES, SHAPE

BRIGHT = np.full((6, *SHAPE), 255, np.uint8)


@pytest.fixture
def moods(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that says what the model does with the next bright records."""
    file = tmp_path / "moods"
    file.write_text("")
    monkeypatch.setenv(MOODS, str(file))
    return file


def moody(settings: Settings, folder: Path) -> LabelCampaign:
    """A campaign with a model that follows its moods."""
    file = save_weights(folder / "model.safetensors")
    model = registered(settings, file, "tests.support.deadly_models:Moody")
    return campaign_document(k=CLASSES, evidence=evidence_of(model))


def attempts(settings: Settings) -> list[int]:
    """The attempts of what waits."""
    file = settings.database_url.removeprefix("sqlite:///")
    with closing(sqlite3.connect(file)) as connection:
        return [count for (count,) in connection.execute("SELECT attempts FROM pending")]


def wait_for(moods: Path, left: list[str]) -> None:
    """Until the model has come so far."""
    until(lambda: moods.read_text().split() == left)


@pytest.mark.long
def test_an_upload_is_not_dropped_because_the_server_was_killed_while_it_was_scored(
    tmp_path: Path, moods: Path
) -> None:
    settings = migrated(tmp_path)
    document = moody(settings, tmp_path)
    kills = 2  # with the two deaths as many attempts as are made at most, were they counted
    moods.write_text("die die " + "hang " * kills)
    with as_process(settings) as aggregator, scene(aggregator, document) as made:
        site = made.site()
        upload = upload_of(made.digest, BRIGHT)
        site.send(upload)
        for left in reversed(range(kills)):
            wait_for(moods, ["hang"] * left)
            assert attempts(settings) == [1]
            aggregator.kill()
            aggregator.start()
        made.wait_until_counted(6)
        assert site.send(upload).state == "counted"


@pytest.mark.long
def test_an_upload_is_not_dropped_because_its_models_file_is_gone(
    tmp_path: Path, moods: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counting, "_AFTER_TROUBLE", 0.05)
    settings = migrated(tmp_path, scoring_seconds=6.0)  # a slow rehearsal would count no attempt
    document = moody(settings, tmp_path)
    file, elsewhere = tmp_path / "model.safetensors", tmp_path / "elsewhere"
    moods.write_text("die die hang")
    with in_thread(settings) as aggregator, scene(aggregator, document) as made:
        made.site().send(upload_of(made.digest, BRIGHT))
        wait_for(moods, [])
        file.rename(elsewhere)
        with capture_logs() as lines:
            until(lambda: sum(line["event"] == "model trouble" for line in lines) > 4)
        assert attempts(settings) == [2]
        elsewhere.rename(file)
        assert made.wait_until_counted(6).records.dropped == 0


def test_a_worker_that_died_with_nothing_to_do_is_replaced_and_no_upload_is_blamed(
    tmp_path: Path, generator: np.random.Generator
) -> None:
    settings = migrated(tmp_path)
    with as_process(settings) as aggregator, scene(aggregator) as made:
        site = made.site()
        site.send(Reported.random(generator, 5).upload(made.digest))
        made.wait_until_counted(5)
        assert aggregator.process is not None
        for worker in workers(aggregator.process.pid):
            os.kill(worker, signal.SIGKILL)
        site.send(Reported.random(generator, 5).upload(made.digest))
        made.wait_until_counted(10)


def test_a_model_that_hangs_is_ended_and_its_upload_is_tried_again(
    tmp_path: Path, moods: Path, generator: np.random.Generator
) -> None:
    settings = migrated(tmp_path, scoring_seconds=1.0)
    document = moody(settings, tmp_path)
    moods.write_text("hang hang")
    with in_thread(settings) as aggregator, scene(aggregator, document) as made:
        site = made.site()
        site.send(upload_of(made.digest, BRIGHT))
        site.send(upload_of(made.digest, features_of(generator)))
        assert made.wait_until_counted(12).records.dropped == 0
        assert made.owner.get("/readyz").status_code == 200


def test_an_upload_that_takes_long_is_not_ended_while_there_is_progress(
    tmp_path: Path, moods: Path
) -> None:
    settings = migrated(tmp_path, scoring_seconds=1.0)
    document = moody(settings, tmp_path)
    moods.write_text("tarry " * 4)
    with in_thread(settings) as aggregator, scene(aggregator, document) as made:
        labels = np.zeros(4 * 512, np.uint8)
        bright = np.full((len(labels), *SHAPE), 255, np.uint8)
        with capture_logs() as lines:
            made.site().send(upload_of(made.digest, bright, labels))
            made.wait_until_counted(len(labels))
        assert not moods.read_text()
        assert "worker died" not in [line["event"] for line in lines]


@pytest.mark.long
def test_an_upload_that_there_is_no_memory_for_holds_up_no_other_campaign(
    tmp_path: Path, moods: Path, generator: np.random.Generator
) -> None:
    settings = migrated(tmp_path)
    document = moody(settings, tmp_path)
    moods.write_text("hunger " * 4)
    with (
        in_thread(settings) as aggregator,
        scene(aggregator, document) as made,
        scene(aggregator) as other,
    ):
        bad, good = upload_of(made.digest, BRIGHT), upload_of(made.digest, features_of(generator))
        site = made.site()
        site.send(bad)
        site.send(good)
        other.site().send(Reported.random(generator, 7).upload(other.digest))
        other.wait_until_counted(7)
        assert made.wait_until_counted(6).records.dropped == 6
        assert "3 times" in (site.send(bad).reason or "")
        assert site.send(good).state == "counted"


@pytest.mark.long
def test_no_upload_is_dropped_for_a_model_that_ends_its_process_whatever_it_is_given(
    tmp_path: Path, moods: Path, monkeypatch: pytest.MonkeyPatch, generator: np.random.Generator
) -> None:
    monkeypatch.setattr(counting, "_AFTER_DEADLY_MODEL", 1.0)
    settings = migrated(tmp_path)
    document = moody(settings, tmp_path)
    moods.write_text(ALWAYS)
    with (
        in_thread(settings) as aggregator,
        scene(aggregator, document) as made,
        scene(aggregator) as other,
    ):
        made.site().send(upload_of(made.digest, features_of(generator)))
        until(lambda: made.owner.get("/readyz").status_code == 503)
        assert "before it has an upload" in problem(made.owner.get("/readyz")).detail
        other.site().send(Reported.random(generator, 7).upload(other.digest))
        other.wait_until_counted(7)
        assert attempts(settings) == [0]
        moods.write_text("")
        assert made.wait_until_counted(6).records.dropped == 0


def workers(parent: int) -> list[int]:
    """The worker processes of a server."""
    found = [
        int(child)
        for task in Path(f"/proc/{parent}/task").iterdir()
        for child in (task / "children").read_text().split()
    ]
    return [
        child for child in found if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()
    ]
