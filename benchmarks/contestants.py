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
from tacit.protocol import Invitation
from tacit.protocol.versions import HEADER, PROTOCOL

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

    def load(self, bodies: Sequence[Body], records: int, connections: int) -> Load:
        """These uploads for this server; `records` is all that were sent, these included."""


@dataclass(frozen=True)
class Bare:
    """The bare endpoint."""

    pid: int
    port: int

    def load(self, bodies: Sequence[Body], records: int, connections: int) -> Load:  # noqa: ARG002
        """Done when the last upload is answered: it counts nothing."""
        requests = [request("PUT", "/uploads", {}, body.content) for body in bodies]
        return Load(self.port, connections, requests)


@dataclass(frozen=True)
class Tacit:
    """The aggregator, as a site with an invitation sees it."""

    pid: int
    invitation: Invitation

    def load(self, bodies: Sequence[Body], records: int, connections: int) -> Load:
        """Done when the site's status says that all it ever sent is counted."""
        campaign = f"/v1/campaigns/{self.invitation.campaign}"
        headers = {"Authorization": f"Bearer {self.invitation.token}", HEADER: PROTOCOL}
        requests = [
            request("PUT", f"{campaign}/uploads/{body.upload}", headers, body.content)
            for body in bodies
        ]
        question = request("GET", f"{campaign}/status", headers)
        port = int(self.invitation.url.rpartition(":")[2])
        return Load(port, connections, requests, Counted(question, records))


@contextmanager
def running_bare(database: Path) -> Iterator[Bare]:
    """The bare endpoint as a process, until the block ends."""
    command = [sys.executable, str(BARE_PROGRAM), str(database)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None  # noqa: S101  (a pipe was asked for)
        try:
            yield Bare(process.pid, int(process.stdout.readline()))
        finally:
            process.terminate()


def processor_seconds(pid: int) -> float | None:
    """What a process and its children have cost so far; None where the system does not tell."""
    children = Path(f"/proc/{pid}/task").glob("*/children")
    if sys.platform != "linux":
        return None
    clock = ctypes.c_int()
    total = 0.0
    for one in (pid, *(int(child) for file in children for child in file.read_text().split())):
        if ctypes.CDLL(None).clock_getcpuclockid(one, ctypes.byref(clock)) != 0:
            return None
        total += time.clock_gettime(clock.value)
    return total
