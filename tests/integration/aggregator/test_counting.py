"""Counting: scored by a model, erased, dropped, and going on after a crash."""

import os
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from tacit.protocol import Signed, Threshold
from tacit_aggregator.models.loading import load
from tests.support.aggregator import as_process, in_thread, migrated, until
from tests.support.label_campaigns import Reported, campaign_document, problem_name, scene
from tests.support.scored_campaigns import (
    LABELS,
    evidence_of,
    features_of,
    registered,
    save_weights,
    upload_of,
)
from tests.support.tiny_models import CLASSES, SHAPE, save_pt2


def test_features_are_scored_by_the_registered_model_as_the_library_would(
    tmp_path: Path, generator: np.random.Generator
) -> None:
    settings = migrated(tmp_path)
    model = registered(settings, save_pt2(tmp_path / "model.pt2"))
    document = campaign_document(k=CLASSES, evidence=evidence_of(model))
    with in_thread(settings) as aggregator, scene(aggregator, document) as made:
        site = made.site()
        sketch = made.document.empty_sketch()
        for _ in range(3):
            features = features_of(generator)
            sketch = sketch.add(load(model)(features), LABELS)
            site.send(upload_of(made.digest, features))
        made.wait_until_counted(18)
        signed = Signed.model_validate_json(made.threshold().content)
        found = signed.open(Threshold, key=aggregator.key).document.outcome()
        assert found == sketch.calibrate(document.channel, document.alpha)


def test_features_are_gone_from_the_files_once_they_are_counted(
    tmp_path: Path, generator: np.random.Generator
) -> None:
    settings = migrated(tmp_path)
    with in_thread(settings) as aggregator, scene(aggregator, campaign_document()) as made:
        site = made.site()
        sent = [Reported.random(generator, 400) for _ in range(5)]
        markers = [one.probabilities.tobytes()[200:232] for one in sent]
        for reported in sent:
            site.send(reported.upload(made.digest))
        made.wait_until_counted(2000)
        until(lambda: not _found(aggregator.database_file, markers))
        # It would be found: the same search sees what is still there.
        assert _found(aggregator.database_file, [made.digest.encode()])


def test_the_search_for_features_finds_them_while_they_wait(
    tmp_path: Path, generator: np.random.Generator
) -> None:
    settings = migrated(tmp_path)
    model = registered(settings, save_pt2(tmp_path / "model.pt2"))
    document = campaign_document(k=CLASSES, evidence=evidence_of(model))
    with in_thread(settings) as aggregator, scene(aggregator, document) as made:
        (tmp_path / "model.pt2").rename(tmp_path / "elsewhere.pt2")
        features = features_of(generator)
        made.site().send(upload_of(made.digest, features))
        markers = [features.tobytes()]
        assert _found(aggregator.database_file, markers)
        until(lambda: made.owner.get("/readyz").status_code == 503)
        assert made.status().records.pending == 6
        assert "waiting to be scored" in " ".join(made.status().waiting_for)
        assert problem_name(made.threshold()) == "not-ready"
        (tmp_path / "elsewhere.pt2").rename(tmp_path / "model.pt2")
        made.wait_until_counted(6)
        until(lambda: not _found(aggregator.database_file, markers))
        until(lambda: made.owner.get("/readyz").status_code == 200)


def test_an_upload_that_the_model_cannot_score_is_dropped_and_takes_no_other_with_it(
    tmp_path: Path, generator: np.random.Generator
) -> None:
    settings = migrated(tmp_path)
    file = save_weights(tmp_path / "model.safetensors")
    model = registered(settings, file, "tests.support.tiny_models:OverflowsOnBright")
    document = campaign_document(k=CLASSES, evidence=evidence_of(model))
    with in_thread(settings) as aggregator, scene(aggregator, document) as made:
        site = made.site()
        uploads = [upload_of(made.digest, features_of(generator)) for _ in range(4)]
        bad = upload_of(made.digest, np.full((6, *SHAPE), 255, np.uint8))
        uploads.insert(2, bad)
        for upload in uploads:
            site.send(upload)
        tally = made.wait_until_counted(24).records
        assert (tally.received, tally.counted, tally.dropped, tally.pending) == (30, 24, 6, 0)
        receipt = site.send(bad)
        assert receipt.state == "dropped"
        assert "not finite" in (receipt.reason or "")
        assert sum(site.send(upload).state == "counted" for upload in uploads) == 4


def test_an_upload_that_ends_its_worker_is_tried_three_times_and_dropped(
    tmp_path: Path, generator: np.random.Generator
) -> None:
    settings = migrated(tmp_path)
    file = save_weights(tmp_path / "model.safetensors")
    model = registered(settings, file, "tests.support.deadly_models:DiesOnBright")
    document = campaign_document(k=CLASSES, evidence=evidence_of(model))
    with in_thread(settings) as aggregator, scene(aggregator, document) as made:
        site = made.site()
        good = [upload_of(made.digest, features_of(generator)) for _ in range(3)]
        bad = upload_of(made.digest, np.full((6, *SHAPE), 255, np.uint8))
        for upload in (good[0], bad, *good[1:]):
            site.send(upload)
        tally = made.wait_until_counted(18).records
        assert (tally.counted, tally.dropped) == (18, 6)
        assert "3 times" in (site.send(bad).reason or "")
        assert made.owner.get("/readyz").status_code == 200


def test_what_was_acknowledged_before_a_kill_is_counted_once_afterwards(
    tmp_path: Path, generator: np.random.Generator
) -> None:
    settings = migrated(tmp_path)
    model = registered(settings, save_pt2(tmp_path / "model.pt2"))
    document = campaign_document(k=CLASSES, evidence=evidence_of(model))
    with as_process(settings) as aggregator, scene(aggregator, document) as made:
        site = made.site()
        (tmp_path / "model.pt2").rename(tmp_path / "elsewhere.pt2")
        uploads = [upload_of(made.digest, features_of(generator)) for _ in range(5)]
        for upload in uploads:
            site.send(upload)
        aggregator.kill()
        (tmp_path / "elsewhere.pt2").rename(tmp_path / "model.pt2")
        aggregator.start()
        assert made.wait_until_counted(30).records.received == 30
        assert {site.send(upload).state for upload in uploads} == {"counted"}
        assert made.status().records.counted == 30


def test_workers_end_with_a_server_that_is_killed(
    tmp_path: Path, generator: np.random.Generator
) -> None:
    if not Path("/proc").is_dir():
        pytest.skip("looks for processes in /proc")
    with as_process(migrated(tmp_path)) as aggregator, scene(aggregator) as made:
        assert aggregator.process is not None
        made.site().send(Reported.random(generator, 5).upload(made.digest))
        made.wait_until_counted(5)
        workers = _children(aggregator.process.pid)
        assert workers
        aggregator.kill()
        until(lambda: not any(_alive(worker) for worker in workers))


def test_a_server_that_is_asked_to_stop_stops_and_leaves_nothing_in_the_log(
    tmp_path: Path, generator: np.random.Generator
) -> None:
    with as_process(migrated(tmp_path)) as aggregator:
        with scene(aggregator, campaign_document()) as made:
            reported = Reported.random(generator, 100)
            made.site().send(reported.upload(made.digest))
            made.wait_until_counted(100)
        assert aggregator.stop() == 0
        assert not _found(aggregator.database_file, [reported.probabilities.tobytes()[:64]])
        secret = reported.probabilities.tobytes()[:8].hex()
        assert secret not in repr(aggregator.lines)


def test_received_is_always_pending_counted_and_dropped_together(
    tmp_path: Path, generator: np.random.Generator
) -> None:
    settings = migrated(tmp_path)
    with in_thread(settings) as aggregator, scene(aggregator, campaign_document()) as made:
        site = made.site()
        for _ in range(20):
            site.send(Reported.random(generator, 7).upload(made.digest))
            _check_balance(aggregator.database_file)
        made.wait_until_counted(140)
        _check_balance(aggregator.database_file)


def _check_balance(file: Path) -> None:
    connection = sqlite3.connect(file)
    try:
        connection.execute("BEGIN")
        ((received, counted, dropped),) = connection.execute(
            "SELECT sum(received), sum(counted), sum(dropped) FROM sites"
        ).fetchall()
        ((pending,),) = connection.execute("SELECT total(records) FROM pending").fetchall()
        ((of_campaigns,),) = connection.execute("SELECT sum(received) FROM campaigns").fetchall()
    finally:
        connection.close()
    assert received == of_campaigns == pending + counted + dropped


def _found(file: Path, markers: list[bytes]) -> bool:
    files = [file, file.with_name(file.name + "-wal")]
    contents = [one.read_bytes() for one in files if one.exists()]
    return any(marker in content for marker in markers for content in contents)


def _children(parent: int) -> list[int]:
    tasks = Path(f"/proc/{parent}/task")
    found = [
        int(child) for one in tasks.iterdir() for child in (one / "children").read_text().split()
    ]
    # Besides the workers there is multiprocessing's resource tracker, which ends by itself too.
    return found if len(found) >= 2 else []


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    return state != "Z"
