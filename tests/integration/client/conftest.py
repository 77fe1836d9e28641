"""One aggregator, started almost as users start one for their own tests."""

from collections.abc import Iterator

import pytest

from tacit_client import Owner
from tacit_client.testing import RunningAggregator
from tests.support.nimble import NimbleAggregator


@pytest.fixture(scope="session")
def aggregator() -> Iterator[RunningAggregator]:
    with NimbleAggregator() as running:
        yield running


@pytest.fixture(scope="session")
def owner(aggregator: RunningAggregator) -> Iterator[Owner]:
    with aggregator.owner() as made:
        yield made
