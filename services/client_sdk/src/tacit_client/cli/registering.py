"""How a function becomes a command: options it shares with others, and what errors become."""

import dataclasses
import inspect
import os
import shlex
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from tacit_client.cli.exits import ExitCode, exit_code, sentence
from tacit_client.cli.output import Screen
from tacit_client.home import ENVIRONMENT, Home

_PANEL = "Everywhere"
Command = Callable[..., None]


@dataclass(frozen=True)
class Run:
    """One run of a command: where it prints, where the ledger is, whom it trusts."""

    json: Annotated[
        bool, typer.Option("--json", help="One JSON object as output.", rich_help_panel=_PANEL)
    ] = False
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Only results and errors.", rich_help_panel=_PANEL)
    ] = False
    home_path: Annotated[
        Path | None,
        typer.Option(
            "--home",
            help="Where policy and ledger are.",
            envvar="TACIT_HOME",
            show_default=False,
            rich_help_panel=_PANEL,
        ),
    ] = None
    ca_bundle: Annotated[
        Path | None,
        typer.Option(
            "--ca-bundle",
            help="Certificates to trust instead of the system's.",
            envvar="TACIT_CA_BUNDLE",
            show_default=False,
            rich_help_panel=_PANEL,
        ),
    ] = None

    @cached_property
    def screen(self) -> Screen:
        """Where everything is printed."""
        return Screen(json=self.json, quiet=self.quiet)

    @property
    def home(self) -> Home:
        """The client's directory."""
        return Home.of(self.home_path)

    def spelled(self, words: str) -> str:
        """One of our commands as it has to be typed to speak of the same home."""
        named = self.home_path is not None and str(self.home_path) != os.environ.get(ENVIRONMENT)
        return f"tacit {words}" + (f" --home {shlex.quote(str(self.home_path))}" if named else "")


def command(app: typer.Typer, name: str) -> Callable[[Command], Command]:
    """Register a function whose first parameter is a `Run`; other dataclasses become options too.

    Whatever it raises becomes one sentence on standard error and an exit code.
    """

    def register(function: Command) -> Command:
        parameters = list(inspect.signature(function).parameters.values())
        groups = {
            p.name: p.annotation for p in parameters if dataclasses.is_dataclass(p.annotation)
        }

        def callback(**given: Any) -> None:
            arguments = {group: _taken(kind, given) for group, kind in groups.items()}
            run = next(value for value in arguments.values() if isinstance(value, Run))
            _guarded(run, lambda: function(**arguments, **given))

        callback.__name__ = function.__name__
        callback.__doc__ = function.__doc__
        made = _signature(parameters, groups)
        callback.__signature__ = made  # type: ignore[attr-defined]  # inspect reads it
        callback.__annotations__ = {p.name: p.annotation for p in made.parameters.values()}
        app.command(name)(callback)
        return function

    return register


def _signature(parameters: list[inspect.Parameter], groups: Mapping[str, Any]) -> inspect.Signature:
    """The function's own parameters, then the fields of its groups of options."""
    own = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for parameter in parameters
        if parameter.name not in groups
    ]
    shared = [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=field.default,
            annotation=get_type_hints(kind, include_extras=True)[field.name],
        )
        for kind in reversed(list(groups.values()))
        for field in dataclasses.fields(kind)
    ]
    return inspect.Signature([*own, *shared])


def _taken(kind: Any, given: dict[str, Any]) -> Any:
    return kind(**{field.name: given.pop(field.name) for field in dataclasses.fields(kind)})


def _guarded(run: Run, work: Callable[[], None]) -> None:
    try:
        work()
    except (typer.Exit, BrokenPipeError):
        raise
    except (Exception, KeyboardInterrupt) as error:
        code = exit_code(error)
        if os.environ.get("TACIT_DEBUG") == "1":
            traceback.print_exc()
        run.screen.complain(f"tacit: {sentence(error)}")
        if run.json:
            run.screen.show(
                {"error": type(error).__name__, "message": sentence(error), "exit_code": int(code)}
            )
        raise typer.Exit(int(code)) from None


def finish(code: ExitCode) -> None:
    """End the command with a code other than 0 after its result was shown."""
    raise typer.Exit(int(code))
