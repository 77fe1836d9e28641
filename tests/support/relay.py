"""A TCP relay on the loopback: an address that stays while servers come and go, and a bad network.

Clients know the relay's port, so that a server that was killed can come back on any other one.
"""

import contextlib
import random
import socket
import threading
from collections import Counter
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
    """Carries bytes between clients and whoever listens on `target`; None: nobody does."""

    def __init__(self, faults: Faults | None = None) -> None:
        self.target: int | None = None
        self.faults = faults
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self._closed = False

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
        server.settimeout(_PATIENCE)
        back = threading.Thread(target=self._pump, args=(server, client, "answer"), daemon=True)
        back.start()
        self._pump(client, server, "request")
        back.join()
        client.close()
        server.close()

    def _connected(self) -> socket.socket | None:
        if self.target is None:
            return None
        try:
            server = socket.create_connection(("127.0.0.1", self.target), timeout=_PATIENCE)
        except OSError:
            return None
        if server.getsockname() == server.getpeername():
            server.close()  # nobody listens there, and the system connected the port with itself
            return None
        return server

    def _pump(self, source: socket.socket, sink: socket.socket, direction: Direction) -> None:
        with contextlib.suppress(OSError):
            while piece := source.recv(_MOST_BYTES):
                if self.faults is not None and self.faults.cut(direction):
                    break
                sink.sendall(piece)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
