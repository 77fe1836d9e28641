"""One aggregator for the tests of a file; each makes a campaign of its own."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from fastapi import FastAPI

from tacit_aggregator.database.engine import Database
from tacit_aggregator.http.app import create_app
from tests.support.aggregator import Aggregator, in_thread, migrated
from tests.support.label_campaigns import Scene, scene
from tests.support.postgres import BACKENDS, fresh_url
from tests.support.registering import registered
from tests.support.tiny_models import SHAPE, save_onnx


@pytest.fixture(scope="module", params=BACKENDS)
def aggregator(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Aggregator]:
    folder: Path = tmp_path_factory.mktemp("aggregator")
    url = fresh_url(request.param, folder)
    settings = migrated(folder, database_url=url, most_body_bytes=300_000, body_seconds=1.0)
    with in_thread(settings) as running:
        yield running


@pytest.fixture(scope="module", params=BACKENDS)
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Aggregator]:
    """The same on either kind of database."""
    folder: Path = tmp_path_factory.mktemp("server")
    with in_thread(migrated(folder, database_url=fresh_url(request.param, folder))) as running:
        yield running


@pytest.fixture
def campaign(aggregator: Aggregator) -> Iterator[Scene]:
    with scene(aggregator) as made:
        yield made


@pytest.fixture(scope="module")
def model(aggregator: Aggregator, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The digest of an ONNX file that sites may fetch and run."""
    file = save_onnx(tmp_path_factory.mktemp("model") / "tiny.onnx")
    return registered(aggregator.settings, file, dtype="float32", shape=SHAPE).digest


@pytest.fixture
def generator() -> np.random.Generator:
    return np.random.default_rng(7)


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FastAPI]:
    settings = migrated(tmp_path_factory.mktemp("openapi"))
    database = Database(settings.database_url)
    yield create_app(settings, database)
    database.close()
