"""One aggregator, as a process that lives on, for the tests of a file that kill others."""

from collections.abc import Iterator

import pytest

from tacit_client import Owner
from tests.support.scene import Service, service


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with service(tmp_path_factory.mktemp("aggregator")) as made:
        made.start()
        yield made


@pytest.fixture(scope="module")
def owner(running: Service) -> Iterator[Owner]:
    with running.owner() as made:
        yield made
