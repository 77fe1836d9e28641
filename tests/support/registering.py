"""Models, registered as an operator does it."""

import time
from pathlib import Path

from tacit.protocol.columns import Dtype
from tacit_aggregator.database.engine import Database
from tacit_aggregator.models.service import Format, RegisteredModel, examine, register
from tacit_aggregator.settings import Settings


def registered(
    settings: Settings,
    file: Path,
    *,
    dtype: Dtype,
    shape: tuple[int, ...],
    module: str | None = None,
    for_sites: bool = True,
) -> RegisteredModel:
    """A model that gives logits, in the database of these settings; of ONNX, for sites too."""
    formats: dict[str, Format] = {".pt2": "pt2", ".onnx": "onnx", ".safetensors": "safetensors"}
    model = examine(
        file,
        name=file.stem,
        format=formats[file.suffix],
        module=module,
        dtype=dtype,
        shape=shape,
        outputs="logits",
        for_sites=for_sites and file.suffix == ".onnx",
    )
    database = Database(settings.database_url)
    with database.transaction("test model") as connection:
        register(connection, model, time.time())
    database.close()
    return model
