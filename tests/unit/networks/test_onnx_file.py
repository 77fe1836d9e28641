"""A model is one ONNX file that was looked into, and nothing else that onnxruntime could read."""

import struct
from pathlib import Path

import numpy as np
import onnx
import pytest

from tacit.errors import ModelNotLoadable
from tacit.networks.onnx_file import onnx_network, site_network
from tacit.networks.runtime import onnxruntime
from tests.support.hostile_models import mixing, records


def in_the_other_format(folder: Path) -> bytes:
    """A model as onnxruntime's own flatbuffer."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.optimized_model_filepath = str(folder / "model.ort")
    options.add_session_config_entry("session.save_model_format", "ORT")
    onnxruntime.InferenceSession(mixing(), options, providers=["CPUExecutionProvider"])
    return (folder / "model.ort").read_bytes()


def both_formats(flat: bytes) -> bytes:
    """A flatbuffer whose bytes are a protobuf message without a graph, too.

    Its first bytes are where its root is, which as protobuf are ir_version and the tag of a number
    of eight bytes; the number holds the flatbuffer's mark, and a text takes in the rest.
    """
    (root,) = struct.unpack("<I", flat[:4])
    place = next(place for place in range(0x090008, 0x098000, 0x100) if (place - root) % 16 == 0)
    moved = bytearray(place - root) + flat
    moved[:8] = struct.pack("<I", place) + b"ORTM"
    rest = len(moved) - 17
    length = [rest >> 7 * i & 0x7F | (0x80 if i < 4 else 0) for i in range(5)]
    moved[11:17] = bytes([0x1A, *length])
    return bytes(moved)


def test_a_file_that_is_a_model_of_another_format_too_is_not_run_as_that(tmp_path: Path) -> None:
    content = both_formats(in_the_other_format(tmp_path))
    assert not onnx.load_model_from_string(content).graph.node  # what a check would see
    silent = onnxruntime.SessionOptions()
    silent.log_severity_level = 3
    other = onnxruntime.InferenceSession(content, silent, providers=["CPUExecutionProvider"])
    assert np.shape(other.run(None, {"x": records(2)})[0]) == (2, 2)  # what would be run
    for load in (onnx_network, site_network):
        with pytest.raises(Exception, match="No graph was found"):
            load(content, "float32")


def test_a_model_that_brings_settings_is_refused() -> None:
    model = onnx.load_model_from_string(mixing())
    model.metadata_props.add(key="ort_config", value='{"session_options": {"enable_profiling": 1}}')
    with pytest.raises(ModelNotLoadable, match="settings"):
        onnx_network(model.SerializeToString(), "float32")
