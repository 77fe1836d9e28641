"""Registering models, from the server's own file system and never through the API."""

import hashlib
import json
from dataclasses import asdict, replace
from pathlib import Path

from pydantic import ValidationError
from sqlalchemy import Connection

from tacit.protocol import Campaign, Features, LabelCampaign, ScoreCampaign
from tacit.protocol.columns import Dtype
from tacit.protocol.wire import described
from tacit_aggregator.database.rows import AnyRow
from tacit_aggregator.errors import OperatorError
from tacit_aggregator.models import queries
from tacit_aggregator.models.loading import probe
from tacit_aggregator.models.registered import (
    Format,
    ModelChanged,
    ModelError,
    ModelMisbehaved,
    ModelNotLoadable,
    Outputs,
    RegisteredModel,
)
from tacit_aggregator.names import check_name

__all__ = [
    "Format",
    "ModelChanged",
    "ModelError",
    "ModelMisbehaved",
    "ModelNotLoadable",
    "Outputs",
    "RegisteredModel",
    "examine",
    "find",
    "for_sites",
    "list_models",
    "model_of",
    "register",
    "remove",
]


def find(connection: Connection, digest: str) -> RegisteredModel | None:
    """The model with this digest, if the operator registered it."""
    row = queries.by_digest(connection, digest)
    return None if row is None else _model(row)


def list_models(connection: Connection) -> tuple[RegisteredModel, ...]:
    """All models, oldest first."""
    return tuple(_model(row) for row in queries.everything(connection))


def examine(
    path: Path,
    *,
    name: str,
    format: Format,  # noqa: A002 -- the column's name
    module: str | None,
    dtype: Dtype,
    shape: tuple[int, ...],
    outputs: Outputs,
    for_sites: bool = False,
) -> RegisteredModel:
    """Load a model's file and run it on zeros, to learn how many classes it has.

    Needs no database, and may take a while. Loading a .pt2 file runs the code that is in it, so
    that no other format than ONNX may be for sites.
    """
    if for_sites and format != "onnx":
        raise OperatorError("Only ONNX models are sent to sites; other files could run as code.")
    file = path.resolve()
    digest = _digest(file)
    try:
        check_name(name)
        Features(model=digest, dtype=dtype, shape=shape)
    except ValidationError as error:
        raise OperatorError(f"This is not what a model can take: {described(error)}") from None
    unknown_classes = RegisteredModel(
        digest, name, format, str(file), module, dtype, shape, 0, outputs, for_sites
    )
    return replace(unknown_classes, classes=probe(unknown_classes))


def register(connection: Connection, model: RegisteredModel, now: float) -> None:
    """Store what `examine` found; the same model once more changes nothing."""
    known = find(connection, model.digest)
    if known == model:
        return
    if known is not None:
        raise OperatorError(
            f"This file is registered already, as {known.name} and with other settings;"
            f" remove it first: tacit-aggregator models remove {model.digest}"
        )
    values = {**asdict(model), "shape": json.dumps(model.shape), "registered_at": now}
    queries.store(connection, values)


def remove(connection: Connection, prefix: str) -> RegisteredModel:
    """Forget a model by its digest or the beginning of it; not while a campaign needs it."""
    rows = queries.like(connection, prefix) if prefix else ()
    if len(rows) != 1:
        raise OperatorError(
            f"{len(rows) or 'No'} models have a digest that begins like this; see:"
            " tacit-aggregator models list"
        )
    model = _model(rows[0])
    for campaign in queries.unfinished_campaigns(connection):
        if model.digest == _needed(Campaign.from_bytes(campaign.payload.encode())):
            raise OperatorError(
                f"The campaign {campaign.title!r} needs this model until it is closed."
            )
    queries.remove(connection, model.digest)
    return model


def for_sites(connection: Connection, digest: str, owner: str | None) -> RegisteredModel | None:
    """The model with this digest that sites may have; of an owner, if a campaign names it."""
    model = find(connection, digest)
    if model is None or not model.for_sites:
        return None
    if owner is not None:
        named = queries.naming(connection, digest, owner)
        if all(model_of(Campaign.from_bytes(row.payload.encode())) != digest for row in named):
            return None
    return model


def model_of(campaign: Campaign) -> str | None:
    """The digest of the model that sites of this campaign fetch."""
    if isinstance(campaign, ScoreCampaign) and campaign.model is not None:
        return campaign.model.digest
    return None


def _needed(campaign: Campaign) -> str | None:
    """The digest of the model that this server must have for a campaign."""
    if isinstance(campaign, LabelCampaign) and isinstance(campaign.evidence, Features):
        return campaign.evidence.model
    return model_of(campaign)


def _digest(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()
    except OSError as error:
        raise ModelNotLoadable(f"{file} cannot be read: {error.strerror}.") from None


def _model(row: AnyRow) -> RegisteredModel:
    return RegisteredModel(
        digest=row.digest,
        name=row.name,
        format=row.format,
        path=row.path,
        module=row.module,
        dtype=row.dtype,
        shape=tuple(json.loads(row.shape)),
        classes=row.classes,
        outputs=row.outputs,
        for_sites=row.for_sites,
    )
