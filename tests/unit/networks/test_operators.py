"""What a site runs does the same work for every record, and gives the same each time."""

from pathlib import Path

import onnx
import pytest
import torch
from onnx import TensorProto, defs, helper

from tacit.errors import ModelNotLoadable
from tacit.networks import operators
from tacit.networks.onnx_file import onnx_network, site_network
from tests.support.hostile_models import added, failing, mixing, model_of, node, records

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


def counted() -> onnx.GraphProto:
    """A branch that gives 3."""
    output = helper.make_tensor_value_info("branch", TensorProto.FLOAT, [])
    return helper.make_graph([node("Identity", "three", "branch")], "branch", [], [output])


def test_every_operator_of_onnx_was_thought_about() -> None:
    every = {schema.name for schema in defs.get_all_schemas_with_history() if not schema.domain}
    known = operators.UNCONDITIONAL | operators.UNEVEN | operators.SHAPED.keys()
    assert every - known == REFUSED & every
    assert not operators.UNCONDITIONAL & operators.SHAPED.keys()


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
        ([node("Cast", "x", "r", to=TensorProto.STRING)], "texts"),
        ([node("Constant", "", "s", value_string="0"), node("CastLike", "x s", "r")], "texts"),
        ([node("FusedMatMul", "x weights", "more", domain="com.microsoft")], "com.microsoft.Fused"),
        ([node("TreeEnsembleRegressor", "x", "more", domain="ai.onnx.ml")], "ai.onnx.ml.Tree"),
    ],
)
def test_a_model_whose_work_could_tell_records_apart_is_refused_at_a_site(
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


def test_a_model_that_merely_fails_or_mixes_is_one_that_can_be_run() -> None:
    for content in (mixing(), failing(), failing("error"), failing("no distribution")):
        site_network(content, "float32")(records(1) * 0)


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


@pytest.mark.filterwarnings("ignore")  # of torch, about its older exporter
@pytest.mark.parametrize("module", [Convolutions, Transformer, Recurrent])
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
