"""`tacit plan`: what n records are worth, before anyone sends anything."""

import json
from itertools import product
from typing import Annotated

import typer

from tacit.planning import recommend
from tacit.planning.table import as_json, as_text
from tacit_client.cli.errors import BadOption
from tacit_client.cli.registering import Run, command
from tacit_client.cli.terms import whole_number


def plan(
    run: Run,
    *,
    n: Annotated[str, typer.Option(help="Calibration records; several: 1000,1e4.")] = (
        "1000,10000,100000"
    ),
    k: Annotated[str, typer.Option(help="Classes; several: 10,100.")] = "10,100",
    epsilon: Annotated[str, typer.Option(help="Privacy per record; several: 1,2,4.")] = "1,2,4",
    alpha: Annotated[float, typer.Option(help="1 - the wanted coverage.")] = 0.1,
    delta: Annotated[float, typer.Option(help="Probability to miss it.")] = 0.05,
    tau: Annotated[float, typer.Option(help="Width at which S stops halving.")] = 0.001,
    width: Annotated[float, typer.Option(help="Width of the score's range.")] = 1.0,
    features_stay: Annotated[
        bool, typer.Option("--features-stay", help="Features may not leave their site.")
    ] = False,
) -> None:
    """Say what n records are worth at a privacy ε, and which method suits."""
    combinations = product(_whole(k), _numbers(epsilon), _whole(n))
    plans = [
        recommend(
            records,
            classes,
            privacy,
            alpha,
            delta,
            tau=tau,
            width=width,
            features_may_leave=not features_stay,
        )
        for classes, privacy, records in combinations
    ]
    run.screen.show({"plans": json.loads(as_json(plans))}, as_text(plans))


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "plan")(plan)


def _whole(listed: str) -> list[int]:
    return [whole_number(text.strip()) for text in listed.split(",")]


def _numbers(listed: str) -> list[float]:
    try:
        return [float(text) for text in listed.split(",")]
    except ValueError:
        raise BadOption(f"{listed} is not a number, nor several separated by commas.") from None
