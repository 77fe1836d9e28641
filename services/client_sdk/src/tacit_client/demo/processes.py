"""Processes of the demo: all of them end with it, however it ends."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Self

from tacit_client.demo.errors import DemoFailed

_PATIENCE = 120.0


class Killed(Exception):
    """The process was ended from outside before it had finished."""


class Processes:
    """Starts `tacit` commands as processes; leaving the block ends those that still run."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[str]] = set()
        self._over = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End everything that runs; nothing more is started."""
        with self._lock:
            self._over = True
            for process in self._running:
                process.kill()

    def start(self, *arguments: str) -> "Command":
        """Start `tacit` with these arguments and --json."""
        with self._lock:
            if self._over:
                raise Killed
            process = subprocess.Popen(  # noqa: S603 -- this Python, and arguments of the demo's own
                [sys.executable, "-m", "tacit_client.cli", *arguments, "--json", "--quiet"],
                env={k: v for k, v in os.environ.items() if not k.startswith("TACIT_")},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                encoding="utf-8",
            )
            self._running.add(process)
        return Command(self, process, arguments[0])

    def forget(self, process: subprocess.Popen[str]) -> None:
        """A process has ended."""
        with self._lock:
            self._running.discard(process)


class Command:
    """A `tacit` command that runs."""

    def __init__(self, processes: Processes, process: subprocess.Popen[str], name: str) -> None:
        self._processes = processes
        self._process = process
        self._name = name

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    def kill(self) -> None:
        """SIGKILL: it cannot put anything away."""
        self._process.kill()

    def finish(self) -> dict[str, Any]:
        """Wait for it; what it printed. `Killed` if it was, `DemoFailed` if it refused."""
        try:
            printed, complaint = self._process.communicate(timeout=_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
            raise DemoFailed(f"tacit {self._name} did not end in time.") from None
        finally:
            self._processes.forget(self._process)
        code = self._process.returncode
        if code < 0:
            raise Killed
        if code:
            said = " ".join(complaint.split()) or "nothing"
            raise DemoFailed(f"tacit {self._name} ended with {code} and said: {said}")
        fields: dict[str, Any] = json.loads(printed)
        return fields


def private_file(path: Path, text: str) -> None:
    """Write a new file that only its owner may read."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as opened:
        opened.write(text + "\n")
