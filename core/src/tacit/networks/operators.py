"""Which ONNX operators a model may have that a site runs on its records. Needs the extra `onnx`.

A campaign's model comes from whoever asks, and ε is of the bit that a record answers with: nothing
else that can be seen from outside may depend on a record. So a model must do the same work for
every record, in tensors of the same shapes, and give the same outputs whenever it is run. Refused
are therefore control flow (If, Loop, Scan), shapes that depend on values (NonZero, Compress,
Unique, NonMaxSuppression), work that does (TopK, RoiAlign, trees; Mod, Sin, Cos and Tan of what a
record holds, which take many times longer for large numbers), random numbers (RandomNormal,
Multinomial, Bernoulli, Dropout in training), sequences, texts, operators of other domains, and
what is new: known are those below, which layers, convolutions and attention are exported to. What
is left are small differences, of processors and very small numbers.
"""

from collections.abc import Iterator

import onnx

from tacit.errors import ModelNotLoadable

_REDUCTIONS = "L1 L2 LogSum LogSumExp Max Mean Min Prod Sum SumSquare"

UNCONDITIONAL = frozenset(
    """
    Abs Acos Acosh Add And ArgMax ArgMin Asin Asinh Atan Atanh AveragePool BatchNormalization
    BitCast BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Cast CastLike Ceil Celu Clip Concat
    Constant Conv ConvInteger ConvTranspose Cosh DepthToSpace DequantizeLinear Det Div Dropout
    DynamicQuantizeLinear Einsum Elu Equal Erf Exp EyeLike Flatten Floor Gather GatherElements
    GatherND Gelu Gemm GlobalAveragePool GlobalLpPool GlobalMaxPool Greater GreaterOrEqual
    GroupNormalization HardSigmoid HardSwish Hardmax Identity InstanceNormalization IsInf IsNaN LRN
    LayerNormalization LeakyRelu Less LessOrEqual Log LogSoftmax LpNormalization LpPool MatMul
    MatMulInteger Max MaxPool Mean MeanVarianceNormalization Min Mish Mul Neg Not Or PRelu Pow
    QLinearConv QLinearMatMul QuantizeLinear RMSNormalization Reciprocal Relu Round Scatter
    ScatterElements ScatterND Selu Shape Shrink Sigmoid Sign Sinh Size Softmax Softplus Softsign
    SpaceToDepth Sqrt Sub Sum SwiGLU Swish Tanh ThresholdedRelu Transpose Where Xor
    """.split()  # noqa: SIM905 -- a list of names, to be read
)
"""Operators whose work and shapes follow from the shapes of their inputs."""

UNEVEN = frozenset({"Cos", "Mod", "Sin", "Tan"})
"""Operators that work longer for some numbers than for others: only for constants and shapes."""

SHAPED: dict[str, slice] = {
    **dict.fromkeys((f"Reduce{name}" for name in _REDUCTIONS.split()), slice(1, None)),
    **dict.fromkeys(("GRU", "LSTM", "RNN"), slice(4, 5)),
    **dict.fromkeys(("BlackmanWindow", "HammingWindow", "HannWindow"), slice(0, None)),
    **dict.fromkeys(("ConstantOfShape", "MelWeightMatrix", "Range"), slice(0, None)),
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
    Binarizer FeatureVectorizer Imputer LinearClassifier LinearRegressor Normalizer SVMClassifier
    SVMRegressor Scaler
    """.split()  # noqa: SIM905 -- a list of names, to be read
)
"""Operators of the domain ai.onnx.ml whose work and shapes follow from the shapes of inputs."""

_OPERATORS = {
    "": UNCONDITIONAL | UNEVEN | SHAPED.keys(),
    "ai.onnx": UNCONDITIONAL | UNEVEN | SHAPED.keys(),
    "ai.onnx.ml": LEARNED,
}
_TEXT = onnx.TensorProto.STRING
_TEXTS = "The model makes texts of numbers, or has texts of its own; export it without."
_OF_SHAPES = ("Shape", "Size")
_FLOATS = (
    onnx.TensorProto.FLOAT,
    onnx.TensorProto.DOUBLE,
    onnx.TensorProto.FLOAT16,
    onnx.TensorProto.BFLOAT16,
)


def check_operators(model: onnx.ModelProto) -> None:
    """Refuse a model whose work could tell records apart, or whose outputs are random."""
    if model.functions:
        raise ModelNotLoadable(
            "The model defines functions of its own; inline them:"
            " onnx.inliner.inline_local_functions."
        )
    for node in model.graph.node:
        _check_known(node)
    _refuse_texts(model.graph)
    read = _values_of_a_record(model.graph)
    for node in model.graph.node:
        if node.op_type in UNEVEN and not read.isdisjoint(node.input):
            raise ModelNotLoadable(
                f"In the model the operator {_shown(node)} takes longer for some values of a record"
                " than for others; export it without."
            )
        if any(name in read for name in node.input[SHAPED.get(node.op_type, slice(0, 0))]):
            raise ModelNotLoadable(
                f"In the model the values of a record decide on a shape, at the operator"
                f" {_shown(node)}; shapes must be the same for every record."
            )
    _refuse_integer_division(model, read)


def _check_known(node: onnx.NodeProto) -> None:
    inner = any(held.HasField("g") or len(held.graphs) for held in node.attribute)
    if inner or node.op_type not in _OPERATORS.get(node.domain, frozenset()):
        raise ModelNotLoadable(
            f"The model has the operator {_shown(node)}, and sites run only those that do the same"
            " work for every record and give the same outputs each time; export it without."
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
            if written or held.name in ("value_string", "value_strings"):
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


def _refuse_integer_division(model: onnx.ModelProto, read: frozenset[str]) -> None:
    """Some quotients, like that of the least number and -1, end the whole process."""
    dividing = [
        node
        for node in model.graph.node
        if node.op_type == "Div" and not read.isdisjoint(node.input)
    ]
    floats = frozenset(_floats(model)) if dividing else frozenset()
    for node in dividing:
        if floats.isdisjoint(node.input):
            raise ModelNotLoadable(
                f"The model divides integers of a record, at the operator {_shown(node)}; cast"
                " them to float32 before."
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
