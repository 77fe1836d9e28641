"""Where the client keeps its ledger and its policy."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import platformdirs

from tacit_client.errors import LedgerError
from tacit_client.policy import Policy

ENVIRONMENT = "TACIT_HOME"


@dataclass(frozen=True)
class Home:
    """A directory that only its owner may read, and a witness beside it.

    The witness is a small file outside the directory that says how far the ledger was. A ledger
    that is behind it was restored from a copy. So back up the directory without the witness, and
    move both when the site moves to another machine.
    """

    path: Path
    witness: Path

    def __init__(self, path: str | Path, witness: str | Path | None = None) -> None:
        place = Path(path).expanduser().absolute()
        beside = place.with_name(place.name + ".witness")
        object.__setattr__(self, "path", place)
        object.__setattr__(
            self, "witness", beside if witness is None else Path(witness).expanduser().absolute()
        )

    @classmethod
    def default(cls) -> Self:
        """The directory that TACIT_HOME names, or the platform's place for a user's data."""
        named = os.environ.get(ENVIRONMENT)
        return cls(named or platformdirs.user_data_dir("tacit", appauthor=False))

    @classmethod
    def of(cls, home: "Home | str | Path | None") -> "Home":
        """The home that was given, by itself or by its path; the default one if none was."""
        if isinstance(home, Home):
            return home
        return cls.default() if home is None else cls(home)

    @property
    def ledger(self) -> Path:
        """The ledger's SQLite file."""
        return self.path / "ledger.db"

    @property
    def lock(self) -> Path:
        """Held by the one process that uses the ledger."""
        return self.path / "ledger.lock"

    @property
    def policy_file(self) -> Path:
        """The site's policy."""
        return self.path / "policy.toml"

    def model(self, digest: str) -> Path:
        """Where a fetched model is kept."""
        return self.path / "models" / f"{digest}.onnx"

    def policy(self) -> Policy:
        """The policy in the file, or the default one if there is no file."""
        return Policy.load(self.policy_file) if self.policy_file.exists() else Policy()

    def save_policy(self, policy: Policy) -> None:
        """Write the policy's file."""
        self.create()
        # Half a policy would be another one: the file is the old one or this one, whole.
        temporary = self.policy_file.with_name(self.policy_file.name + ".new")
        temporary.write_text(policy.to_toml(), encoding="utf-8")
        temporary.replace(self.policy_file)

    def create(self) -> None:
        """Make the directory, readable by its owner alone; one that exists is left as it is."""
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise LedgerError(
                f"The client's directory cannot be made or used: {error.strerror}."
                f" Name another one with {ENVIRONMENT}."
            ) from error
