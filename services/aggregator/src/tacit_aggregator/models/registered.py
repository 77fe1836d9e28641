"""What is known of a registered model; imports no database, so that workers can use it."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tacit.protocol.columns import Dtype
from tacit_aggregator.errors import OperatorError

Format = Literal["pt2", "onnx", "safetensors"]
Outputs = Literal["logits", "probabilities"]


class ModelError(OperatorError):
    """A model cannot be used."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or type(self).__doc__)


class ModelChanged(ModelError):
    """The file of a registered model is gone or has changed; put the original back."""


class ModelNotLoadable(ModelError):
    """A model's file cannot be loaded."""


class ModelMisbehaved(ModelError):
    """A model did not give finite numbers, one per record and class."""


@dataclass(frozen=True)
class RegisteredModel:
    """A model that the operator trusts, and what it takes and gives."""

    digest: str
    """SHA-256 of the file, by which campaigns name the model."""
    name: str
    format: Format
    path: str
    module: str | None
    """Of safetensors: package.module:callable that makes the module the weights are for."""
    dtype: Dtype
    shape: tuple[int, ...]
    """Of one record."""
    classes: int
    outputs: Outputs
    for_sites: bool = False
    """Whether the file may leave the server, for the sites of score campaigns."""

    def content(self) -> bytes:
        """The file's bytes, if they are still those that were registered."""
        try:
            content = Path(self.path).read_bytes()
        except OSError as error:
            raise self.unreadable(error) from None
        if hashlib.sha256(content).hexdigest() != self.digest:
            raise self.changed()
        return content

    def unreadable(self, error: OSError) -> ModelChanged:
        """The error for a file that cannot be read."""
        return ModelChanged(
            f"The file of model {self.name} cannot be read: {error.strerror}."
            " Put the original back."
        )

    def changed(self) -> ModelChanged:
        """The error for a file that has other bytes now."""
        return ModelChanged(
            f"The file of model {self.name} has changed since it was registered."
            " Put the original back, or register the new one for new campaigns."
        )
