"""Run every benchmark in a process of its own and end with the bars that do not hold."""

import argparse
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # to be run by path, too

from benchmarks.harness import Bar, Report
from tacit.command import forgiving_stdout

BENCHMARKS = ("mechanisms", "threshold", "ingest")
ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Finished:
    """A benchmark that has run: its bars, or why there are none."""

    name: str
    bars: tuple[Bar, ...] = ()
    failure: str | None = None

    def complaints(self, quick: bool = False) -> list[str]:
        """What is wrong with it, a line each; after a quick run the bars mean nothing."""
        if self.failure is not None:
            return [f"{self.name}: {self.failure}"]
        return [f"{self.name}: {bar}" for bar in self.bars if not (quick or bar.holds)]


def run(name: str, command: Sequence[str]) -> Finished:
    """Run a benchmark's command, passing on its tables and keeping its last line, the report."""
    held = ""
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, errors="replace", cwd=ROOT
    ) as process:
        assert process.stdout is not None  # noqa: S101  (a pipe was asked for)
        for line in process.stdout:
            # Only what may be the report has to wait until it is known to be the last line.
            waits = line.startswith("{")
            print(held if waits else held + line, end="", flush=True)
            held = line if waits else ""
    if process.returncode != 0:
        print(held, end="", flush=True)
        return Finished(name, failure=f"it ended with exit code {process.returncode}")
    try:
        return Finished(name, Report.from_json(held).bars)
    except (ValueError, KeyError, TypeError, AttributeError):
        print(held, end="", flush=True)
        return Finished(name, failure="its last line is not a report")


def conclude(finished: Sequence[Finished], *, quick: bool = False) -> int:
    """Print the bars that do not hold; the exit code says whether there are any."""
    complaints = [line for benchmark in finished for line in benchmark.complaints(quick)]
    if complaints:
        print("\nBenchmarks that do not run:" if quick else "\nBars that do not hold:")
        for complaint in complaints:
            print(f"  {complaint}")
        return 1
    bars = sum(len(benchmark.bars) for benchmark in finished)
    ran = "All benchmarks run. The bars were not judged: with --quick they mean nothing."
    print(f"\n{ran if quick else f'All {bars} bars hold.'}")
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all benchmarks, one after the other."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes: the bars mean nothing")
    quick = parser.parse_args(arguments).quick
    finished = []
    for name in BENCHMARKS:
        print(f"\n=== {name} ===", flush=True)
        command = [sys.executable, "-u", "-m", f"benchmarks.{name}", "--json"]
        finished.append(run(name, [*command, "--quick"] if quick else command))
    return conclude(finished, quick=quick)


if __name__ == "__main__":
    with forgiving_stdout():
        sys.exit(main())
