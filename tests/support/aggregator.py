"""A real aggregator for tests: in a thread or as a process, on a free port of the loopback."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import httpx
import uvicorn

from tacit.protocol import Invitation, Role
from tacit.protocol.versions import HEADER, PROTOCOL
from tacit_aggregator.database.engine import Database
from tacit_aggregator.database.migrate import upgrade
from tacit_aggregator.http.app import create_app
from tacit_aggregator.http.connections import Connection
from tacit_aggregator.keys.secret import ensure_secret
from tacit_aggregator.keys.service import ensure_key, fingerprints, read_secret
from tacit_aggregator.settings import Settings
from tacit_aggregator.tokens.service import mint

PATIENCE = 60.0
"""Seconds after which a test gives up; a busy machine must not make one fail."""


def until(condition: Callable[[], Any], seconds: float = PATIENCE) -> Any:
    """The first true value of the condition, asked again and again."""
    give_up = time.monotonic() + seconds
    pause = 0.01
    while not (found := condition()):
        if time.monotonic() > give_up:
            raise TimeoutError("The condition did not come true.")
        time.sleep(pause)
        pause = min(2 * pause, 0.1)  # whoever asks a server must not keep it from its work
    return found


def migrated(folder: Path, **settings: Any) -> Settings:
    """Settings of a server with a database that is migrated and has a signing key.

    The database is in this folder, or where `database_url` says; the secret is in the folder.
    """
    own = {"database_url": f"sqlite:///{folder / 'aggregator.db'}"}
    made = Settings(
        **{
            **own,
            "key_secret_file": folder / "aggregator.secret",
            "host": "127.0.0.1",
            "port": 0,
            **settings,
        }
    )
    upgrade(made.database_url)
    ensure_secret(made)
    with _opened(made) as database, database.transaction("test key") as connection:
        ensure_key(connection, read_secret(made), time.time())
    return made


@dataclass
class Aggregator:
    """A server that answers at `url`, with what its operator can do."""

    settings: Settings
    url: str = ""

    @property
    def database_file(self) -> Path:
        """Where its SQLite file is; not on PostgreSQL."""
        assert self.settings.database_url.startswith("sqlite:///")
        return Path(self.settings.database_url.removeprefix("sqlite:///"))

    @property
    def key(self) -> str:
        """The fingerprint of the key that it signs with."""
        with _opened(self.settings) as database, database.read() as connection:
            return fingerprints(connection)[0]

    def token(
        self, role: Role, name: str, campaign: str | None = None, expires_at: float | None = None
    ) -> str:
        """A new token, as the operator mints one."""
        with _opened(self.settings) as database, database.transaction("test token") as connection:
            return mint(
                connection,
                role,
                name,
                campaign=campaign,
                expires_at=expires_at,
                now=time.time(),
            )

    def invitation(self, campaign: str, site: str) -> Invitation:
        """An invitation for a site, with a new token."""
        return Invitation(
            url=self.url,
            key=self.key,
            campaign=campaign,
            site=site,
            token=self.token(Role.CONTRIBUTOR, site, campaign),
        )

    def client(self, token: str | None = None) -> httpx.Client:
        """An HTTP client that speaks as whoever has this token."""
        headers = {HEADER: PROTOCOL}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        return httpx.Client(
            base_url=self.url,
            headers=headers,
            timeout=PATIENCE,
            trust_env=False,
            verify=False,  # noqa: S501 -- no TLS, and reading certificates takes long
        )


@contextmanager
def in_thread(
    settings: Settings, clock: Callable[[], float] = time.time, grace: int = 5
) -> Iterator[Aggregator]:
    """An aggregator in a thread of this process, so that a test can hold its clock.

    When it stops it waits `grace` seconds for requests.
    """
    with _opened(settings) as database, socket.create_server(("127.0.0.1", 0)) as listener:
        app = create_app(settings, database, clock)
        config = uvicorn.Config(
            app,
            http=Connection,
            lifespan="on",
            log_config=None,
            access_log=False,
            timeout_graceful_shutdown=grace,
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        until(lambda: server.started or not thread.is_alive())
        assert thread.is_alive(), "the aggregator did not start"
        try:
            yield Aggregator(settings, f"http://127.0.0.1:{listener.getsockname()[1]}")
        finally:
            server.should_exit = True
            thread.join(PATIENCE)


@dataclass
class AggregatorProcess(Aggregator):
    """An aggregator as its own process, which can be killed and started again on its database.

    It keeps the port that it got first, so that clients find it again.
    """

    environment: dict[str, str] = field(default_factory=dict)
    command: tuple[str, ...] = ("-m", "tacit_aggregator", "serve")
    port: int = 0
    process: "subprocess.Popen[str] | None" = None
    lines: list[dict[str, Any]] = field(default_factory=list)
    """Its log."""

    def start(self) -> None:
        """Start it, and wait until it listens."""
        self.process = subprocess.Popen(
            [sys.executable, *self.command],
            env={**os.environ, **self._variables(), **self.environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert self.process.stdout is not None
        heard = len(self.lines)
        threading.Thread(
            target=_collect, args=(self.process.stdout, self.lines), daemon=True
        ).start()
        process = self.process
        event = until(
            lambda: _listening(self.lines[heard:]) or (process.poll() is not None and {"port": 0})
        )
        assert event["port"], f"the aggregator did not start: {self.lines[heard:]}"
        self.port = event["port"]
        self.url = f"http://127.0.0.1:{self.port}"

    def kill(self) -> None:
        """End it at once, as a power failure would."""
        self._signal(signal.SIGKILL)

    def stop(self) -> int:
        """Ask it to stop, and wait until it has: its exit code."""
        return self._signal(signal.SIGTERM)

    def _signal(self, number: int) -> int:
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(PATIENCE)

    def _variables(self) -> dict[str, str]:
        given = self.settings.model_dump(exclude_none=True, mode="json")
        variables = {f"TACIT_{name.upper()}": str(value) for name, value in given.items()}
        return {**variables, "TACIT_PORT": str(self.port), "PYTHONUNBUFFERED": "1"}


@contextmanager
def as_process(settings: Settings, **environment: str) -> Iterator[AggregatorProcess]:
    """An aggregator as its own process, running; it is gone afterwards."""
    aggregator = AggregatorProcess(settings, environment=environment)
    aggregator.start()
    try:
        yield aggregator
    finally:
        aggregator.kill()


@contextmanager
def _opened(settings: Settings) -> Iterator[Database]:
    database = Database(settings.database_url)
    try:
        yield database
    finally:
        database.close()


def _collect(stream: IO[str], lines: list[dict[str, Any]]) -> None:
    for line in stream:
        try:
            event = json.loads(line)
        except ValueError:
            event = {"text": line.rstrip()}
        lines.append(event if isinstance(event, dict) else {"text": line.rstrip()})


def _listening(lines: list[dict[str, Any]]) -> dict[str, Any] | None:
    return next((line for line in lines if line.get("event") == "listening"), None)
