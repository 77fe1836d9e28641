"""From a registered model to a function.

torch and onnxruntime are imported when a file that needs them is loaded: they are large.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidProbabilities
from tacit.scores import check_probabilities, softmax
from tacit_aggregator.models.registered import ModelMisbehaved, ModelNotLoadable, RegisteredModel

Predictor = Callable[[NDArray[Any]], NDArray[np.float64]]
"""Features, one record per row, to the probability of each class."""
Network = Callable[[NDArray[Any]], NDArray[Any]]
"""A batch in the declared type to the model's outputs."""

_MOST_ROWS = 512
_MOST_BATCH_BYTES = 2**24
"""Of the features as float32; activations take many times that."""
_MOST_SCORES = 2**22
"""Numbers that the model gives at once; they are copied some times."""


def load(model: RegisteredModel) -> Predictor:
    """The model as a function of any number of records; refuses a file that has changed.

    Features reach a torch module in the declared type, and it casts them as it likes; an ONNX
    model gets them in its input's type or as float32.
    """
    network = _network(model)

    def predict(features: NDArray[Any]) -> NDArray[np.float64]:
        probabilities = np.empty((len(features), model.classes))
        step = rows_at_once(model)
        for start in range(0, len(features), step):
            rows = slice(start, start + step)
            probabilities[rows] = _probabilities(model, network, features[rows])
        return probabilities

    return predict


def probe(model: RegisteredModel) -> int:
    """Run a model on zeros, in the smallest and the largest batch: its number of classes."""
    network = _network(model)
    (alone,) = _outputs(model, network, zeros(model, 1))
    if len(alone) < 2:
        raise ModelMisbehaved("The model must tell at least two classes apart.")
    most = rows_at_once(replace(model, classes=len(alone)))
    together = _outputs(model, network, zeros(model, most))
    if together.shape[1:] != alone.shape or not np.allclose(together, alone, rtol=1e-2, atol=1e-3):
        raise ModelMisbehaved(
            "The model gives equal records different outputs; export it in evaluation mode."
        )
    _normalized(model, together)
    return len(alone)


def rows_at_once(model: RegisteredModel) -> int:
    """How many records are handed to the model together."""
    one = int(np.prod(model.shape, dtype=np.int64)) * max(np.dtype(model.dtype).itemsize, 4)
    by_classes = _MOST_SCORES // max(1, model.classes)
    return max(1, min(_MOST_ROWS, _MOST_BATCH_BYTES // one, by_classes))


def zeros(model: RegisteredModel, rows: int) -> NDArray[Any]:
    """Records that every model takes."""
    return np.zeros((rows, *model.shape), dtype=np.dtype(model.dtype))


def _network(model: RegisteredModel) -> Network:
    content = model.content()
    try:
        if model.format == "onnx":
            from tacit_aggregator.models.onnx_network import onnx_network  # noqa: PLC0415 -- loads slowly

            return onnx_network(content, model)
        from tacit_aggregator.models import torch_network  # noqa: PLC0415 -- loads slowly

        if model.format == "pt2":
            return torch_network.pt2_network(content)
        return torch_network.safetensors_network(content, model.module)
    except ModelNotLoadable:
        raise
    except ModuleNotFoundError as error:
        raise ModelNotLoadable(
            f"Loading the model needs {error.name}; for ONNX install tacit-aggregator[onnx]."
        ) from None
    except Exception as error:
        raise ModelNotLoadable(
            f"The model {model.name} cannot be loaded as {model.format}: {_first_line(error)}"
        ) from error


def _probabilities(
    model: RegisteredModel, network: Network, features: NDArray[Any]
) -> NDArray[np.float64]:
    outputs = _outputs(model, network, features)
    if outputs.shape[1] != model.classes:
        raise ModelMisbehaved(
            f"The model gave {outputs.shape[1]} classes, not {model.classes} as when registered."
        )
    return _normalized(model, outputs)


def _outputs(model: RegisteredModel, network: Network, features: NDArray[Any]) -> NDArray[Any]:
    # A copy in native byte order that the model may write to.
    batch = np.array(features, dtype=np.dtype(model.dtype), order="C")
    try:
        outputs = network(batch)
    except (ModelMisbehaved, MemoryError):  # too little memory now says nothing of the records
        raise
    except Exception as error:
        # Only what kind of error: its text, and what it was raised from, may show features.
        raise ModelMisbehaved(
            f"The model failed on {len(batch)} records ({type(error).__name__}); it must take any"
            f" number of records of shape {list(model.shape)} and type {model.dtype}."
        ) from None
    if outputs.ndim != 2 or len(outputs) != len(batch):
        raise ModelMisbehaved(
            f"The model gave outputs of shape {list(outputs.shape)} for {len(batch)} records;"
            " it must give one number per record and class."
        )
    if not np.isfinite(outputs).all():
        raise ModelMisbehaved("The model gave outputs that are not finite.")
    return outputs


def _normalized(model: RegisteredModel, outputs: NDArray[Any]) -> NDArray[np.float64]:
    try:
        return softmax(outputs) if model.outputs == "logits" else check_probabilities(outputs)
    except InvalidProbabilities as error:
        raise ModelMisbehaved(
            f"The model's outputs are not {model.outputs} ({error}); if they are logits, register"
            " it with --outputs logits."
        ) from None


def _first_line(error: Exception) -> str:
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0][:300]
