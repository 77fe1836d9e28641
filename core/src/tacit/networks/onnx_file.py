"""Models that onnxruntime runs: single files, on the CPU. Needs the extra `onnx`."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from tacit.errors import ModelMisbehaved, ModelNotLoadable
from tacit.networks.operators import check_operators
from tacit.networks.running import Network
from tacit.networks.runtime import ONLY_FATAL, onnxruntime

_NAMES = {"float": "float32", "double": "float64"}
"""ONNX names the other types as numpy does."""


def onnx_network(content: bytes, dtype: str) -> Network:
    """A model with one input, which gets features in its type or as float32.

    Operators are those that onnxruntime has: it is given no library with others.
    """
    _refuse_more_than_a_graph(onnx.load_model_from_string(content))
    session = onnxruntime.InferenceSession(content, _options(), providers=["CPUExecutionProvider"])
    inputs, outputs = session.get_inputs(), session.get_outputs()
    if len(inputs) != 1 or len(outputs) != 1:
        raise ModelNotLoadable(
            f"An ONNX model must have one input and one output, not {len(inputs)} and"
            f" {len(outputs)}."
        )
    wanted = _input_dtype(inputs[0].type, dtype)
    name = inputs[0].name

    def run(batch: NDArray[Any]) -> NDArray[Any]:
        (found,) = session.run(None, {name: batch.astype(wanted, copy=False)})
        if not isinstance(found, np.ndarray):
            raise ModelMisbehaved("The model must give one tensor.")
        return found

    return run


def site_network(content: bytes, dtype: str) -> Network:
    """A model that a site may run on its records: see `tacit.networks.operators`.

    What is run is what was checked, whatever else another reader could find in the file.
    """
    model = onnx.load_model_from_string(content)
    _refuse_more_than_a_graph(model)  # before constants are looked into, which could be in files
    check_operators(model)
    return onnx_network(model.SerializeToString(), dtype)


def _options() -> onnxruntime.SessionOptions:
    """Files are read as ONNX only: other formats of onnxruntime are not looked into before."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = ONLY_FATAL
    options.use_deterministic_compute = True
    options.add_session_config_entry("session.load_model_format", "ONNX")
    return options


def _input_dtype(onnx_type: str, dtype: str) -> np.dtype[Any]:
    """`onnx_type` is written like tensor(float)."""
    wanted = onnx_type.removeprefix("tensor(").removesuffix(")")
    wanted = _NAMES.get(wanted, wanted)
    if wanted not in (dtype, "float32"):
        raise ModelNotLoadable(
            f"The model's input is {onnx_type}; register it with --dtype of that type, or export"
            " it with a float32 input."
        )
    return np.dtype(wanted)


def _refuse_more_than_a_graph(model: onnx.ModelProto) -> None:
    """A model is one file: its digest must cover all of it, and it may name no other.

    Nor may it bring settings, which onnxruntime takes from it if the environment says so: they
    make it write files.
    """
    if any(entry.key == "ort_config" for entry in model.metadata_props):
        raise ModelNotLoadable(
            "The model brings settings of onnxruntime; remove ort_config from its metadata."
        )
    for tensor in _tensors(model):
        if tensor.data_location == onnx.TensorProto.EXTERNAL or len(tensor.external_data):
            raise ModelNotLoadable(
                "The model keeps weights in other files; save it as a single file, without"
                " external data."
            )


def _tensors(root: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    """Every tensor anywhere in a message, subgraphs and functions included."""
    left: list[Any] = [root]  # messages of any kind
    while left:
        message = left.pop()
        if isinstance(message, onnx.TensorProto):
            yield message
            continue
        for field, value in message.ListFields():
            if field.message_type is not None:
                left.extend([value] if hasattr(value, "ListFields") else value)
