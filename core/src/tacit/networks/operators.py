"""Which ONNX operators a model may have that a site runs on its records. Needs the extra `onnx`.

A campaign's model comes from whoever asks, and ε is of the bit that a record answers with. How long
a site was at its records may be seen from outside, so operators are refused that are known to take
a different time for different records, or to stop at some: control flow (If, Loop, Scan), shapes
that depend on values (NonZero, Compress, Unique, NonMaxSuppression), work that does (TopK,
RoiAlign, trees, support vectors; Mod, powers, sines and their kin of what a record holds), and
indices that do, which end a run where they are out of range. Refused are also random numbers
(RandomNormal, Multinomial, Bernoulli, Dropout in training), sequences, texts, operators of other
domains, and what is new: known are those below, which layers, convolutions and attention are
exported to.

This protects no time. What is left differs too, by processors, infinities and very small numbers
for instance, and not all of it was measured: whoever cannot accept that runs no campaign's model.
"""

from collections import Counter
from collections.abc import Iterator

import numpy as np
import onnx

from tacit.errors import ModelNotLoadable

_REDUCTIONS = "L1 L2 LogSum Max Mean Min Prod Sum SumSquare"

UNCONDITIONAL = frozenset(
    """
    Abs Acos Add And ArgMax ArgMin Asin Atan AveragePool BatchNormalization BitCast BitShift
    BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Cast CastLike Ceil Celu Clip Concat Constant Conv
    ConvInteger ConvTranspose DepthToSpace DequantizeLinear Det Div Dropout
    DynamicQuantizeLinear Einsum Elu Equal Erf Exp EyeLike Flatten Floor Gelu Gemm
    GlobalAveragePool GlobalLpPool GlobalMaxPool Greater GreaterOrEqual GroupNormalization
    HardSigmoid HardSwish Hardmax Identity InstanceNormalization IsInf IsNaN LRN
    LayerNormalization LeakyRelu Less LessOrEqual Log LogSoftmax LpNormalization LpPool MatMul
    MatMulInteger Max MaxPool Mean MeanVarianceNormalization Min Mish Mul Neg Not Or PRelu
    QLinearConv QLinearMatMul QuantizeLinear RMSNormalization Reciprocal Relu Round Selu Shape
    Shrink Sigmoid Sign Size Softmax Softplus Softsign SpaceToDepth Sqrt Sub Sum SwiGLU Swish
    Tanh ThresholdedRelu Transpose Where Xor
    """.split()  # noqa: SIM905 -- a list of names, to be read
)
"""Operators whose work and shapes follow from the shapes of their inputs, as far as is known."""

_EVERY = slice(0, None)

UNEVEN: dict[str, slice] = {
    **dict.fromkeys(("Acosh", "Asinh", "Atanh", "Cosh", "Sinh"), _EVERY),
    **dict.fromkeys(("Cos", "Mod", "ReduceLogSumExp", "Sin", "Tan"), _EVERY),
    "Pow": slice(1, None),
}
"""Operators that work longer for some numbers than for others, and for which of their inputs: these
must be constants, or follow from shapes."""

INDEXED = dict.fromkeys(
    ("Gather", "GatherElements", "GatherND", "Scatter", "ScatterElements", "ScatterND"),
    slice(1, 2),
)
"""Operators that stop with an error where an index is out of range, and by which of their inputs
they are told it: it must be a constant, follow from shapes, or be known to be in range."""

SHAPED: dict[str, slice] = {
    **dict.fromkeys((f"Reduce{name}" for name in _REDUCTIONS.split()), slice(1, None)),
    **dict.fromkeys(("GRU", "LSTM", "RNN"), slice(4, 5)),
    **dict.fromkeys(("BlackmanWindow", "HammingWindow", "HannWindow"), _EVERY),
    **dict.fromkeys(("ConstantOfShape", "MelWeightMatrix", "Range"), _EVERY),
    **dict.fromkeys(("CenterCropPad", "Col2Im", "CumProd", "CumSum", "DFT"), slice(1, None)),
    **dict.fromkeys(("Expand", "OneHot", "Pad", "Reshape", "Resize"), slice(1, None)),
    **dict.fromkeys(("ReverseSequence", "STFT", "Slice", "Split", "Squeeze"), slice(1, None)),
    **dict.fromkeys(("Tile", "Trilu", "Unsqueeze", "Upsample"), slice(1, None)),
    "RotaryEmbedding": slice(3, None),
    "Attention": slice(6, None),
}
"""Operators that are told shapes, axes or lengths too, and by which of their inputs: these must be
constants, or follow from shapes."""

LEARNED = frozenset(
    """
    Binarizer FeatureVectorizer Imputer LinearClassifier LinearRegressor Normalizer Scaler
    """.split()  # noqa: SIM905 -- a list of names, to be read
)
"""Operators of the domain ai.onnx.ml whose work follows from the shapes of inputs, as far as is
known."""

_PLAIN = UNCONDITIONAL | UNEVEN.keys() | INDEXED.keys() | SHAPED.keys()
_OPERATORS = {"": _PLAIN, "ai.onnx": _PLAIN, "ai.onnx.ml": LEARNED}
_NONE = slice(0, 0)
_TEXT = onnx.TensorProto.STRING
_WRITTEN = ("classlabels_strings", "value_string", "value_strings")
_TEXTS = "The model makes texts of numbers, or has texts of its own; export it without."
_OTHERWISE = "Or score the records before, and give probabilities or scores."
_OF_SHAPES = ("Shape", "Size")
_FLOATS = (
    onnx.TensorProto.FLOAT,
    onnx.TensorProto.DOUBLE,
    onnx.TensorProto.FLOAT16,
    onnx.TensorProto.BFLOAT16,
)


def check_operators(model: onnx.ModelProto) -> None:
    """Refuse a model whose work is known to tell records apart, or whose outputs are random."""
    if model.functions:
        raise ModelNotLoadable(
            "The model defines functions of its own; inline them:"
            " onnx.inliner.inline_local_functions."
        )
    for node in model.graph.node:
        _check_known(node)
    _refuse_second_definitions(model.graph)
    _refuse_texts(model.graph)
    read = _values_of_a_record(model.graph)
    constants = _constants(model.graph)
    bounded = frozenset(_bounded_indices(model.graph, constants))
    for node in model.graph.node:
        _check_inputs(node, read, bounded)
    _refuse_integer_division(model, read, constants)


def _check_inputs(node: onnx.NodeProto, read: frozenset[str], bounded: frozenset[str]) -> None:
    def is_read(inputs: dict[str, slice]) -> bool:
        return not read.isdisjoint(node.input[inputs.get(node.op_type, _NONE)])

    if is_read(UNEVEN):
        raise ModelNotLoadable(
            f"In the model the operator {_shown(node)} takes longer for some values of a record"
            f" than for others; export it without. {_OTHERWISE}"
        )
    if is_read(INDEXED) and node.output[0] not in bounded:
        raise ModelNotLoadable(
            f"In the model the values of a record decide on an index, at the operator"
            f" {_shown(node)}, which stops where there is none; a table may be looked up by Gather"
            f" with an index that Clip keeps within it. {_OTHERWISE}"
        )
    if is_read(SHAPED):
        raise ModelNotLoadable(
            f"In the model the values of a record decide on a shape, at the operator"
            f" {_shown(node)}; shapes must be the same for every record. {_OTHERWISE}"
        )


def _check_known(node: onnx.NodeProto) -> None:
    inner = any(held.HasField("g") or len(held.graphs) for held in node.attribute)
    if inner or node.op_type not in _OPERATORS.get(node.domain, frozenset()):
        raise ModelNotLoadable(
            f"The model has the operator {_shown(node)}, and sites run only those that are known,"
            " take about the same time for every record and give the same outputs each time; export"
            f" it without. {_OTHERWISE}"
        )
    if node.op_type == "Dropout" and any(node.input[2:]):
        raise ModelNotLoadable(
            "The model has Dropout that may be training, which is random; export it in evaluation"
            " mode."
        )


def _refuse_texts(graph: onnx.GraphProto) -> None:
    """How long a number takes to be written, or read, depends on its digits."""
    tensors = [*graph.initializer]
    for node in graph.node:
        for held in node.attribute:
            tensors += [held.t, *held.tensors]
            written = node.op_type == "Cast" and held.name == "to" and held.i == _TEXT
            if written or held.name in _WRITTEN:
                raise ModelNotLoadable(_TEXTS)
    if any(tensor.data_type == _TEXT for tensor in tensors):
        raise ModelNotLoadable(_TEXTS)


def _values_of_a_record(graph: onnx.GraphProto) -> frozenset[str]:
    """The names of values that depend on more of a record than its shape."""
    read = {given.name for given in graph.input} - {held.name for held in graph.initializer}
    known = -1
    while known != len(read):  # once more than needed if nodes are in order, as they should be
        known = len(read)
        for node in graph.node:
            if node.op_type not in _OF_SHAPES and not read.isdisjoint(node.input):
                read.update(name for name in node.output if name)
    return frozenset(read)


def _refuse_second_definitions(graph: onnx.GraphProto) -> None:
    """Of two constants of one name onnxruntime takes the last, of which nothing would be known."""
    names = Counter(held.name for held in graph.initializer)
    names.update(held.values.name for held in graph.sparse_initializer)
    names.update(name for node in graph.node for name in node.output if name)
    if any(count > 1 for count in names.values()):
        raise ModelNotLoadable("The model defines a value twice; export it again.")


def _constants(graph: onnx.GraphProto) -> dict[str, onnx.TensorProto]:
    """The tensors of the model, by their names."""
    found = {held.name: held for held in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant" and len(node.attribute) == 1:
            (held,) = node.attribute
            if held.name == "value":
                found[node.output[0]] = held.t
            elif held.name in ("value_int", "value_ints"):
                value = np.array(held.i if held.name == "value_int" else held.ints, dtype=np.int64)
                found[node.output[0]] = onnx.numpy_helper.from_array(value)
    return found


def _bounded_indices(
    graph: onnx.GraphProto, constants: dict[str, onnx.TensorProto]
) -> Iterator[str]:
    """What is looked up in constant tables by indices that Clip keeps within them.

    Only right after Clip: a number that is cast afterwards, NaN for instance, may be any.
    """
    clips = {node.output[0]: node for node in graph.node if node.op_type == "Clip"}
    for node in graph.node:
        if node.op_type != "Gather" or node.input[1] not in clips:
            continue
        table = constants.get(node.input[0])
        bounds = [constants.get(name) for name in clips[node.input[1]].input[1:]]
        if table is None or len(bounds) != 2 or None in bounds:
            continue
        low, high = (onnx.numpy_helper.to_array(bound) for bound in bounds if bound is not None)
        axis = next((held.i for held in node.attribute if held.name == "axis"), 0)
        size = table.dims[axis] if -len(table.dims) <= axis < len(table.dims) else 0
        if (low >= 0).all() and (low <= high).all() and (high < size).all():
            yield node.output[0]


def _refuse_integer_division(
    model: onnx.ModelProto, read: frozenset[str], constants: dict[str, onnx.TensorProto]
) -> None:
    """Some quotients, by zero or of the least number by -1, end the whole process."""
    dividing = [node for node in model.graph.node if node.op_type in ("Div", "Mod")]
    floats = frozenset(_floats(model)) if dividing else frozenset()
    for node in dividing:
        if not floats.isdisjoint(node.input):
            continue
        if not read.isdisjoint(node.input):
            raise ModelNotLoadable(
                f"The model divides integers of a record, at the operator {_shown(node)}; cast"
                f" them to float32 before. {_OTHERWISE}"
            )
        divisor = constants.get(node.input[1])
        if divisor is None or not (onnx.numpy_helper.to_array(divisor) >= 1).all():
            raise ModelNotLoadable(
                f"The model divides integers by what is no positive constant, at the operator"
                f" {_shown(node)}; export it with one."
            )


def _floats(model: onnx.ModelProto) -> Iterator[str]:
    """The names of values that are known to be floating-point numbers."""
    bare = onnx.ModelProto()
    bare.CopyFrom(model)
    del bare.graph.value_info[:]  # what the file says of its own values is not believed
    graph = onnx.shape_inference.infer_shapes(bare).graph
    for value in (*graph.input, *graph.value_info):
        if value.type.tensor_type.elem_type in _FLOATS:
            yield value.name
    for held in graph.initializer:
        if held.data_type in _FLOATS:
            yield held.name


def _shown(node: onnx.NodeProto) -> str:
    return f"{node.domain}.{node.op_type}" if node.domain else str(node.op_type)
