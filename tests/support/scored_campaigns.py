"""Campaigns whose features a tiny model scores."""

import secrets
import time
from pathlib import Path

import numpy as np
import safetensors.torch
from numpy.typing import NDArray

from tacit.protocol import Column, Features, Upload
from tacit_aggregator.database.engine import Database
from tacit_aggregator.models.service import RegisteredModel, examine, register
from tacit_aggregator.settings import Settings
from tests.support.tiny_models import CLASSES, SHAPE, Linear

LABELS = np.arange(6, dtype=np.uint8) % CLASSES


def registered(settings: Settings, file: Path, module: str | None = None) -> RegisteredModel:
    """A model that the operator has registered."""
    model = examine(
        file,
        name="tiny",
        format="pt2" if module is None else "safetensors",
        module=module,
        dtype="uint8",
        shape=SHAPE,
        outputs="logits",
    )
    database = Database(settings.database_url)
    with database.transaction("test model") as connection:
        register(connection, model, time.time())
    database.close()
    return model


def features_of(generator: np.random.Generator, n: int = 6) -> NDArray[np.uint8]:
    """Features of no meaning, none of them bright."""
    return generator.integers(0, 255, (n, *SHAPE)).astype(np.uint8)


def upload_of(
    campaign: str, features: NDArray[np.uint8], labels: NDArray[np.uint8] = LABELS
) -> Upload:
    """An upload of these records."""
    return Upload(
        campaign=campaign,
        upload=secrets.token_hex(16),
        labels=Column.of(labels),
        features=Column.of(features),
    )


def evidence_of(model: RegisteredModel) -> Features:
    """What a campaign asks for that uses this model."""
    return Features(model=model.digest, dtype=model.dtype, shape=model.shape)


def save_weights(file: Path) -> Path:
    """The weights of `Linear`."""
    safetensors.torch.save_file(Linear().state_dict(), file)
    return file
