"""What a site runs has no operator that is random, or known to tell records apart by its time."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, defs, helper

from tacit.errors import ModelNotLoadable
from tacit.networks import operators
from tacit.networks.onnx_file import onnx_network, site_network
from tests.support.hostile_models import (
    added,
    failing,
    looked_up,
    mixing,
    model_of,
    node,
    records,
)

REFUSED = frozenset(
    """
    If Loop Scan SequenceMap
    Compress NonMaxSuppression NonZero Unique
    DeformConv GridSample AffineGrid MaxRoiPool MaxUnpool RoiAlign TopK
    Bernoulli Multinomial RandomNormal RandomNormalLike RandomUniform RandomUniformLike
    ConcatFromSequence Optional OptionalGetElement OptionalHasElement SequenceAt SequenceConstruct
    SequenceEmpty SequenceErase SequenceInsert SequenceLength SplitToSequence
    ImageDecoder RegexFullMatch StringConcat StringNormalizer StringSplit TfIdfVectorizer
    CausalConvWithState LinearAttention NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss
    TensorScatter
    """.split()  # noqa: SIM905 -- a list of names, to be read
)
"""Control flow; shapes that depend on values; work or addresses that do; random numbers; sequences;
texts and files; and what no classifier needs."""

LENGTH = (
    node("Gather", "x one", "feature", axis=1),
    node("Cast", "feature", "lengths", to=TensorProto.INT64),
    node("Reshape", "lengths minus", "length"),
)
LOADING = """
import sys
from pathlib import Path
from tacit.errors import ModelNotLoadable
from tacit.networks.onnx_file import site_network
try:
    site_network(Path(sys.argv[1]).read_bytes(), "float32")
except ModelNotLoadable as error:
    print(error)
"""


def learned(operator: str, outputs: str, **attributes: Any) -> onnx.NodeProto:
    """An operator of the domain ai.onnx.ml on the features."""
    return node(operator, "x", outputs, domain="ai.onnx.ml", **attributes)


def counted() -> onnx.GraphProto:
    """A branch that gives 3."""
    output = helper.make_tensor_value_info("branch", TensorProto.FLOAT, [])
    return helper.make_graph([node("Identity", "three", "branch")], "branch", [], [output])


def test_every_operator_of_onnx_was_thought_about() -> None:
    every = {schema.name for schema in defs.get_all_schemas_with_history() if not schema.domain}
    kinds = [operators.UNCONDITIONAL, operators.UNEVEN, operators.INDEXED, operators.SHAPED]
    known = set().union(*kinds)
    assert every - known == REFUSED & every
    assert len(known) == sum(map(len, kinds))


@pytest.mark.parametrize(
    ("nodes", "says"),
    [
        ([node("RandomNormalLike", "x", "r"), node("ReduceSum", "r", "more")], "RandomNormalLike"),
        ([node("Bernoulli", "x", "r"), node("ReduceSum", "r", "more")], "Bernoulli"),
        ([node("Dropout", "x nothing yes", "r"), node("ReduceSum", "r", "more")], "evaluation"),
        ([node("NonZero", "x", "i"), node("ReduceSum", "i", "more")], "NonZero"),
        ([node("If", "yes", "more", then_branch=counted(), else_branch=counted())], " If,"),
        ([*LENGTH, node("Expand", "three length", "l"), node("ReduceSum", "l", "more")], "Expand"),
        ([*LENGTH, node("ConstantOfShape", "length", "l")], "ConstantOfShape"),
        ([*LENGTH, node("Div", "length minus", "l")], "Div"),
        ([*LENGTH, node("Mod", "minus length", "l")], "Mod"),
        ([node("Mod", "x x", "r", fmod=1), node("ReduceSum", "r", "more")], "Mod takes longer"),
        ([node("Sin", "x", "r"), node("ReduceSum", "r", "more")], "Sin takes longer"),
        ([node("Cos", "x", "r"), node("ReduceSum", "r", "more")], "Cos takes longer"),
        ([node("Tan", "x", "r"), node("ReduceSum", "r", "more")], "Tan takes longer"),
        *(
            ([node(name, "x", "r"), node("ReduceSum", "r", "more")], f"{name} takes longer")
            for name in ("Acosh", "Asinh", "Atanh", "Cosh", "Sinh", "ReduceLogSumExp")
        ),
        ([node("Pow", "three x", "r"), node("ReduceSum", "r", "more")], "Pow takes longer"),
        ([*LENGTH, node("Gather", "weights length", "r")], "an index, at the operator Gather,"),
        (
            [*LENGTH, node("GatherElements", "minus length", "r")],
            "GatherElements, .* probabilities",
        ),
        ([*LENGTH, node("GatherND", "minus length", "r")], "GatherND"),
        ([*LENGTH, node("ScatterElements", "minus length one", "r")], "ScatterElements"),
        ([*LENGTH, node("ScatterND", "minus length one", "r")], "ScatterND"),
        ([node("Cast", "x", "r", to=TensorProto.STRING)], "texts"),
        ([node("Constant", "", "s", value_string="0"), node("CastLike", "x s", "r")], "texts"),
        ([node("FusedMatMul", "x weights", "more", domain="com.microsoft")], "com.microsoft.Fused"),
        ([learned("TreeEnsembleRegressor", "more")], "ai.onnx.ml.Tree"),
        ([learned("SVMClassifier", "label more")], "ai.onnx.ml.SVMClassifier"),
        ([learned("SVMRegressor", "more")], "ai.onnx.ml.SVMRegressor"),
        ([learned("LinearClassifier", "l more", classlabels_strings=["a", "b"])], "texts"),
    ],
)
def test_a_model_whose_time_is_known_to_tell_records_apart_is_refused_at_a_site(
    nodes: list[onnx.NodeProto], says: str
) -> None:
    content = model_of(added(*nodes), domains=("com.microsoft", "ai.onnx.ml"))
    with pytest.raises(ModelNotLoadable, match=says):
        site_network(content, "float32")


def test_operators_out_of_order_are_followed_all_the_same() -> None:
    late = [node("ConstantOfShape", "length", "l"), *reversed(LENGTH)]
    with pytest.raises(ModelNotLoadable, match="ConstantOfShape"):
        site_network(model_of(added(*late)), "float32")


def test_a_model_that_hides_operators_in_functions_is_refused_at_a_site() -> None:
    inner = [node("RandomNormalLike", "a", "b")]
    imports = [helper.make_opsetid("", 17)]
    hidden = helper.make_function("own", "Plain", ["a"], ["b"], inner, imports)
    used = [node("Plain", "x", "r", domain="own"), node("ReduceSum", "r", "more")]
    content = model_of(added(*used), domains=("own",), functions=[hidden])
    onnx_network(content, "float32")(records(1))  # it would run
    with pytest.raises(ModelNotLoadable, match="functions"):
        site_network(content, "float32")


def test_a_file_that_calls_its_integers_floats_is_not_believed() -> None:
    model = onnx.load_model_from_string(model_of(added(*LENGTH, node("Div", "length minus", "l"))))
    model.graph.value_info.append(helper.make_tensor_value_info("length", TensorProto.FLOAT, [1]))
    with pytest.raises(ModelNotLoadable, match="Div"):
        site_network(model.SerializeToString(), "float32")


def test_a_model_that_merely_gives_no_numbers_or_mixes_is_one_that_can_be_run() -> None:
    for content in (mixing(), failing(), failing("no distribution")):
        site_network(content, "float32")(records(1) * 0)


def test_a_model_that_would_stop_at_some_records_with_an_error_is_refused_at_a_site() -> None:
    with pytest.raises(ModelNotLoadable, match="Clip keeps within it"):
        site_network(failing("error"), "float32")


@pytest.mark.parametrize("written", ["initializer", "value", "value_int"])
def test_a_constant_table_may_be_looked_up_by_an_index_that_is_clipped_to_it(written: str) -> None:
    bounding = [node("Clip", "index zero high", "within")]
    if written != "initializer":
        last = {"value": onnx.numpy_helper.from_array(np.array(2))}
        constant = last if written == "value" else {"value_int": 2}
        bounding = [
            node("Constant", "", "top", **constant),
            node("Clip", "index zero top", "within"),
        ]
    network = site_network(looked_up(*bounding, index="within"), "float32")
    features = records(1)
    for far in (-np.inf, -1e30, -1, 0, 2, 3, 1e30, np.inf, np.nan):
        features[0, 1] = far
        assert network(features).shape == (1, 2)


@pytest.mark.parametrize(
    ("bounding", "index"),
    [
        ([], "index"),
        ([node("Clip", "index minus high", "within")], "within"),
        ([node("Clip", "index zero beyond", "within")], "within"),  # the rows are 0, 1 and 2
        ([node("Clip", "index high zero", "within")], "within"),
        ([node("Clip", "index zero", "within")], "within"),
        ([node("Clip", "index zero index", "within")], "within"),
        ([node("Relu", "index", "within")], "within"),
        (
            [  # a feature that is NaN stays NaN, and then is a number far outside
                node("Clip", "feature nothing three", "clipped"),
                node("Cast", "clipped", "within", to=TensorProto.INT64),
            ],
            "within",
        ),
    ],
)
def test_an_index_that_may_be_out_of_range_is_refused(
    bounding: list[onnx.NodeProto], index: str
) -> None:
    with pytest.raises(ModelNotLoadable, match="index, at the operator Gather"):
        site_network(looked_up(*bounding, index=index), "float32")


def test_a_lookup_along_an_axis_that_a_table_does_not_have_is_refused() -> None:
    index = node("Cast", "x", "index", to=TensorProto.INT64), node("Clip", "index zero high", "c")
    model = model_of(added(*index, node("Gather", "weights c", "more", axis=5)))
    with pytest.raises(ModelNotLoadable, match="index, at the operator Gather"):
        operators.check_operators(onnx.load_from_string(model))


def test_a_power_with_a_constant_exponent_can_be_run() -> None:
    nodes = added(node("Pow", "x three", "r"), node("ReduceSum", "r", "more"))
    site_network(model_of(nodes), "float32")(records(1))


@pytest.mark.parametrize(
    "nodes",
    [
        [node("Div", "least minus", "q")],
        [node("Div", "least zero", "q")],
        [node("Mod", "least minus", "q")],
        [node("Shape", "x", "s"), node("Sub", "s s", "z"), node("Div", "s z", "q")],
    ],
)
def test_a_division_of_integers_that_ended_the_process_is_refused(
    nodes: list[onnx.NodeProto], tmp_path: Path
) -> None:
    cast = node("Cast", "q", "f", to=TensorProto.FLOAT)
    file = tmp_path / "deadly.onnx"
    file.write_bytes(model_of(added(*nodes, cast, node("ReduceSum", "f", "more"))))
    ended = subprocess.run(
        [sys.executable, "-c", LOADING, str(file)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 0
    assert "no positive constant" in ended.stdout


def test_a_model_with_two_constants_of_one_name_is_refused() -> None:
    nodes = [node("Div", "least one", "q"), node("Cast", "q", "more", to=TensorProto.FLOAT)]
    model = onnx.load_model_from_string(model_of(added(*nodes)))
    site_network(model.SerializeToString(), "float32")
    second = onnx.numpy_helper.from_array(np.array([-1]), "one")
    model.graph.initializer.append(second)  # which is the one that would be taken
    with pytest.raises(ModelNotLoadable, match="defines a value twice"):
        site_network(model.SerializeToString(), "float32")


def test_a_constant_that_would_be_in_another_file_is_not_looked_for() -> None:
    nodes = [node("Div", "least one", "q"), node("Cast", "q", "more", to=TensorProto.FLOAT)]
    model = onnx.load_model_from_string(model_of(added(*nodes)))
    (held,) = (each for each in model.graph.initializer if each.name == "one")
    held.ClearField("raw_data")
    held.data_location = TensorProto.EXTERNAL
    held.external_data.add(key="location", value="elsewhere")
    with pytest.raises(ModelNotLoadable, match="external data"):
        site_network(model.SerializeToString(), "float32")


class Convolutions(torch.nn.Module):
    """Usual layers for images."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(
            *(torch.nn.Conv2d(1, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.SiLU()),
            *(torch.nn.MaxPool2d(2), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten()),
            *(torch.nn.Dropout(), torch.nn.Linear(4, 3)),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        larger = torch.nn.functional.interpolate(x.reshape(-1, 1, 4, 8), size=x.shape[2])
        logits: torch.Tensor = self.layers(larger)
        return logits


class Transformer(torch.nn.Module):
    """Attention over four tokens and one more."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Parameter(torch.zeros(1, 1, 8))
        layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, activation="gelu")
        self.encoder = torch.nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        tokens = torch.cat([self.first.expand(x.shape[0], -1, -1), x], 1)
        mask = torch.nn.Transformer.generate_square_subsequent_mask(5)
        logits: torch.Tensor = self.encoder(tokens, mask)[:, 0, :3]
        scaled: torch.Tensor = logits / logits.norm(dim=1, keepdim=True)
        return scaled


class Recurrent(torch.nn.Module):
    """The last step of an LSTM."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.LSTM(8, 3, 2, batch_first=True, bidirectional=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.layer(x)[0][:, -1, :3]
        return logits


class Embedding(torch.nn.Module):
    """Rows of a table, by features that are clipped to it."""

    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Parameter(torch.rand(5, 3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows: torch.Tensor = self.table[(9 * x[:, 0]).long().clamp(0, len(self.table) - 1)]
        return rows.sum(1)


@pytest.mark.filterwarnings("ignore")  # of torch, about its older exporter
@pytest.mark.parametrize("module", [Convolutions, Transformer, Recurrent, Embedding])
def test_usual_models_run_at_a_site_as_torch_exports_them(
    tmp_path: Path, module: type[torch.nn.Module]
) -> None:
    network, file = module().eval(), tmp_path / "usual.onnx"
    example = torch.rand(2, 4, 8)
    any_number = {"x": {0: "n"}}
    torch.onnx.export(
        network, (example,), file, dynamo=False, input_names=["x"], dynamic_axes=any_number
    )
    found = site_network(file.read_bytes(), "float32")(example[:1].numpy())
    with torch.no_grad():
        expected = network(example[:1])
    torch.testing.assert_close(torch.from_numpy(found), expected, rtol=1e-4, atol=1e-5)
