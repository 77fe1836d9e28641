"""The helper for users' own tests."""

from pathlib import Path

import pytest

from tacit_client.errors import AggregatorFailed
from tacit_client.testing import RunningAggregator


def test_an_aggregator_that_cannot_start_is_said_not_to(tmp_path: Path) -> None:
    settings = {"TACIT_LOG_LEVEL": "nonsense"}
    with pytest.raises(AggregatorFailed, match="migrate"), RunningAggregator(tmp_path, settings):
        pass


def test_settings_of_the_tester_do_not_reach_the_aggregator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TACIT_LOG_LEVEL", "nonsense")
    with RunningAggregator(tmp_path) as aggregator, aggregator.owner() as owner:
        assert owner.server().keys == (aggregator.key,)
    assert aggregator.database.exists()
    assert aggregator.pid is None
