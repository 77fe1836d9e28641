"""Several aggregators as processes on one PostgreSQL, and sites that send to all of them."""

import re
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from tacit.conformal import CoverageSketch
from tacit.protocol import LabelCampaign, Role
from tests.support.aggregator import PATIENCE, AggregatorProcess, migrated, until
from tests.support.label_campaigns import JSON, Reported
from tests.support.postgres import query, server
from tests.support.scene import environment

MAY_BE_RETRIED = {503}
"""What a client is told to come again after: `unavailable`, `overloaded`."""

_ON_DUTY = """
    SELECT application_name FROM pg_locks JOIN pg_stat_activity USING (pid)
    WHERE locktype = 'advisory' AND granted AND objid = 3 AND pg_locks.database =
    (SELECT oid FROM pg_database WHERE datname = current_database())
"""


@contextmanager
def replicas(folder: Path, count: int, **settings: Any) -> Iterator[list[AggregatorProcess]]:
    """So many aggregators that run; they are gone afterwards."""
    shared = migrated(folder, database_url=server().fresh(), **settings)
    made = [AggregatorProcess(shared, environment=environment()) for _ in range(count)]
    with ExitStack() as stack:
        for one in made:
            one.start()
            stack.callback(one.kill)
        yield made


def on_duty(running: Sequence[AggregatorProcess]) -> AggregatorProcess:
    """The one that counts, once there is one."""

    def found() -> AggregatorProcess | None:
        for (name,) in query(running[0].settings.database_url, _ON_DUTY):
            number = int(re.sub(r".*:", "", name))
            for one in running:
                if one.process is not None and one.process.pid == number:
                    return one
        return None

    duty: AggregatorProcess = until(found)
    return duty


@dataclass
class Load:
    """Sites that send uploads to all replicas in turn, each until it is acknowledged."""

    running: Sequence[AggregatorProcess]
    campaign: LabelCampaign
    sites: int = 3
    records: int = 20
    sent: list[Reported] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    """Answers that a client may not meet with the same request."""
    _over: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def on(self) -> Iterator[None]:
        """While this lasts they send; afterwards all that was sent is acknowledged."""
        threads = [
            threading.Thread(target=self._send_all, args=(number,)) for number in range(self.sites)
        ]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._over.set()
            for thread in threads:
                thread.join(PATIENCE)
        assert not any(thread.is_alive() for thread in threads)
        assert self.wrong == []

    def wait_for(self, more: int) -> None:
        """Until so many more uploads are acknowledged."""
        before = len(self.sent)
        until(lambda: len(self.sent) >= before + more or self.wrong)

    def sketch(self) -> CoverageSketch:
        """What the library counts of everything that was sent."""
        total = self.campaign.empty_sketch()
        for one in self.sent:
            total = total.add(one.probabilities, one.labels)
        return total

    def _send_all(self, number: int) -> None:
        token = self.running[0].token(Role.CONTRIBUTOR, f"site {number}", self.campaign.digest)
        generator = np.random.default_rng(number)
        with ExitStack() as stack:
            clients = [stack.enter_context(one.client(token)) for one in self.running]
            address = f"/v1/campaigns/{self.campaign.digest}"
            self._put(clients, f"{address}/enrolment", b'{"records": 1000000}')
            while not self._over.is_set() and not self.wrong:
                reported = Reported.random(generator, self.records)
                upload = reported.upload(self.campaign.digest)
                if self._put(clients, f"{address}/uploads/{upload.upload}", upload.to_bytes()):
                    self.sent.append(reported)

    def _put(self, clients: list[httpx.Client], address: str, body: bytes) -> bool:
        give_up = time.monotonic() + PATIENCE
        while time.monotonic() < give_up:
            clients.append(clients.pop(0))
            try:
                answer = clients[0].put(address, content=body, headers=JSON)
            except httpx.TransportError:
                time.sleep(0.02)
                continue
            if answer.status_code == 200:
                return True
            if answer.status_code not in MAY_BE_RETRIED or "retry-after" not in answer.headers:
                self.wrong.append(f"{answer.status_code} {answer.text}")
                return False
        self.wrong.append("never acknowledged")
        return False
