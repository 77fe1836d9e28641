"""The command line `tacit-aggregator`."""

import time
from importlib.metadata import version
from typing import Annotated

import typer

from tacit.command import forgiving_stdout
from tacit_aggregator.console import (
    CommandGroup,
    Json,
    print_json,
    say,
    settings_from_environment,
)
from tacit_aggregator.database.engine import Database
from tacit_aggregator.keys import commands as keys
from tacit_aggregator.keys import service as keys_service
from tacit_aggregator.keys.secret import ensure_secret, secret_file
from tacit_aggregator.models import commands as models
from tacit_aggregator.tokens import commands as tokens

app = typer.Typer(
    cls=CommandGroup,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,  # its picture of an error could show what is secret
    help="Tacit's aggregator. Settings are environment variables that begin with TACIT_.",
)
app.add_typer(tokens.app, name="token")
app.add_typer(keys.app, name="keys")
app.add_typer(models.app, name="models")
app.command("invite")(tokens.invite_command)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(version("tacit-aggregator"))
        raise typer.Exit


@app.callback()
def options(
    _: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Run the aggregator, and look after its tokens, keys and models."""


@app.command()
def serve() -> None:
    """Serve the API until SIGTERM or Ctrl-C; a second signal quits at once."""
    # The other commands need not wait until the server is imported.
    from tacit_aggregator.serving import serve as serve_until_stopped  # noqa: PLC0415 -- loads slowly

    serve_until_stopped(settings_from_environment())


@app.command()
def migrate(as_json: Json = False) -> None:
    """Make the database, or bring it to this version; make a first signing key if there is none."""
    from tacit_aggregator.database.migrate import upgrade  # noqa: PLC0415 -- loads slowly

    settings = settings_from_environment()
    secret_file(settings)  # refuses now, rather than after the database was changed
    upgrade(settings.database_url, settings.database_wait_seconds)
    new_secret = ensure_secret(settings)
    secret = keys_service.read_secret(settings)
    database = Database(settings.database_url)
    try:
        with database.transaction("make first key") as connection:
            database.keep_others_out(connection, keys_service.CHANGING_KEYS)
            new_key = keys_service.ensure_key(connection, secret, time.time())
            (key, *_) = keys_service.fingerprints(connection)
    finally:
        database.close()
    if as_json:
        print_json({"key": key, "new_key": new_key is not None, "new_secret": _text(new_secret)})
        return
    say("The database is ready.")
    if new_secret is not None:
        say(f"A secret that encrypts signing keys was made: {new_secret}. Keep a copy of it.")
    if new_key is not None:
        say(f"A signing key was made. Tell owners its fingerprint: {new_key}")


def _text(value: object | None) -> str | None:
    return None if value is None else str(value)


def main() -> None:
    """Run the command line."""
    with forgiving_stdout():
        app()
