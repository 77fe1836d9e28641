"""The sessions of a page: its code and its commands, run in order, with what they print."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PORT = "8080"
"""The port that pages speak of; a session has a free one in its place."""

_BLOCK = re.compile(r"^```(python|console)\n(.*?)^```", re.DOTALL | re.MULTILINE)
_HEXADECIMAL = r"\b[0-9a-f]{12,64}\b"
_CHANGES = re.compile(
    rf"(?P<digits>{_HEXADECIMAL})"
    r"|(?P<moment>\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?)"
    r"|(?P<number>\d+\.\d+(?:e-\d+)?)"
)
_PATIENCE = 60.0
_ANY_LINES = "…"


@dataclass
class Session:
    """Runs in a folder; what differs from run to run is told apart from what must be the same.

    Hexadecimal digits (digests, ids) may be others than the page's, but the same ones must be the
    same throughout, also where they are cut short. Times and fractions are not compared.
    """

    folder: Path
    port: str = "0"
    known: dict[str, str] = field(default_factory=dict)
    """The session's own digits, by the first twelve of the page's."""

    def run(self, page: str) -> list[str]:
        """Run a page; lines shown and not printed, or printed and not shown; what failed."""
        names: dict[str, Any] = {}
        wrong = []
        with _in(self.folder), _Server() as server:
            for kind, block in _BLOCK.findall(page):
                if kind == "python":
                    exec(compile(block, "page", "exec"), names)  # noqa: S102 -- our own pages
                    continue
                for command, shown in commands(block):
                    if command.endswith("serve"):
                        printed, code = server.start(self._shell(command), self._environment())
                        self.port = str(json.loads(printed)["port"])
                    else:
                        printed, code = self._finished(command)
                    wrong += self.compare(command, shown, printed.splitlines(), code)
        return wrong

    def compare(self, command: str, shown: list[str], printed: list[str], code: int) -> list[str]:
        """What is wrong with a command; one may fail if the page shows what it says then.

        Lines are in the order of the page; … stands for any number of them.
        """
        rest = [" ".join(line.split()) for line in printed if line.strip()]
        wrong, skips = [], False
        for line in shown:
            if line.strip() == _ANY_LINES:
                skips = True
                continue
            found = self._first_like(line, rest if skips else rest[:1])
            if found is None:
                wrong.append(f"{command}: {line}")
                continue
            rest, skips = rest[found + 1 :], False
        if not skips:
            wrong += [f"{command}: not on the page: {line}" for line in rest]
        if code and not any(line.startswith("tacit: ") for line in shown):
            wrong.append(f"{command}: ended with {code}: {printed}")
        return wrong

    def _first_like(self, line: str, printed: list[str]) -> int | None:
        """Where a line of the page was printed."""
        line = self._own_port(line)
        cut = line.endswith("…")
        pattern = self._pattern(line.removesuffix("…").strip()) + (".*" if cut else "")
        for place, other in enumerate(printed):
            found = re.fullmatch(pattern, other)
            if found:
                digits = [match["digits"] for match in _CHANGES.finditer(line) if match["digits"]]
                for page, own in zip(digits, found.groups(), strict=True):
                    self.known.setdefault(page[:12], own)
                return place
        return None

    def _pattern(self, line: str) -> str:
        pattern, end = "", 0
        line = " ".join(line.split())
        for match in _CHANGES.finditer(line):
            pattern += re.escape(line[end : match.start()]) + self._any(match)
            end = match.end()
        return pattern + re.escape(line[end:])

    def _any(self, match: re.Match[str]) -> str:
        if match["moment"]:
            return r"[\d :.T-]+?"
        if match["number"]:
            return r"\d+(?:\.\d+)?(?:e-\d+)?"
        digits = match["digits"]
        own = self.known.get(digits[:12])
        if own is not None and len(own) >= len(digits):
            return f"({own[: len(digits)]})"
        return f"([0-9a-f]{{{len(digits)}}})"

    def _finished(self, command: str) -> tuple[str, int]:
        ended = subprocess.run(
            self._shell(command),
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_PATIENCE,
            check=False,
        )
        return ended.stdout.decode(), ended.returncode

    def _shell(self, command: str) -> list[str]:
        return ["/bin/sh", "-c", re.sub(_HEXADECIMAL, self._own, self._own_port(command))]

    def _own(self, match: re.Match[str]) -> str:
        return self.known.get(match[0][:12], match[0])[: len(match[0])]

    def _own_port(self, text: str) -> str:
        return text.replace(PORT, self.port) if self.port != "0" else text

    def _environment(self) -> dict[str, str]:
        others = {k: v for k, v in os.environ.items() if not k.startswith("TACIT_")}
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
        own = {"PATH": path, "HOME": str(self.folder), "COLUMNS": "100", "TACIT_PORT": self.port}
        # Or what is said on standard error would come before all results.
        return others | own | {"PYTHONUNBUFFERED": "1"}


def commands(block: str) -> Iterator[tuple[str, list[str]]]:
    """The commands of a block, each with the lines that it is shown to print."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, rest = re.sub(r"\\\n\s*", "", part).partition("\n")
        yield command, [line for line in rest.splitlines() if line.strip()]


class _Server:
    """The server that a page starts, if it does; it ends with the page."""

    process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "_Server":
        return self

    def __exit__(self, *_: object) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait(_PATIENCE)

    def start(self, command: list[str], environment: dict[str, str]) -> tuple[str, int]:
        """Start it; its first line, which says where it listens."""
        log = Path("serve.log")
        with log.open("wb") as file:
            self.process = subprocess.Popen(
                ["/bin/sh", "-c", f"exec {command[-1]}"], env=environment, stdout=file
            )
        ends = time.monotonic() + _PATIENCE
        while b"\n" not in log.read_bytes() and time.monotonic() < ends:
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        return log.read_text().partition("\n")[0], self.process.poll() or 0


@contextmanager
def _in(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
