"""ONNX models that whoever asks could send to learn more than bits: 3 features, two classes."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import NodeProto, TensorProto, helper, numpy_helper

SHAPE = (3,)
CLASSES = 2
_CONSTANTS: dict[str, NDArray[Any]] = {
    "zero": np.array(0, dtype=np.int64),
    "one": np.array([1], dtype=np.int64),
    "nothing": np.array(0, dtype=np.float32),
    "three": np.array(3, dtype=np.float32),
    "minus": np.array([-1], dtype=np.int64),
    "least": np.array([-(2**63)], dtype=np.int64),
    "high": np.array(2, dtype=np.int64),  # the last row of weights
    "beyond": np.array(3, dtype=np.int64),
    "yes": np.array(True),
    "weights": np.zeros((3, 2), dtype=np.float32),
    "towards": np.array([0, 50], dtype=np.float32),
}


def node(operator: str, inputs: str, outputs: str, **attributes: Any) -> NodeProto:
    """An operator; names are separated by blanks."""
    return helper.make_node(operator, inputs.split(), outputs.split(), **attributes)


def model_of(
    nodes: Iterable[NodeProto], *, opset: int = 17, domains: Iterable[str] = (), **fields: Any
) -> bytes:
    """A model from "x", and constants of the names above, to "y"."""
    graph = helper.make_graph(
        list(nodes),
        "hostile",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", *SHAPE])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", CLASSES])],
        [numpy_helper.from_array(value, name) for name, value in _CONSTANTS.items()],
    )
    imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(name, 1) for name in domains)]
    made = helper.make_model(graph, opset_imports=imports, ir_version=9, **fields)
    return bytes(made.SerializeToString())


def added(*nodes: NodeProto) -> tuple[NodeProto, ...]:
    """These operators, which make "more" of "x", and then logits that "more" is added to."""
    return (*nodes, node("MatMul", "x weights", "flat"), node("Add", "flat more", "y"))


def mixing() -> bytes:
    """Every record's logits tell whether the first feature of the first record is positive."""
    return model_of(
        added(
            node("Gather", "x zero", "first", axis=0),
            node("Gather", "first zero", "feature", axis=0),
            node("Greater", "feature nothing", "positive"),
            node("Cast", "positive", "bit", to=TensorProto.FLOAT),
            node("Mul", "bit towards", "more"),
        )
    )


def failing(how: str = "undefined") -> bytes:
    """Fails where the second feature is above 3: undefined, with an error, or in what it gives.

    With an error it stops there, and is done sooner; so a site refuses that one.
    """
    column = node("Gather", "x one", "feature", axis=1)
    if how == "undefined":
        root = (node("Sub", "three feature", "left"), node("Sqrt", "left", "root"))
        return model_of(added(column, *root, node("Mul", "root nothing", "more")))
    index = node("Cast", "feature", "index", to=TensorProto.INT64)
    if how == "error":  # there is no fourth row of weights
        picked = (node("Gather", "weights index", "picked", axis=0),)
        return model_of(added(column, index, *picked, node("Squeeze", "picked one", "more")))
    assert how == "no distribution"
    above = (node("Sub", "feature three", "left"), node("Relu", "left", "above"))
    logits = (node("MatMul", "x weights", "flat"), node("Add", "flat above", "more"))
    return model_of((column, *above, *logits, node("Sigmoid", "more", "y")))


def looked_up(*bounding: NodeProto, index: str = "index") -> bytes:
    """A row of weights is added to the logits, by an index that is made of the second feature."""
    feature = node("Gather", "x one", "feature", axis=1)
    cast = node("Cast", "feature", "index", to=TensorProto.INT64)
    picked = (node("Gather", f"weights {index}", "picked"), node("Squeeze", "picked one", "more"))
    return model_of(added(feature, cast, *bounding, *picked))


def records(n: int) -> NDArray[np.float32]:
    """Features between -1 and 1."""
    return np.random.default_rng(4).uniform(-1, 1, (n, *SHAPE)).astype(np.float32)
