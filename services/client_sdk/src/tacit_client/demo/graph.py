"""The demo's network as a single ONNX file, node by node."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from tacit_client.demo.data import BRIGHTEST, CLASSES
from tacit_client.demo.terms import SHAPE

_OPERATORS = 17
_FORMAT = 9
"""Versions that runtimes of some years' age have, too."""


def onnx_file(weights: Mapping[str, NDArray[np.float32]]) -> bytes:
    """Two layers, from pixels as they are stored to one logit per class.

    The weights are named as in `Network`, which this is the same function as.
    """
    brightest = np.array(BRIGHTEST, dtype=np.float32)
    nodes = [
        helper.make_node("Cast", ["images"], ["floats"], to=TensorProto.FLOAT),
        helper.make_node("Div", ["floats", "brightest"], ["pixels"]),
        helper.make_node("Flatten", ["pixels"], ["flat"], axis=1),
        _linear("flat", "layers.1", "hidden"),
        helper.make_node("Relu", ["hidden"], ["active"]),
        _linear("active", "layers.3", "logits"),
    ]
    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("images", TensorProto.UINT8, ["n", *SHAPE])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", CLASSES])],
        [
            numpy_helper.from_array(values, name)
            for name, values in {**weights, "brightest": brightest}.items()
        ],
    )
    operators = [helper.make_opsetid("", _OPERATORS)]
    model = helper.make_model(graph, opset_imports=operators, ir_version=_FORMAT)
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString(deterministic=True))


def _linear(source: str, layer: str, target: str) -> Any:
    weights = [source, f"{layer}.weight", f"{layer}.bias"]
    return helper.make_node("Gemm", weights, [target], transB=1)
