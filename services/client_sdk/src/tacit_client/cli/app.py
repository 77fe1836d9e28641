"""All commands, put together."""

import sys
from io import TextIOWrapper
from typing import Annotated

import typer

from tacit.command import forgiving_stdout
from tacit_client.cli.commands import (
    campaign,
    contribute,
    demo,
    doctor,
    join,
    plan,
    status,
    threshold,
)
from tacit_client.cli.exits import MEANINGS
from tacit_client.cli.versions import versions

_EXITS = "; ".join(f"{code.value} {meaning}" for code, meaning in MEANINGS.items())

app = typer.Typer(
    name="tacit",
    help="Calibrate a classifier on labels that nobody discloses.",
    epilog=f"Exit codes: {_EXITS}.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for _commands in (demo, join, contribute, status, doctor, plan, campaign, threshold):
    _commands.register(app)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(", ".join(f"{name} {version}" for name, version in versions().items()))
        raise typer.Exit


@app.callback()
def _tacit(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print versions.", callback=_version, is_eager=True),
    ] = False,
) -> None:
    """Calibrate a classifier on labels that nobody discloses."""


def main() -> None:
    """Run the command that the arguments name."""
    if isinstance(sys.stderr, TextIOWrapper):
        sys.stderr.reconfigure(errors="replace")
    with forgiving_stdout():
        app()
