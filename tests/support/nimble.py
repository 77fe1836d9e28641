"""The aggregator of users' tests, for ours: its operator's commands need no process each."""

import json
from typing import Any

from typer.testing import CliRunner

from tacit_aggregator.cli import app
from tacit_client.testing import RunningAggregator


class NimbleAggregator(RunningAggregator):
    """Its server is a process as ever; its commands run in this one, many times faster."""

    def command(self, *arguments: str) -> dict[str, Any]:
        """Run one of its commands with --json, and read what it prints."""
        result = CliRunner().invoke(app, [*arguments, "--json"], env=self._variables())
        assert result.exit_code == 0, result.output
        fields: dict[str, Any] = json.loads(result.stdout)
        return fields
