"""Running a model tells nobody of it: onnxruntime is kept from reporting to its maker."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import tiny_models

ROOT = Path(__file__).parents[3]
SOURCES = ("core/src", "services/aggregator/src", "services/client_sdk/src")
ONLY = "core/src/tacit/networks/runtime.py"
IMPORTS = re.compile(r"^\s*(import onnxruntime|from onnxruntime)\b", re.MULTILINE)
RUN = """
import sys
from pathlib import Path
import numpy as np
from tacit.networks.onnx_file import onnx_network
content = Path(sys.argv[1]).read_bytes()
onnx_network(content, "float32")(np.zeros((1, 4, 2), dtype=np.float32))
"""


def traces(code: str, folder: Path, *arguments: str) -> list[str]:
    """What a process leaves in its home and among temporary files, where reports would wait."""
    folder.mkdir()
    quiet = ("CI", "GITHUB_ACTIONS", "ORT_RUNNING_UNIT_TESTS", "ORT_DISABLE_TELEMETRY")
    others = {
        name: value
        for name, value in os.environ.items()
        if name not in quiet and not name.startswith("XDG_")
    }
    subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={**others, "TMPDIR": str(folder), "HOME": str(folder)},
        check=True,
        timeout=60,
    )
    return [str(path) for path in folder.rglob("*")]


def test_a_model_is_run_without_a_report_to_anyone(tmp_path: Path) -> None:
    if not traces("import onnxruntime", tmp_path / "loud"):
        pytest.skip("this onnxruntime reports to nobody anyway")
    model = tiny_models.save_onnx(tmp_path / "tiny.onnx")
    assert traces(RUN, tmp_path / "quiet", str(model)) == []


def test_onnxruntime_is_imported_in_the_one_place_that_keeps_it_quiet() -> None:
    found = {
        file.relative_to(ROOT).as_posix()
        for source in SOURCES
        for file in (ROOT / source).rglob("*.py")
        if IMPORTS.search(file.read_text(encoding="utf-8"))
    }
    assert found == {ONLY}
