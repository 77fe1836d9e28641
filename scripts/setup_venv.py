"""Build .venv from constraints.txt, or bring it up to date. `make` runs this when it is needed.

The file .venv/ready is written last and removed first, so that it exists only beside a finished
environment; one that was interrupted is built again from nothing. Two at once take turns.
"""

import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from scripts import lock, torch_index
from scripts.progress import PipActivity, Progress

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
READY = VENV / "ready"
LOG = ROOT / ".venv.log"
LOCK = ROOT / ".venv.lock"
PYTHON = VENV / "bin" / "python"
SITE_PACKAGES = (
    VENV / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
)

TICK_SECONDS = 0.2
LOG_LINES_SHOWN = 30

GENERAL_ADVICE = (
    "If an index or the network was away, run the same command again; behind a proxy, set "
    "HTTPS_PROXY, or PIP_INDEX_URL for a mirror. If a version is missing, see constraints.txt."
)
VENV_ADVICE = (
    "See that this folder can be written to, delete .venv, and run the same command again."
)
ENSUREPIP_ADVICE = (
    "This Python cannot make environments; on Debian and Ubuntu, install python3-venv."
)
TORCH_ADVICE = "Without that index, torch comes from the usual one: make TORCH_INDEX= …"


@dataclass(frozen=True)
class Step:
    """One command of the setup, and what to do when it fails."""

    name: str
    command: tuple[str, ...]
    advice: str = GENERAL_ADVICE


class StepFailed(Exception):
    """A command of the setup ended with an error."""

    def __init__(self, step: Step) -> None:
        super().__init__(step.name)
        self.step = step


def pip_install(*arguments: str) -> tuple[str, ...]:
    """A pip command that takes every version from constraints.txt."""
    quiet = ("--disable-pip-version-check", "--no-input", "--progress-bar", "off")
    return (str(PYTHON), "-m", "pip", "install", *quiet, "-c", "constraints.txt", *arguments)


def is_reusable() -> bool:
    """Whether .venv was finished once, in this place, with this version of Python."""
    finished_here = READY.is_file() and READY.read_text().strip() == str(ROOT)
    return finished_here and PYTHON.exists() and SITE_PACKAGES.is_dir()


def is_current(sources: Sequence[Path]) -> bool:
    """Whether .venv is finished and no older than any file that it is built from."""
    return is_reusable() and all(
        source.stat().st_mtime <= READY.stat().st_mtime for source in sources
    )


def planned_steps(progress: Progress, reuse: bool) -> list[Step]:
    """Every command, in order."""
    steps = []
    if not reuse:
        make = (sys.executable, "-m", "venv", "--clear", str(VENV))
        steps.append(Step("making the environment", make, VENV_ADVICE))
    steps.append(Step("installing pip and setuptools", pip_install("pip", "setuptools")))
    if index := torch_index.chosen_index():
        progress.show("asking the torch index")
        if torch_index.answers(index):
            # On its own and without dependencies, so that this index can provide nothing but torch.
            torch = pip_install("--no-deps", "--index-url", index, "torch")
            steps.append(Step(f"installing torch from {index}", torch, TORCH_ADVICE))
        else:
            progress.say(f"{index} did not answer; pip's usual index may bring torch with CUDA.")
    # The packages are built with the pinned setuptools, not with whichever is newest today.
    rest = pip_install("--no-build-isolation", "-r", "requirements-dev.txt")
    steps.append(Step("installing the rest", rest))
    return steps


def run(step: Step, progress: Progress) -> None:
    """Run one command; its output goes to the log, which is followed for the progress line."""
    activity = PipActivity(SITE_PACKAGES, step.name)
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with LOG.open("ab") as output, LOG.open(errors="replace") as lines:
        lines.seek(0, os.SEEK_END)
        process = subprocess.Popen(  # noqa: S603 - the commands above
            step.command, cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT
        )
        try:
            while process.poll() is None:
                for line in lines:
                    activity.hear(line)
                progress.show(str(activity))
                time.sleep(TICK_SECONDS)
        finally:
            process.terminate()
            process.wait()
    if process.returncode != 0:
        raise StepFailed(step)


def set_up(progress: Progress, sources: Sequence[Path]) -> None:
    """Bring .venv to what the files say, unless someone else just did."""

    def say_waiting() -> None:
        progress.say("Another make is setting up .venv; waiting for it.")

    with lock.held(LOCK, say_waiting):
        if not is_current(sources):
            build(progress)


def build(progress: Progress) -> None:
    """Run every step, and only then mark .venv as ready."""
    progress.say(f"Setting up .venv: some minutes the first time. pip's output goes to {LOG.name}.")
    began = time.time()
    reuse = is_reusable()
    READY.unlink(missing_ok=True)
    LOG.write_text("")
    for step in planned_steps(progress, reuse):
        run(step, progress)
    unfinished = READY.with_suffix(".part")
    unfinished.write_text(f"{ROOT}\n")
    # As old as the start: a file that was edited meanwhile is newer and brings us here again.
    os.utime(unfinished, (began, began))
    unfinished.replace(READY)


def explain(failure: StepFailed, progress: Progress) -> None:
    """Show the end of the log and say what to do."""
    with LOG.open(errors="replace") as lines:
        end = "".join(deque(lines, maxlen=LOG_LINES_SHOWN))
    advice = ENSUREPIP_ADVICE if "ensurepip" in end else failure.step.advice
    progress.say(f"{end}\nSetting up .venv failed while {failure.step.name}.")
    progress.say(f"{advice}\nThe whole output is in {LOG.name}.")


def main(sources: Sequence[str]) -> int:
    """Set up from the named files, and turn what can go wrong into sentences."""
    # Ended by another program, stop pip as Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    progress = Progress(sys.stderr)
    try:
        set_up(progress, [ROOT / source for source in sources])
    except StepFailed as failure:
        explain(failure, progress)
        return 1
    except KeyboardInterrupt:
        progress.say("Interrupted: .venv is not ready; the next make sees to it.")
        return 130
    progress.finish()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
