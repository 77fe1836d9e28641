"""From a registered model to a function.

torch and onnxruntime are imported when a file that needs them is loaded: they are large.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit import errors, networks
from tacit.networks import Network, Predictor, rows_at_once, zeros
from tacit_aggregator.models.registered import ModelMisbehaved, ModelNotLoadable, RegisteredModel

__all__ = ["Predictor", "load", "probe", "rows_at_once", "zeros"]


def load(model: RegisteredModel) -> Predictor:
    """The model as a function of any number of records; refuses a file that has changed.

    Features reach a torch module in the declared type, and it casts them as it likes; an ONNX
    model gets them in its input's type or as float32.
    """
    run = networks.predictor(model, _network(model))

    def predict(features: NDArray[Any]) -> NDArray[np.float64]:
        with _told_to_the_operator():
            return run(features)

    return predict


def probe(model: RegisteredModel) -> int:
    """Run a model on zeros, in the smallest and the largest batch: its number of classes."""
    network = _network(model)
    with _told_to_the_operator():
        return networks.probe(model, network)


@contextmanager
def _told_to_the_operator() -> Iterator[None]:
    """The core's errors about models as those that the operator must put right."""
    try:
        yield
    except errors.ModelNotLoadable as error:
        raise ModelNotLoadable(str(error)) from None
    except errors.ModelMisbehaved as error:
        raise ModelMisbehaved(str(error)) from None


def _network(model: RegisteredModel) -> Network:
    content = model.content()
    try:
        with _told_to_the_operator():
            return _made(model, content)
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


def _made(model: RegisteredModel, content: bytes) -> Network:
    if model.format == "onnx":
        from tacit.networks.onnx_file import onnx_network  # noqa: PLC0415 -- loads slowly

        return onnx_network(content, model.dtype)
    from tacit_aggregator.models import torch_network  # noqa: PLC0415 -- loads slowly

    if model.format == "pt2":
        return torch_network.pt2_network(content)
    return torch_network.safetensors_network(content, model.module)


def _first_line(error: Exception) -> str:
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0][:300]
