"""For users' own tests: a real aggregator, as a process on this machine, until the block ends."""

import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, Self

from tacit.protocol import Invitation, Role
from tacit_client.errors import AggregatorFailed, AggregatorNotInstalled
from tacit_client.owner import Owner
from tacit_client.transport import Network

_POLL = 0.02


class RunningAggregator:
    """The installed `tacit-aggregator`, on a loopback port of its own, with a temporary database.

    ```
    with RunningAggregator() as aggregator:
        campaign = aggregator.owner().create(...)
        contributor = Contributor.join(aggregator.invitation(campaign.digest, "site"), home=...)
    ```

    `settings` are further variables of its environment, such as TACIT_MOST_BODY_BYTES. With
    `directory` the database and the log stay there.
    """

    def __init__(
        self,
        directory: str | Path | None = None,
        settings: Mapping[str, str] | None = None,
        *,
        patience: float = 60.0,
    ) -> None:
        if importlib.util.find_spec("tacit_aggregator") is None:
            raise AggregatorNotInstalled
        self._temporary = None if directory else tempfile.TemporaryDirectory(prefix="tacit-")
        self.directory = Path(directory or self._temporary.name)  # type: ignore[union-attr]  # one of both is
        self._settings = dict(settings or {})
        self._patience = patience
        self._port = 0
        self._process: subprocess.Popen[bytes] | None = None
        self.key = ""
        """The fingerprint of its signing key."""

    def __enter__(self) -> Self:
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            self.key = str(self.command("migrate")["key"])
            self.start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        if self._temporary is not None:
            self._temporary.cleanup()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def pid(self) -> int | None:
        """Its process, while it runs."""
        return None if self._process is None else self._process.pid

    @property
    def database(self) -> Path:
        """Its SQLite file."""
        return self.directory / "aggregator.db"

    @property
    def log(self) -> Path:
        """What it has written: one JSON object per line."""
        return self.directory / "aggregator.log"

    def start(self) -> None:
        """Start it, or start it again on the same port and database."""
        if self._process is not None:
            return
        with self.log.open("ab") as log:
            begin = log.tell()
            self._process = self._run("serve", stdout=log)
        self._port = self._listening_port(begin)

    def stop(self) -> None:
        """Ask it to stop, and wait until it has."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it at once, as a power failure would."""
        self._end(getattr(signal, "SIGKILL", signal.SIGTERM))

    def owner(self, name: str = "owner", *, network: Network | None = None) -> Owner:
        """A model owner of this name, with a token of its own."""
        return Owner(self.url, self.token(Role.OWNER, name), self.key, network=network)

    def token(self, role: Role, name: str) -> str:
        """A new token."""
        return str(self.command("token", "create", "--role", role, "--name", name)["token"])

    def invitation(self, campaign: str, site: str) -> Invitation:
        """An invitation of a site to a campaign."""
        options = ("--campaign", campaign, "--site", site, "--url", self.url)
        return Invitation.from_text(str(self.command("invite", *options)["invitation"]))

    def command(self, *arguments: str) -> dict[str, Any]:
        """Run one of its commands with --json, and read what it prints."""
        pipe = subprocess.PIPE
        with self._run(*arguments, "--json", stdout=pipe, stderr=pipe) as process:
            try:
                printed, said = process.communicate(timeout=self._patience)
            except subprocess.TimeoutExpired:
                process.kill()
                raise AggregatorFailed from None
        if process.returncode:
            raise AggregatorFailed(
                f"tacit-aggregator {arguments[0]} ended with {process.returncode} and said:"
                f" {said.decode(errors='replace').strip()}"
            )
        fields: dict[str, Any] = json.loads(printed)
        return fields

    def _run(
        self, *arguments: str, stdout: int | IO[bytes], stderr: int | None = None
    ) -> subprocess.Popen[bytes]:
        others = {k: v for k, v in os.environ.items() if not k.startswith("TACIT_")}
        return subprocess.Popen(  # noqa: S603 -- this Python, and the arguments above
            [sys.executable, "-m", "tacit_aggregator", *arguments],
            env=others | self._variables(),
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
        )

    def _variables(self) -> dict[str, str]:
        own = {
            "TACIT_DATABASE_URL": f"sqlite:///{self.database.as_posix()}",
            "TACIT_HOST": "127.0.0.1",
            "TACIT_PORT": str(self._port),
        }
        return own | self._settings

    def _listening_port(self, begin: int) -> int:
        ends = time.monotonic() + self._patience
        while time.monotonic() < ends:
            for line in self.log.read_bytes()[begin:].splitlines():
                port = _port_in(line)
                if port is not None:
                    return port
            if self._process is None or self._process.poll() is not None:
                break
            time.sleep(_POLL)
        self.stop()
        raise AggregatorFailed("The aggregator did not start; its words are on stderr.")

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(how)
        try:
            process.wait(self._patience)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _port_in(line: bytes) -> int | None:
    """The port in the line that says that it listens."""
    try:
        fields = json.loads(line)
    except ValueError:
        return None
    if not isinstance(fields, dict) or fields.get("event") != "listening":
        return None
    return int(fields["port"])
