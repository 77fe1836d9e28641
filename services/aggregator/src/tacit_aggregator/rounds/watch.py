"""Waiting for the next question: any number of requests, no thread and no connection for any."""

import asyncio
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import contextmanager

from starlette.concurrency import run_in_threadpool

from tacit_aggregator.metrics import Metrics
from tacit_aggregator.rounds.standing import Snapshot

Read = Callable[[Collection[str]], Mapping[str, Snapshot]]
"""Reads from the database what campaigns ask now, all of them at once."""
Gone = Callable[[], Awaitable[None]]
"""Returns when whoever asked has hung up."""


class _Waiting:
    """One request that waits for a round after `after`."""

    def __init__(self, after: int) -> None:
        self.after = after
        self.told: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def tell(self) -> None:
        if not self.told.done():
            self.told.set_result(None)


class Watch:
    """Requests that wait, by campaign; all but `watched` and `publish` run in the event loop.

    Whoever looks first reads for all who look at the same time. From then on the thread that moves
    the rounds reads once for everybody, and publishes.
    """

    def __init__(self, read: Read, metrics: Metrics) -> None:
        self._read = read
        self._metrics = metrics
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: dict[str, set[_Waiting]] = {}
        self._newest: dict[str, Snapshot] = {}
        self._asked: dict[str, asyncio.Future[Snapshot | None]] = {}
        self._reading: asyncio.Task[None] | None = None
        self._counted = threading.Lock()
        self._watched: Counter[str] = Counter()
        self._stopping = False

    async def current(
        self, campaign: str, after: int, seconds: float, gone: Gone
    ) -> Snapshot | None:
        """What the campaign asks, once that is news to whoever knows `after`, or after a while.

        Also as soon as nobody is there to hear it. None if there is no such search.
        """
        with self._place(campaign, after) as place:
            found = await self._look(campaign)
            if found is None or found.is_news(after) or self._stopping or not seconds:
                return found
            await _first_of(place.told, gone, seconds)
            newest = self._newest.get(campaign, found)
            return max(found, newest, key=lambda snapshot: snapshot.read_at)

    def watched(self) -> tuple[str, ...]:
        """The campaigns that somebody waits for."""
        with self._counted:
            return tuple(self._watched)

    def publish(self, snapshots: Mapping[str, Snapshot]) -> None:
        """Tell all who wait what was read for them; from any thread, in one wake-up of the loop."""
        if self._loop is not None and snapshots:
            self._loop.call_soon_threadsafe(self._tell, snapshots)

    def stop(self) -> None:
        """Have everybody answered now, with the state as it is; from now on nobody waits."""
        self._stopping = True
        for places in self._waiting.values():
            for place in places:
                place.tell()

    @contextmanager
    def _place(self, campaign: str, after: int) -> Iterator[_Waiting]:
        self._loop = asyncio.get_running_loop()
        place = _Waiting(after)
        self._waiting.setdefault(campaign, set()).add(place)
        self._metrics.polls_waiting.inc()
        with self._counted:
            self._watched[campaign] += 1
        try:
            yield place
        finally:
            self._metrics.polls_waiting.dec()
            self._leave(campaign, place)

    def _leave(self, campaign: str, place: _Waiting) -> None:
        self._waiting[campaign].discard(place)
        if not self._waiting[campaign]:
            del self._waiting[campaign]
            self._newest.pop(campaign, None)
        with self._counted:
            self._watched[campaign] -= 1
            if not self._watched[campaign]:
                del self._watched[campaign]

    def _tell(self, snapshots: Mapping[str, Snapshot]) -> None:
        for campaign, snapshot in snapshots.items():
            places = self._waiting.get(campaign, ())
            if places:
                self._newest[campaign] = snapshot
            for place in places:
                if snapshot.is_news(place.after):
                    place.tell()

    async def _look(self, campaign: str) -> Snapshot | None:
        """Read it now. Shared only with whoever asks before the read begins: none sees the past."""
        if campaign not in self._asked:
            self._asked[campaign] = asyncio.get_running_loop().create_future()
        shared = self._asked[campaign]
        if self._reading is None:
            self._reading = asyncio.create_task(self._read_asked())
        return await asyncio.shield(shared)

    async def _read_asked(self) -> None:
        try:
            while self._asked:
                asked, self._asked = self._asked, {}
                await self._read_for(asked)
        finally:
            self._reading = None

    async def _read_for(self, asked: "dict[str, asyncio.Future[Snapshot | None]]") -> None:
        try:
            found = await run_in_threadpool(self._read, tuple(asked))
        except Exception as error:  # of the database: whoever asked hears of it
            for shared in asked.values():
                shared.set_exception(error)
                shared.exception()  # nobody may be left to hear it
            return
        for campaign, shared in asked.items():
            shared.set_result(found.get(campaign))


async def _first_of(told: "asyncio.Future[None]", gone: Gone, seconds: float) -> None:
    """Wait for news, for a hang-up or for the time, and leave nothing behind that waits."""
    hung_up = asyncio.ensure_future(gone())
    try:
        ways = (told, hung_up)
        await asyncio.wait(ways, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        hung_up.cancel()
