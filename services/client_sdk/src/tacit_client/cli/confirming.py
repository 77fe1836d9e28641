"""Asking before what cannot be undone."""

import sys
from typing import Annotated

import typer

from tacit_client.cli.errors import BadOption
from tacit_client.cli.exits import ExitCode
from tacit_client.cli.registering import Run, finish

Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


def confirm(run: Run, question: str, yes: bool) -> None:
    """Go on if the person says so; where nobody can be asked, --yes must have said it."""
    if yes:
        return
    if run.json or not sys.stdin.isatty():
        raise BadOption(f"{question} This cannot be undone: say --yes if you mean it.")
    if not typer.confirm(f"{question} This cannot be undone. Go on?", err=True):
        finish(ExitCode.OK)
