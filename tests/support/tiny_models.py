"""Small models in every format that the aggregator takes: 4×2 features, three classes."""

from pathlib import Path

import numpy as np
import onnx
import safetensors.torch
import torch
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

SHAPE = (4, 2)
CLASSES = 3
WEIGHTS: NDArray[np.float32] = np.random.default_rng(3).normal(size=(8, 3)).astype(np.float32)


class Linear(torch.nn.Module):
    """Logits that are linear in the features, whatever type they come in."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(8, CLASSES, bias=False)
        self.layer.weight = torch.nn.Parameter(torch.from_numpy(WEIGHTS.T.copy()))

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.layer(features.float().flatten(1) / 255)
        return logits


class Wide(Linear):
    """Two thousand classes."""

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        return super().forward(features).repeat(1, 700)


class Undecided(Linear):
    """As a model that was exported while it was being trained."""

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        logits = super().forward(features)
        return logits + torch.rand_like(logits)


class Undefined(Linear):
    """Logits that are not numbers."""

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        return super().forward(features) / 0.0


class Flat(Linear):
    """Not one number per class."""

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        return super().forward(features).sum(1)


class OverflowsOnBright(Linear):
    """Fine on zeros, infinite where a feature is 255."""

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        bright = (features == 255).flatten(1).any(1, keepdim=True)
        return super().forward(features).masked_fill(bright, float("inf"))


def expected_logits(features: NDArray[np.uint8]) -> NDArray[np.float32]:
    """What `Linear` gives, by numpy."""
    flat = features.reshape(len(features), 8).astype(np.float32) / np.float32(255)
    return (flat @ WEIGHTS).astype(np.float32)


def save_pt2(file: Path, *, any_number: bool = True) -> Path:
    """`Linear` as an exported program, for any number of records or for 4."""
    batch = torch.zeros((4, *SHAPE), dtype=torch.uint8)
    dynamic = ({0: torch.export.Dim.DYNAMIC},) if any_number else None
    torch.export.save(torch.export.export(Linear(), (batch,), dynamic_shapes=dynamic), file)
    return file


def save_safetensors(file: Path) -> Path:
    """The weights of `Linear`."""
    safetensors.torch.save_file(Linear().state_dict(), file)
    return file


def save_onnx(
    file: Path,
    *,
    dtype: int = TensorProto.FLOAT,
    outside: bool = False,
    rows: int | str = "n",
    softmax: bool = False,
) -> Path:
    """The same as an ONNX file, its weights inside or in a file beside it."""
    weights = numpy_helper.from_array(WEIGHTS / np.float32(255), "weights")
    nodes = [
        helper.make_node("Cast", ["features"], ["floats"], to=TensorProto.FLOAT),
        helper.make_node("Flatten", ["floats"], ["flat"], axis=1),
        helper.make_node("MatMul", ["flat", "weights"], ["logits"]),
        helper.make_node("Softmax" if softmax else "Identity", ["logits"], ["outputs"]),
    ]
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info("features", dtype, [rows, *SHAPE])],
        [helper.make_tensor_value_info("outputs", TensorProto.FLOAT, [rows, CLASSES])],
        [weights],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    if outside:
        onnx.save_model(model, file, save_as_external_data=True, size_threshold=0)
    else:
        onnx.save_model(model, file)
    return file
