"""The command `models`."""

import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from tacit.protocol.columns import Dtype
from tacit_aggregator.console import CommandGroup, Json, print_json, print_table, say, workplace
from tacit_aggregator.errors import OperatorError
from tacit_aggregator.models import service
from tacit_aggregator.models.registered import Format, Outputs, RegisteredModel

app = typer.Typer(
    cls=CommandGroup, no_args_is_help=True, help="The models that features are scored with."
)

_FORMATS: dict[str, Format] = {".pt2": "pt2", ".onnx": "onnx", ".safetensors": "safetensors"}


@app.command("add")
def add(  # noqa: PLR0917 -- typer makes them options
    path: Annotated[Path, typer.Argument(help="The model's file; it must stay where it is.")],
    name: Annotated[str, typer.Option(help="What to call it.")],
    dtype: Annotated[Dtype, typer.Option(help="The type of the features.")],
    shape: Annotated[
        str, typer.Option(metavar="N,N,…", help="The shape of one record, like 28,28,3.")
    ],
    outputs: Annotated[Outputs, typer.Option(help="What the model gives.")] = "logits",
    module: Annotated[
        str | None,
        typer.Option(
            metavar="PACKAGE.MODULE:FACTORY",
            help="For safetensors: what makes the torch module that the weights are for.",
        ),
    ] = None,
    for_sites: Annotated[
        bool,
        typer.Option(
            "--for-sites",
            help="The file may leave this server: any owner may have the sites of a score campaign"
            " fetch and run it. ONNX only.",
        ),
    ] = False,
    model_format: Annotated[
        Format | None, typer.Option("--format", help="By default what the file's name ends with.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Register a model from this machine's files, and run it once on zeros.

    A .pt2 file is code: loading it can do anything that you can do. So is the module that
    safetensors weights are for. Register only what you made yourself or trust as much. ONNX files
    are data, and must be single files.
    """
    with workplace() as place:
        model = service.examine(
            path,
            name=name,
            format=model_format or _format_of(path),
            module=module,
            dtype=dtype,
            shape=_shape(shape),
            outputs=outputs,
            for_sites=for_sites,
        )
        with place.database.transaction("register model") as connection:
            service.register(connection, model, time.time())
    if as_json:
        print_json(_row(model))
        return
    typer.echo(model.digest)
    say(f"{model.name} is registered: it tells {model.classes} classes apart.")


@app.command("list")
def list_models(as_json: Json = False) -> None:
    """List the registered models."""
    with workplace() as place, place.database.read() as connection:
        rows = [_row(model) for model in service.list_models(connection)]
    if as_json:
        print_json(rows)
    else:
        print_table(rows, "There are no models; add one: tacit-aggregator models add")


@app.command("remove")
def remove(
    digest: Annotated[str, typer.Argument(help="The model's digest, or the beginning of it.")],
    as_json: Json = False,
) -> None:
    """Forget a model; its file stays. Not while an open campaign needs it."""
    with workplace() as place, place.database.transaction("remove model") as connection:
        model = service.remove(connection, digest)
    if as_json:
        print_json({"digest": model.digest, "state": "removed"})
    else:
        say(f"{model.name} is forgotten; its file is still there.")


def _format_of(path: Path) -> Format:
    try:
        return _FORMATS[path.suffix.lower()]
    except KeyError:
        raise OperatorError(
            "The file's name does not say what it is; add --format pt2, onnx or safetensors."
        ) from None


def _shape(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(extent) for extent in text.split(",") if extent.strip())
    except ValueError:
        raise typer.BadParameter(
            "A shape is whole numbers with commas, like 28,28,3", param_hint="--shape"
        ) from None


def _row(model: RegisteredModel) -> dict[str, Any]:
    return {**asdict(model), "shape": list(model.shape)}
