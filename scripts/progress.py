"""What a person sees while pip works."""

import re
import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

PLAIN_LINE_SECONDS = 10.0

_PIP_SPEAKS_OF_ONE = re.compile(
    r"\s*(Collecting|Downloading|Using cached|Processing|Obtaining|Building \w+ for) (\S+)"
)
_PIP_INSTALLS = re.compile(r"\s*Installing collected packages: (.+)")


@dataclass
class Progress:
    """One live line on a terminal; elsewhere a plain line every ten seconds, for logs."""

    stream: TextIO
    started: float = field(default_factory=time.monotonic)
    last_plain_line: float = float("-inf")

    def show(self, activity: str) -> None:
        """Say what is being done now."""
        now = time.monotonic()
        line = f".venv {elapsed(now - self.started)}  {activity}"
        if self.stream.isatty():
            width = shutil.get_terminal_size().columns - 1
            self._write(f"\r\x1b[K{line[:width]}")
        elif now - self.last_plain_line >= PLAIN_LINE_SECONDS:
            self.last_plain_line = now
            self._write(f"{line}\n")

    def say(self, sentence: str) -> None:
        """Leave a sentence that stays, in place of the live line."""
        self._write(f"\r\x1b[K{sentence}\n" if self.stream.isatty() else f"{sentence}\n")

    def finish(self) -> None:
        """Say how long it all took."""
        self.say(f".venv is ready ({elapsed(time.monotonic() - self.started)}).")

    def _write(self, text: str) -> None:
        self.stream.write(text)
        self.stream.flush()


@dataclass
class PipActivity:
    """What pip is doing, from the lines that it prints and the packages that have arrived."""

    site_packages: Path
    step: str
    package: str = ""
    to_install: tuple[str, ...] = ()

    def hear(self, line: str) -> None:
        """Take in one line of pip's output."""
        if found := _PIP_INSTALLS.match(line):
            self.to_install = tuple(found[1].strip().split(", "))
        elif found := _PIP_SPEAKS_OF_ONE.match(line):
            verb = found[1].split()[0].lower()
            package = re.split(r"-\d|[^\w.-]", Path(found[2]).name)[0]
            self.package = f"{verb} {package}"

    def __str__(self) -> str:
        if not self.to_install:
            return self.package or self.step
        # pip is silent while it unpacks, which takes longest. It keeps to the order that it
        # announced, and a package's INSTALLER file comes last.
        arrived = {
            canonical(file.parent.name.split("-")[0])
            for file in self.site_packages.glob("*.dist-info/INSTALLER")
        }
        for number, package in enumerate(self.to_install, start=1):
            if canonical(package) not in arrived:
                return f"installing {package} ({number} of {len(self.to_install)})"
        return self.step


def canonical(package: str) -> str:
    """A package's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", package).lower()


def elapsed(seconds: float) -> str:
    """Minutes and seconds, as 1:05."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}:{rest:02}"
