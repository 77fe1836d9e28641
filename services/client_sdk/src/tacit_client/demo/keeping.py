"""`--keep`: the service stays up, for people to try the commands on."""

import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from tacit_client.cli.output import short
from tacit_client.demo.labels import CRASHES
from tacit_client.demo.stage import Stage


@dataclass(frozen=True)
class Kept:
    """Where everything is while the service stays up; the owner's token is in a file."""

    url: str
    key: str
    labels: str
    """The label campaign's digest."""
    scores: str
    """The score campaign's digest."""
    token_file: Path
    home: Path
    """An empty home, so that trying things out leaves a person's own alone."""
    site_home: Path
    database: Path

    @classmethod
    def of(cls, stage: Stage, labels: str, scores: str) -> Self:
        """What a stage has to offer."""
        return cls(
            url=stage.aggregator.url,
            key=stage.aggregator.key,
            labels=labels,
            scores=scores,
            token_file=stage.token_file,
            home=stage.folder / "owner",
            site_home=stage.home_of(CRASHES),
            database=stage.aggregator.database,
        )

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "url": self.url,
            "key": self.key,
            "owner_token_file": str(self.token_file),
            "database": str(self.database),
        }

    def in_words(self) -> str:
        """How to use it, for people."""
        return f"""The service stays up at {self.url} until Ctrl-C; {self.url}/docs is its API.
The owner's token is in {self.token_file}. In another terminal:

  export TACIT_URL={self.url} TACIT_HOME={self.home}
  export TACIT_KEY={self.key}
  tacit campaign list --token-file {self.token_file}
  tacit campaign show {short(self.scores)} --token-file {self.token_file}
  tacit threshold get {short(self.labels)} --token-file {self.token_file}
  tacit ledger show --home {self.site_home}
  TACIT_DATABASE_URL=sqlite:///{self.database} tacit-aggregator token list
"""

    def wait(self) -> None:
        """Until Ctrl-C, which is how it is meant to end."""
        with suppress(KeyboardInterrupt):
            threading.Event().wait()
