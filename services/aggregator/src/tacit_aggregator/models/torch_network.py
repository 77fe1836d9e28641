"""Models that torch runs: exported programs, and weights for a module the operator has."""

import importlib
import io
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import numpy as np
import safetensors.torch
import torch
from numpy.typing import NDArray

from tacit.errors import ModelMisbehaved, ModelNotLoadable


def pt2_network(content: bytes) -> Callable[[NDArray[Any]], NDArray[Any]]:
    """An exported program. Loading it can run anything: it is the operator's own file."""
    with _without_words_of("torch.export"):
        program = torch.export.load(io.BytesIO(content))
    return _as_function(program.module())


def safetensors_network(
    content: bytes, module_name: str | None
) -> Callable[[NDArray[Any]], NDArray[Any]]:
    """Weights, loaded into the module that the operator named; all of them must fit."""
    module = _made(module_name)
    module.load_state_dict(safetensors.torch.load(content), strict=True)
    return _as_function(module.eval())


@contextmanager
def _without_words_of(name: str) -> Iterator[None]:
    """It logs the traceback of an error before it raises it, and we have a sentence for that."""
    logger = logging.getLogger(name)
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


def _made(name: str | None) -> torch.nn.Module:
    place, _, factory = (name or "").partition(":")
    if not place or not factory:
        raise ModelNotLoadable(
            "Weights need the module that they are for: --module package.module:factory"
        )
    try:
        module = getattr(importlib.import_module(place), factory)()
    except (ImportError, AttributeError) as error:
        raise ModelNotLoadable(f"{name} cannot be imported here: {error}.") from None
    if not isinstance(module, torch.nn.Module):
        raise ModelNotLoadable(f"{name} must make a torch module when it is called.")
    return module


def _as_function(module: torch.nn.Module) -> Callable[[NDArray[Any]], NDArray[Any]]:
    def run(batch: NDArray[Any]) -> NDArray[Any]:
        with torch.inference_mode():
            outputs = module(torch.from_numpy(batch))
        if not isinstance(outputs, torch.Tensor):
            raise ModelMisbehaved("The model must give one tensor.")
        wide = outputs.to(dtype=torch.float64, device="cpu")
        return cast("NDArray[np.float64]", wide.numpy())

    return run
