"""Nothing that a record holds is printed: onnxruntime's own logger is silent, errors are ours."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

from tacit.networks.onnx_file import onnx_network
from tests.support.hostile_models import failing, records

FEATURE = 1_951_072  # float32 holds it exactly
SESSION = """
import sys
from pathlib import Path
from tacit.networks.onnx_file import onnx_network
try:
    onnx_network(Path(sys.argv[1]).read_bytes(), "float32")
except Exception:
    pass
"""


def test_a_feature_that_an_operator_fails_on_was_printed_by_the_runtimes_logger(
    capfd: pytest.CaptureFixture[str],
) -> None:
    network = onnx_network(failing("error"), "float32")
    features = records(1)
    features[0, 1] = FEATURE
    with pytest.raises(Exception, match=str(FEATURE)):  # which is why its text is never shown
        network(features)
    out, err = capfd.readouterr()
    assert str(FEATURE) not in out + err
    assert (out, err) == ("", "")


def folded() -> bytes:
    """A model of which a part is computed while it is loaded, and fails there."""
    model = onnx.load_model_from_string(failing("error"))
    constant = onnx.numpy_helper.from_array(np.array([[0, FEATURE, 0]], dtype=np.float32), "held")
    model.graph.initializer.append(constant)
    model.graph.node[0].input[0] = "held"
    return bytes(model.SerializeToString())


def unknown_operator() -> bytes:
    model = onnx.load_model_from_string(failing("error"))
    model.graph.node[0].op_type = "NoSuchOperator"
    return bytes(model.SerializeToString())


@pytest.mark.parametrize("content", [folded(), unknown_operator(), b"no model"])
def test_a_model_that_cannot_be_loaded_is_not_spoken_of_by_the_runtime(
    content: bytes, tmp_path: Path
) -> None:
    file = tmp_path / "broken.onnx"
    file.write_bytes(content)
    ended = subprocess.run(
        [sys.executable, "-c", SESSION, str(file)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ended.stdout, ended.stderr) == ("", "")
