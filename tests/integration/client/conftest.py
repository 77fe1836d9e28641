"""One aggregator, started with the helper that users have for their own tests."""

from collections.abc import Iterator

import pytest

from tacit_client import Owner
from tacit_client.testing import RunningAggregator


@pytest.fixture(scope="session")
def aggregator() -> Iterator[RunningAggregator]:
    with RunningAggregator() as running:
        yield running


@pytest.fixture(scope="session")
def owner(aggregator: RunningAggregator) -> Iterator[Owner]:
    with aggregator.owner() as made:
        yield made
