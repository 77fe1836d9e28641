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


@pytest.fixture(scope="module")
def aggregator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Aggregator]:
    folder: Path = tmp_path_factory.mktemp("aggregator")
    settings = migrated(folder, most_body_bytes=300_000, body_seconds=1.0)
    with in_thread(settings) as running:
        yield running


@pytest.fixture
def campaign(aggregator: Aggregator) -> Iterator[Scene]:
    with scene(aggregator) as made:
        yield made


@pytest.fixture
def generator() -> np.random.Generator:
    return np.random.default_rng(7)


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FastAPI]:
    settings = migrated(tmp_path_factory.mktemp("openapi"))
    database = Database(settings.database_url)
    yield create_app(settings, database)
    database.close()
