"""Run every benchmark in a process of its own and end with the bars that do not hold."""

import argparse
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.harness import Bar, Report

BENCHMARKS = ("mechanisms", "threshold")
ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Finished:
    """A benchmark that has run: its bars, or why there are none."""

    name: str
    bars: tuple[Bar, ...] = ()
    failure: str | None = None

    @property
    def complaints(self) -> list[str]:
        """What is wrong with it, a line each."""
        if self.failure is not None:
            return [f"{self.name}: {self.failure}"]
        return [f"{self.name}: {bar}" for bar in self.bars if not bar.holds]


def run(name: str, command: Sequence[str]) -> Finished:
    """Run a benchmark's command, passing on its tables and keeping its last line, the report."""
    last = ""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None  # noqa: S101  (a pipe was asked for)
        for line in process.stdout:
            print(last, end="", flush=True)
            last = line
    if process.returncode != 0:
        print(last, end="", flush=True)
        return Finished(name, failure=f"it ended with exit code {process.returncode}")
    try:
        return Finished(name, Report.from_json(last).bars)
    except (ValueError, KeyError, TypeError):
        print(last, end="", flush=True)
        return Finished(name, failure="its last line is not a report")


def conclude(finished: Sequence[Finished]) -> int:
    """Print the bars that do not hold; the exit code says whether there are any."""
    complaints = [complaint for benchmark in finished for complaint in benchmark.complaints]
    if not complaints:
        print(f"\nAll {sum(len(benchmark.bars) for benchmark in finished)} bars hold.")
        return 0
    print("\nBars that do not hold:")
    for complaint in complaints:
        print(f"  {complaint}")
    return 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all benchmarks, one after the other."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes: the bars mean nothing")
    quick = ["--quick"] if parser.parse_args(arguments).quick else []
    finished = []
    for name in BENCHMARKS:
        print(f"\n=== {name} ===", flush=True)
        command = [sys.executable, "-u", "-m", f"benchmarks.{name}", "--json", *quick]
        finished.append(run(name, command))
    return conclude(finished)


if __name__ == "__main__":
    sys.exit(main())
