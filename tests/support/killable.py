"""Run a module of the product, and end it with SIGKILL at a named point: the product has no hooks.

python -m tests.support.killable ROOM/NAME/MOMENT/OCCURRENCE -- MODULE ARGUMENT…

Rooms are where the product commits or sends: `database` (the aggregator's transactions), `ledger`
(the client's) and `transport` (the client's requests). Before a commit means: all statements were
run, none is durable. After it: durable, and nothing else was done. Before a request nothing was
sent; after it the answer is here, and nothing was done with it.
"""

import functools
import itertools
import os
import runpy
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast, get_args

Room = Literal["database", "ledger", "transport"]
Moment = Literal["before", "after"]
MOMENTS: tuple[Moment, ...] = get_args(Moment)


@dataclass(frozen=True)
class Kill:
    """Where a process ends: in which room, at what, on which side of it, and which time."""

    room: Room
    name: str
    moment: Moment
    occurrence: int = 1

    def __str__(self) -> str:
        return f"{self.room}/{self.name}/{self.moment}/{self.occurrence}"

    @classmethod
    def parse(cls, text: str) -> "Kill":
        """What `str` gave."""
        room, name, moment, occurrence = text.split("/")
        return cls(cast("Room", room), name, cast("Moment", moment), int(occurrence))


class Trap:
    """Counts how often the point is passed, and ends the process when it is time."""

    def __init__(self, kill: Kill) -> None:
        self._kill = kill
        self._passed = itertools.count(1)  # its next() is atomic: transactions come from threads

    def passed(self, name: str, moment: Moment) -> None:
        """Called at every point of the room."""
        if (name, moment) != (self._kill.name, self._kill.moment):
            return
        if next(self._passed) == self._kill.occurrence:
            os.kill(os.getpid(), signal.SIGKILL)
            signal.pause()  # the signal is on its way: nothing else may happen

    def transactions(
        self, original: Callable[..., AbstractContextManager[Any]]
    ) -> Callable[..., AbstractContextManager[Any]]:
        """A method `transaction(name, …)` with the points of its commits."""

        @contextmanager
        def transaction(room: object, name: str, **options: Any) -> Iterator[Any]:
            with original(room, name, **options) as connection:
                yield connection
                self.passed(name, "before")
            self.passed(name, "after")

        return transaction

    def around(self, name: str | None, original: Callable[..., Any]) -> Callable[..., Any]:
        """A function with a point on each side; without a name, its first argument is one."""

        @functools.wraps(original)
        def call(*arguments: Any, **options: Any) -> Any:
            what = arguments[1] if name is None else name
            self.passed(what, "before")
            result = original(*arguments, **options)
            self.passed(what, "after")
            return result

        return call


def set_trap(kill: Kill) -> None:
    """Put points around everything in the room that is durable or leaves the process."""
    trap = Trap(kill)
    if kill.room == "database":
        _trap_database(trap)
    elif kill.room == "ledger":
        _trap_ledger(trap)
    else:
        _trap_transport(trap)


def _trap_database(trap: Trap) -> None:
    from tacit_aggregator.database.engine import Database  # noqa: PLC0415 -- one room, one package

    setattr(Database, "transaction", trap.transactions(Database.transaction))  # noqa: B010 -- mypy
    setattr(Database, "erase_log", trap.around("erase log", Database.erase_log))  # noqa: B010 -- mypy
    # The one file that `migrate` opens so: on both sides of it, it is there and still empty.
    setattr(os, "fdopen", trap.around("write secret", os.fdopen))  # noqa: B010 -- mypy


def _trap_ledger(trap: Trap) -> None:
    from tacit_client.ledger import ledger, schema, witness  # noqa: PLC0415 -- loads slowly

    made = ledger.Ledger
    setattr(made, "transaction", trap.transactions(made.transaction))  # noqa: B010 -- mypy
    setattr(made, "erase_log", trap.around("erase log", made.erase_log))  # noqa: B010 -- mypy
    setattr(ledger, "migrate", trap.around("make ledger", schema.migrate))  # noqa: B010 -- mypy
    written = trap.around("write witness", witness.Witness.write)
    setattr(witness.Witness, "write", written)  # noqa: B010 -- mypy
    # How the witness and the policy are written: a whole new file takes the old one's place.
    setattr(Path, "replace", trap.around("replace file", Path.replace))  # noqa: B010 -- mypy


def _trap_transport(trap: Trap) -> None:
    from tacit_client.transport import Transport  # noqa: PLC0415 -- loads slowly

    setattr(Transport, "send", trap.around(None, Transport.send))  # noqa: B010 -- mypy


def main() -> None:
    """Set the trap, then run the module as `python -m` would."""
    point, separator, module, *arguments = sys.argv[1:]
    if separator != "--":
        raise SystemExit("usage: python -m tests.support.killable POINT -- MODULE ARGUMENT…")
    set_trap(Kill.parse(point))
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
