"""The servers of the ingest benchmark, as processes, and what they cost the processor."""

import ctypes
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from benchmarks.load import Counted, Load, request
from tacit.protocol import Role
from tacit.protocol.versions import HEADER, PROTOCOL
from tacit_aggregator.database.engine import Database
from tacit_aggregator.tokens.service import mint
from tacit_client.api import Api
from tacit_client.testing import RunningAggregator

BARE_PROGRAM = Path(__file__).resolve().parent / "peers" / "bare_endpoint.py"


@dataclass(frozen=True)
class Body:
    """An upload, drawn and written out, as a site's outbox holds it."""

    upload: str
    content: bytes


class Server(Protocol):
    """A server that takes uploads."""

    @property
    def pid(self) -> int:
        """Its process."""

    def load(self, bodies: Sequence[Body], connections: int) -> Load:
        """These uploads for this server, and how to see that it is done with them."""


@dataclass(frozen=True)
class Bare:
    """The bare endpoint: done when the last upload is answered, for it counts nothing."""

    pid: int
    port: int
    path: str = "/uploads"

    def load(self, bodies: Sequence[Body], connections: int) -> Load:
        """These uploads, to the one address that it has for their kind."""
        requests = [request("PUT", self.path, {}, body.content) for body in bodies]
        return Load(self.port, connections, requests)


@dataclass(frozen=True)
class Tacit:
    """The aggregator, as one site sees it: done when its campaign has counted so many records.

    Of answers it is None: their bits are counted before they are answered.
    """

    pid: int
    port: int
    campaign: str
    token: str
    counted: int | None

    def load(self, bodies: Sequence[Body], connections: int) -> Load:
        """These uploads, each to its address, with the site's token."""
        campaign = f"/v1/campaigns/{self.campaign}"
        headers = {"Authorization": f"Bearer {self.token}", HEADER: PROTOCOL}
        requests = [
            request("PUT", f"{campaign}/uploads/{body.upload}", headers, body.content)
            for body in bodies
        ]
        if self.counted is None:
            return Load(self.port, connections, requests)
        question = request("GET", f"{campaign}/status", headers)
        return Load(self.port, connections, requests, Counted(question, self.counted))


def enrolled(
    aggregator: RunningAggregator,
    database_url: str,
    campaign: str,
    site: str,
    *,
    records: int,
    counted: int | None,
) -> Tacit:
    """The aggregator for a new site of so many records."""
    database = Database(database_url)
    try:
        with database.transaction("benchmark token") as connection:
            who = (connection, Role.CONTRIBUTOR, site)
            token = mint(*who, campaign=campaign, expires_at=None, now=time.time())
    finally:
        database.close()
    with Api(aggregator.url, token) as api:
        api.enrol(campaign, records)
    port = int(aggregator.url.rpartition(":")[2])
    return Tacit(aggregator.pid or 0, port, campaign, token, counted)


@contextmanager
def running_bare(database: str) -> Iterator[Bare]:
    """The bare endpoint as a process, until the block ends; on a SQLite file or a URL."""
    command = [sys.executable, str(BARE_PROGRAM), database]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None  # noqa: S101  (a pipe was asked for)
        try:
            yield Bare(process.pid, int(process.stdout.readline()))
        finally:
            process.terminate()


def processor_seconds(pid: int) -> float | None:
    """What a process and its children have cost so far; None where the system does not tell."""
    if sys.platform != "linux":
        return None
    files = Path(f"/proc/{pid}/task").glob("*/children")
    children = [int(child) for file in files for child in file.read_text().split()]
    clock = ctypes.c_int()
    total = 0.0
    for one in (pid, *children):
        if ctypes.CDLL(None).clock_getcpuclockid(one, ctypes.byref(clock)) != 0:
            return None
        total += time.clock_gettime(clock.value)
    return total
