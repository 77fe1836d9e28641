"""Records of score campaigns: which of them take part, and what scores them at their site."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

from tacit.protocol import (
    Model,
    sha256_hex,
)
from tacit.scores import RandomizedAPS
from tacit_client import Membership
from tacit_client.api import Api
from tacit_client.errors import (
    EnrolmentClosed,
    LedgerError,
    RecordsAbsent,
)
from tacit_client.ledger.dealt import places_of
from tacit_client.ledger.records import RECORD, keyed_hashes
from tests.integration.client.score_scenes import (
    HALF,
    HASTY,
    HELD_BACK,
    Stage,
    contributed,
    is_asked,
    staged,
)
from tests.support import hostile_models
from tests.support.aggregator import until
from tests.support.cli import tacit
from tests.support.client_world import given
from tests.support.registering import registered
from tests.support.score_world import names, scores
from tests.support.tiny_models import SHAPE, save_onnx


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with staged(tmp_path_factory.mktemp("aggregator")) as made:
        yield made


@pytest.fixture(scope="module")
def model_file(stage: Stage, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that sites can fetch."""
    file = save_onnx(tmp_path_factory.mktemp("model") / "scores.onnx", dtype=TensorProto.UINT8)
    registered(stage.aggregator.settings, file, dtype="uint8", shape=SHAPE)
    return file


@pytest.fixture
def model(model_file: Path) -> Model:
    digest = sha256_hex(model_file.read_bytes())
    return Model(digest=digest, dtype="uint8", shape=SHAPE, outputs="logits")


def test_records_join_until_the_first_question_and_not_after_it(
    stage: Stage, tmp_path: Path
) -> None:
    campaign = stage.create(planned_n=HELD_BACK)
    north, south = stage.two(campaign, tmp_path)
    with north, south:
        assert contributed(north, "n", wait=False).unasked == HALF
        more = north.contribute(ids=names(40, "m"), scores=scores(40), wait=False)
        assert (more.unasked, more.absent) == (40, HALF)
        assert contributed(south, "s", 20, wait=False).unasked == 20
        stage.ask_first(campaign)
        with pytest.raises(EnrolmentClosed, match="10 of these records were not enrolled"):
            contributed(south, "s", 30, wait=False)
        with (
            stage.join(campaign, tmp_path / "third", "third") as third,
            pytest.raises(EnrolmentClosed),
        ):
            contributed(third, "t")
        together: dict[str, Any] = {
            "ids": names(HALF, "n") + names(40, "m"),
            "scores": scores(HALF + 40),
        }
        answered = north.contribute(**together, wait=False)
        assert (answered.drawn, answered.absent) == ((HALF + 40) // 4, 0)
        assert south.ledger.read("SELECT count(*) FROM dealt") == [(20,)]


def test_records_whose_dealing_the_witness_does_not_know_of_are_not_enrolled(
    stage: Stage, tmp_path: Path
) -> None:
    campaign = stage.create()
    with stage.join(campaign, tmp_path / "home") as site:
        witness = site.ledger.home.witness
        in_the_way = witness.with_name(witness.name + ".new")
        in_the_way.mkdir()
        for dealt_before in (0, HALF):
            assert site.ledger.read("SELECT count(*) FROM dealt") == [(dealt_before,)]
            with pytest.raises(LedgerError, match="witness cannot be written"):
                contributed(site, wait=False)
            assert stage.owner.status(campaign.digest).enrolled == 0
        in_the_way.rmdir()
        contributed(site, wait=False)
        assert stage.owner.status(campaign.digest).enrolled == HALF
        assert json.loads(witness.read_bytes())["sequence"] == site.ledger.meta.sequence


def test_a_second_file_does_not_throw_away_the_first(stage: Stage, tmp_path: Path) -> None:
    campaign = stage.create()
    with stage.join(campaign, tmp_path / "home") as site:
        assert contributed(site, "a", wait=False).unasked == HALF
        with pytest.raises(RecordsAbsent, match=f"{HALF} enrolled records .* --no-wait"):
            contributed(site, "b")
        assert site.ledger.read("SELECT count(*) FROM dealt") == [(HALF,)]
        assert stage.owner.status(campaign.digest).enrolled == HALF
        added = contributed(site, "b", wait=False)
        assert (added.unasked, added.absent, added.drawn) == (HALF, HALF, 0)
        until(lambda: is_asked(site, 0))
        for prefix in ("a", "b"):
            for wait in (True, False):
                with pytest.raises(RecordsAbsent) as caught:
                    contributed(site, prefix, wait=wait)
                assert caught.value.records == HALF
        assert site.ledger.read("SELECT * FROM questions") == []
        assert site.outbox.entries() == []
        together = names(HALF, "a") + names(HALF, "b")
        done = site.contribute(ids=together, scores=scores(2 * HALF))
        assert (done.drawn, done.accepted, done.absent) == (2 * HALF, 2 * HALF, 0)
    assert stage.owner.status(campaign.digest).records.counted == 2 * HALF


def test_records_that_never_answer_are_left_behind_where_that_is_said(
    stage: Stage, tmp_path: Path
) -> None:
    campaign = stage.create()
    with stage.join(campaign, tmp_path / "home") as site:
        contributed(site, "a", wait=False)
        done = site.contribute(ids=names(HALF, "b"), scores=scores(HALF), absent_ok=True)
        assert (done.drawn, done.accepted, done.absent) == (HALF, HALF, HALF)
        assert site.membership is Membership.ENDED
    assert stage.owner.status(campaign.digest).records.counted == HALF


def test_records_whose_round_has_passed_need_not_be_given(stage: Stage, tmp_path: Path) -> None:
    campaign = stage.create(rounds=2)
    other = stage.invitation(campaign, "other")
    with (
        stage.join(campaign, tmp_path / "home") as site,
        Api(other.url, other.token, HASTY) as elsewhere,
    ):
        contributed(site, wait=False)
        elsewhere.enrol(campaign.digest, HALF)
        until(lambda: is_asked(site, 0))
        ids = names(HALF, "n")
        places, _ = places_of(site.ledger, 1, keyed_hashes(site.ledger.meta.secret, RECORD, ids))
        first, second = ([ids[row] for row in np.flatnonzero(places == each)] for each in (0, 1))
        given_first: dict[str, Any] = {"ids": first, "scores": scores(HALF // 2), "wait": False}
        with pytest.raises(RecordsAbsent) as caught:
            site.contribute(**given_first)
        assert caught.value.records == HALF // 2
        assert site.contribute(**given_first, absent_ok=True).drawn == HALF // 2
        elsewhere.done(campaign.digest, 0, 0)
        until(lambda: is_asked(site, 1))
        done = site.contribute(ids=second, scores=scores(HALF // 2), wait=False)
        assert (done.drawn, done.absent) == (HALF // 2, 0)


def test_a_site_is_enrolled_before_its_model_sees_a_record(
    stage: Stage, model: Model, tmp_path: Path
) -> None:
    campaign = stage.create(model=model, planned_n=200)
    features = np.zeros((20, *SHAPE), dtype=np.uint8)
    enrolled: list[int] = []

    def on_progress(_done: int, _total: int, what: str) -> None:
        if what == "records scored":
            enrolled.append(stage.owner.status(campaign.digest).enrolled)

    with stage.join(campaign, tmp_path / "home") as site:
        site.contribute([0] * 20, range(20), features=features, wait=False, on_progress=on_progress)
    assert enrolled == [20]


def test_probabilities_are_scored_at_the_site_and_never_leave_it(
    stage: Stage, tmp_path: Path
) -> None:
    campaign = stage.create(score=RandomizedAPS(), epsilon=4.0, planned_n=400)
    records = given(400)
    with stage.join(campaign, tmp_path / "home") as site:
        assert site.contribute(**records.arguments()).accepted == 400
    found = stage.owner.threshold(campaign.digest).calibration
    uniform = np.random.default_rng(0).random(400)
    expected = RandomizedAPS().of_labels(records.probabilities, records.labels, uniform)
    assert found.threshold == pytest.approx(np.quantile(expected, 0.9), abs=0.15)


def test_features_are_scored_at_the_site_by_the_model_it_fetches(
    stage: Stage, model: Model, model_file: Path, tmp_path: Path
) -> None:
    campaign = stage.create(model=model, planned_n=200)
    generator = np.random.default_rng(5)
    features = generator.integers(0, 256, (200, *SHAPE), dtype=np.uint8)
    labels = generator.integers(0, 3, 200)
    told: list[str] = []
    with stage.join(campaign, tmp_path / "home") as site:
        done = site.contribute(
            *(labels, range(200)), features=features, on_progress=lambda *what: told.append(what[2])
        )
        assert (done.accepted, done.failed) == (200, 0)
        assert "records scored" in told
        assert site.ledger.home.model(model.digest).read_bytes() == model_file.read_bytes()
    assert stage.owner.threshold(campaign.digest).calibration.n == 200


def test_how_many_records_a_model_failed_on_is_said_at_the_site(
    stage: Stage, tmp_path: Path
) -> None:
    file = tmp_path / "failing.onnx"
    file.write_bytes(hostile_models.failing())
    registered(stage.aggregator.settings, file, dtype="float32", shape=hostile_models.SHAPE)
    digest = sha256_hex(file.read_bytes())
    model = Model(digest=digest, dtype="float32", shape=hostile_models.SHAPE, outputs="logits")
    campaign = stage.create(model=model, classes=["c0", "c1"], planned_n=60)
    features = hostile_models.records(60)
    features[:7, 1] = 5
    home = tmp_path / "home"
    stage.join(campaign, home).close()
    given = tmp_path / "features.npz"
    np.savez(given, ids=np.arange(60), labels=np.zeros(60, dtype=int), features=features)
    ended = tacit("contribute", given, home=home)
    assert ended.code == 0, ended.err
    assert "The model failed on 7 records: the largest score stands for each." in ended.out
