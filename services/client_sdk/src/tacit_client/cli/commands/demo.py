"""`tacit demo`: the whole of it on this machine."""

from importlib.util import find_spec
from typing import Annotated

import typer

from tacit_client.cli.errors import MissingPart
from tacit_client.cli.registering import Run, command

_NEEDED = ("onnx", "onnxruntime", "sklearn", "tacit_aggregator", "torch")


def demo(
    run: Run,
    *,
    epsilon: Annotated[float, typer.Option(help="How much a report may reveal.")] = 3.0,
    alpha: Annotated[float, typer.Option(help="The share of sets that may miss.")] = 0.1,
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave the service up until Ctrl-C; say how to use it.")
    ] = False,
) -> None:
    """Run two campaigns with five sites on this machine, and show what comes out."""
    if any(find_spec(package) is None for package in _NEEDED):
        raise MissingPart(
            "The demo needs the aggregator, torch, onnxruntime and scikit-learn: install"
            " tacit-client[demo]."
        )
    from tacit_client.demo import run as run_demo  # noqa: PLC0415 -- other commands do without

    run_demo(run.screen, epsilon=epsilon, alpha=alpha, keep=keep)


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "demo")(demo)
