"""A TCP relay on the loopback: an address that stays while servers come and go, and a bad network.

Clients know the relay's port, so that a server that was killed can come back on any other one.
"""

import contextlib
import itertools
import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import Literal, Self

_MOST_BYTES = 2**16
_PATIENCE = 60.0

Direction = Literal["request", "answer"]


@dataclass
class Faults:
    """Cut connections, seeded and no more often than `most` times.

    A request that is cut is not delivered, or only its beginning is. An answer that is cut was
    given: the server has done what it was asked, and the client cannot know.
    """

    seed: int
    request: float
    """The probability that a piece of a request is cut."""
    answer: float
    most: int
    happened: "Counter[str]" = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)  # noqa: S311 -- a simulation's, not privacy's

    def cut(self, direction: Direction) -> bool:
        """Whether this piece is lost, with its connection."""
        with self._lock:
            likely = self.request if direction == "request" else self.answer
            lost = self._random.random() < likely and self.happened.total() < self.most
            self.happened[direction] += lost
            return lost


class Relay:
    """Carries bytes between clients and whoever listens on `targets`, each connection to another.

    Every piece of a request takes `delay` seconds. After `silence` seconds without an answer it
    hangs up, as proxies do.
    """

    def __init__(
        self, faults: Faults | None = None, *, delay: float = 0.0, silence: float = _PATIENCE
    ) -> None:
        self.targets: tuple[int, ...] = ()
        self.faults = faults
        self.delay = delay
        self.unanswered = 0
        """How often it hung up on somebody who waited for an answer."""
        self._silence = silence
        self._turn = itertools.count()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self._closed = False

    @property
    def target(self) -> int | None:
        """The only one that connections lead to; None: nobody listens."""
        return self.targets[0] if self.targets else None

    @target.setter
    def target(self, port: int | None) -> None:
        self.targets = () if port is None else (port,)

    @property
    def url(self) -> str:
        """Where clients find it."""
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._closed = True
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        self._listener.close()

    def _accept(self) -> None:
        while not self._closed:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _carry(self, client: socket.socket) -> None:
        server = self._connected()
        if server is None:
            client.close()
            return
        client.settimeout(_PATIENCE)
        server.settimeout(self._silence)
        asked = threading.Event()
        back = threading.Thread(target=self._answers, args=(server, client, asked), daemon=True)
        back.start()
        self._requests(client, server, asked)
        back.join()
        client.close()
        server.close()

    def _connected(self) -> socket.socket | None:
        """A connection to the next target, or to one after it if that does not listen."""
        targets, turn = self.targets, next(self._turn)
        for number in range(len(targets)):
            port = targets[(turn + number) % len(targets)]
            try:
                server = socket.create_connection(("127.0.0.1", port), timeout=_PATIENCE)
            except OSError:
                continue
            if server.getsockname() != server.getpeername():
                return server
            server.close()  # nobody listens there, and the system connected the port with itself
        return None

    def _requests(
        self, client: socket.socket, server: socket.socket, asked: threading.Event
    ) -> None:
        with _hanging_up(client, server):
            while piece := client.recv(_MOST_BYTES):
                if self.faults is not None and self.faults.cut("request"):
                    break
                if self.delay:
                    time.sleep(self.delay)
                asked.set()
                server.sendall(piece)

    def _answers(
        self, server: socket.socket, client: socket.socket, asked: threading.Event
    ) -> None:
        with _hanging_up(server, client):
            while piece := self._answer(server, asked):
                asked.clear()
                if self.faults is not None and self.faults.cut("answer"):
                    break
                client.sendall(piece)

    def _answer(self, server: socket.socket, asked: threading.Event) -> bytes:
        try:
            return server.recv(_MOST_BYTES)
        except TimeoutError:
            self.unanswered += asked.is_set()
            return b""


@contextlib.contextmanager
def _hanging_up(*ends: socket.socket) -> Iterator[None]:
    """Whichever end breaks, both are hung up."""
    with contextlib.suppress(OSError):
        yield
    for end in ends:
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
