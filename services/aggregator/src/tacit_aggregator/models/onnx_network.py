"""Models that onnxruntime runs: single files, on the CPU."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray

from tacit_aggregator.models.registered import ModelMisbehaved, ModelNotLoadable, RegisteredModel

_NAMES = {"float": "float32", "double": "float64"}
"""ONNX names the other types as numpy does."""


def onnx_network(content: bytes, model: RegisteredModel) -> Callable[[NDArray[Any]], NDArray[Any]]:
    """A model with one input, which gets features in its type or as float32."""
    _refuse_external_data(content)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    inputs, outputs = session.get_inputs(), session.get_outputs()
    if len(inputs) != 1 or len(outputs) != 1:
        raise ModelNotLoadable(
            f"An ONNX model must have one input and one output, not {len(inputs)} and"
            f" {len(outputs)}."
        )
    dtype = _input_dtype(inputs[0].type, model)
    name = inputs[0].name

    def run(batch: NDArray[Any]) -> NDArray[Any]:
        (found,) = session.run(None, {name: batch.astype(dtype, copy=False)})
        if not isinstance(found, np.ndarray):
            raise ModelMisbehaved("The model must give one tensor.")
        return found

    return run


def _input_dtype(onnx_type: str, model: RegisteredModel) -> np.dtype[Any]:
    """`onnx_type` is written like tensor(float)."""
    wanted = onnx_type.removeprefix("tensor(").removesuffix(")")
    wanted = _NAMES.get(wanted, wanted)
    if wanted not in (model.dtype, "float32"):
        raise ModelNotLoadable(
            f"The model's input is {onnx_type}; register it with --dtype of that type, or export"
            " it with a float32 input."
        )
    return np.dtype(wanted)


def _refuse_external_data(content: bytes) -> None:
    """A model is one file: its digest must cover all of it, and it may name no other."""
    for tensor in _tensors(onnx.load_model_from_string(content)):
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
