"""`serve`: refuses what is unsafe, says where it listens, stops when told to."""

import json
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import httpx
import pytest

from tests.support.aggregator import migrated
from tests.unit.aggregator.test_commands import command


@dataclass(frozen=True)
class Running:
    """A server process and the events it has logged so far."""

    process: "subprocess.Popen[str]"
    events: list[dict[str, Any]]

    def port(self, event: str = "listening") -> int:
        (found,) = [one["port"] for one in self.events if one["event"] == event]
        return int(found)


def migrate(folder: Path) -> None:
    """What `migrate` does in this folder, without a process of its own."""
    name = folder / "tacit-aggregator"
    secret = name.with_suffix(".secret")
    migrated(folder, database_url=f"sqlite:///{name}.db", key_secret_file=secret)


@contextmanager
def served(folder: Path, **variables: str) -> Iterator[Running]:
    """A server on a migrated database, ended by its own process id."""
    migrate(folder)
    process = subprocess.Popen(
        [sys.executable, "-m", "tacit_aggregator", "serve"],
        stdout=subprocess.PIPE,
        text=True,
        cwd=folder,
        env={"TACIT_PORT": "0", "PATH": "", **variables},
    )
    events: list[dict[str, Any]] = []
    watchdog = threading.Timer(120, process.kill)  # a server that says nothing must not hang this
    watchdog.start()
    try:
        assert process.stdout is not None
        _read_until_listening(process.stdout, events)
        yield Running(process, events)
    finally:
        watchdog.cancel()
        process.kill()
        process.wait(30)
        if process.stdout is not None:
            process.stdout.close()


def _read_until_listening(lines: IO[str], events: list[dict[str, Any]]) -> None:
    for line in lines:
        events.append(json.loads(line))
        if events[-1]["event"] == "listening":
            return
    pytest.fail("the server ended before it listened")


def test_it_says_where_it_listens_and_ends_with_0_on_sigterm(tmp_path: Path) -> None:
    with served(tmp_path, TACIT_METRICS_PORT="0") as server:
        url = f"http://127.0.0.1:{server.port()}"
        assert httpx.get(f"{url}/healthz", timeout=30).json() == {"status": "ok"}
        metrics = httpx.get(
            f"http://127.0.0.1:{server.port('metrics listening')}/metrics", timeout=30
        )
        assert "tacit_requests" in metrics.text
        assert httpx.get(f"{url}/metrics", timeout=30).status_code == 404
        server.process.send_signal(signal.SIGTERM)
        rest, _ = server.process.communicate(timeout=60)
        assert server.process.returncode == 0
    assert json.loads(rest.splitlines()[-1])["event"] == "stopped"


def test_a_second_signal_quits_while_a_request_is_still_being_sent(tmp_path: Path) -> None:
    with served(tmp_path) as server, socket.create_connection(("127.0.0.1", server.port())) as line:
        token = command(tmp_path, "token", "create", "--role", "owner", "--name", "ada").stdout
        # A body that never ends keeps a graceful stop waiting; the server has asked for it.
        line.sendall(
            f"PUT /v1/campaigns/{'0' * 64} HTTP/1.1\r\nHost: x\r\nContent-Length: 999\r\n"
            "Content-Type: application/json\r\nExpect: 100-continue\r\n"
            f"Authorization: Bearer {token.strip()}\r\n\r\n".encode()
        )
        line.settimeout(30)
        assert line.recv(100).startswith(b"HTTP/1.1 100")
        server.process.send_signal(signal.SIGTERM)
        assert server.process.stdout is not None
        assert json.loads(server.process.stdout.readline())["event"] == "stopping"
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(8) == 128 + signal.SIGTERM


def test_a_second_server_on_the_same_file_refuses_to_start(tmp_path: Path) -> None:
    with served(tmp_path):
        second = command(tmp_path, "serve", TACIT_PORT="0")
        assert second.returncode == 1
        assert "Another server is running" in second.stderr
        # Other commands work beside it.
        created = command(tmp_path, "token", "create", "--role", "owner", "--name", "ada")
        assert created.returncode == 0


def test_the_file_can_be_served_again_after_the_server_was_killed(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        server.process.kill()
        server.process.wait(30)
    with served(tmp_path):
        pass


def test_a_port_that_is_taken_is_a_sentence(tmp_path: Path) -> None:
    migrate(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        refused = command(tmp_path, "serve", TACIT_PORT=str(taken.getsockname()[1]))
    assert refused.returncode == 1
    assert refused.stderr.startswith("Nothing can listen on 127.0.0.1 port")
    assert refused.stderr.count("\n") == 1


def test_a_database_that_is_not_migrated_is_refused(tmp_path: Path) -> None:
    refused = command(tmp_path, "serve", TACIT_PORT="0")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "run: tacit-aggregator migrate" in refused.stderr


def test_a_secret_that_is_not_the_one_of_the_keys_is_refused(tmp_path: Path) -> None:
    migrate(tmp_path)
    (tmp_path / "tacit-aggregator.secret").write_text("x" * 40)
    refused = command(tmp_path, "serve", TACIT_PORT="0")
    assert refused.returncode == 1
    assert "put back the secret" in refused.stderr


def test_safe_settings_are_served_in_production(tmp_path: Path) -> None:
    migrate(tmp_path)
    variables = {
        "TACIT_ENVIRONMENT": "production",
        "TACIT_PUBLIC_URL": "https://a.example",
        "TACIT_KEY_SECRET_FILE": "tacit-aggregator.secret",
    }
    with served(tmp_path, **variables) as server:
        answer = httpx.get(f"http://127.0.0.1:{server.port()}/readyz", timeout=30)
        assert answer.json() == {"status": "ok"}


@pytest.mark.parametrize(
    ("variables", "what"),
    [
        ({}, "TACIT_PUBLIC_URL"),
        ({"TACIT_PUBLIC_URL": "http://a.example"}, "TACIT_PUBLIC_URL"),
        ({"TACIT_PUBLIC_URL": "https://a.example"}, "TACIT_KEY_SECRET_FILE"),
        (
            {"TACIT_PUBLIC_URL": "https://a.example", "TACIT_LOG_FORMAT": "console"},
            "TACIT_LOG_FORMAT",
        ),
        (
            {"TACIT_PUBLIC_URL": "https://a.example", "TACIT_KEY_SECRET_FILE": "open-to-all"},
            "chmod 600",
        ),
    ],
)
def test_unsafe_settings_are_refused_in_production(
    tmp_path: Path, variables: dict[str, str], what: str
) -> None:
    migrate(tmp_path)
    (tmp_path / "open-to-all").write_text("s" * 40)
    (tmp_path / "open-to-all").chmod(0o644)
    refused = command(
        tmp_path, "serve", TACIT_ENVIRONMENT="production", TACIT_PORT="0", **variables
    )
    assert refused.returncode == 1
    assert what in refused.stderr
