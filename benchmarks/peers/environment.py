"""The peers' virtual environment: made once, kept outside version control, and asked by name."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

from benchmarks.harness import progress

HERE = Path(__file__).resolve().parent
CACHE = HERE.parents[1] / ".bench"
REQUIREMENTS = HERE / "requirements.txt"
SCRIPT = HERE / "randomized_response.py"


class Unavailable(Exception):
    """A peer could not be measured here; the message says why."""


def make_environment(folder: Path = CACHE / "peers") -> Path:
    """The Python of an environment with the peers, made if it is not there or not current."""
    scripts = "Scripts" if sys.platform == "win32" else "bin"
    python = folder / scripts / "python"
    made_from = folder / "made-from.txt"
    wanted = f"{sys.version}\n{REQUIREMENTS.read_text()}"
    if made_from.exists() and made_from.read_text() == wanted:
        return python
    progress("making the peers' environment (once; takes a minute or so)")
    shutil.rmtree(folder, ignore_errors=True)
    _check([sys.executable, "-m", "venv", str(folder)], "its environment cannot be made")
    install = ["-m", "pip", "install", "--quiet", "--retries", "1", "--timeout", "30"]
    _check([str(python), *install, "-r", str(REQUIREMENTS)], "the peers cannot be installed")
    made_from.write_text(wanted)
    return python


def labels_per_second(python: Path, peer: str, k: int, epsilon: float) -> float:
    """The rate of one peer, measured in a process of the peers' environment."""
    output = _check([str(python), str(SCRIPT), peer, str(k), repr(epsilon)], "it failed")
    return float(json.loads(output.splitlines()[-1])["labels_per_second"])


def _check(command: list[str], complaint: str) -> str:
    """The output of a command, or why there is none."""
    try:
        finished = subprocess.run(command, check=True, capture_output=True, text=True)
    except OSError as error:
        raise Unavailable(f"{complaint} ({error})") from error
    except subprocess.CalledProcessError as error:
        last = (error.stderr.strip().splitlines() or [f"exit code {error.returncode}"])[-1]
        raise Unavailable(f"{complaint} ({last[:160]})") from error
    return finished.stdout
