"""The command `keys`."""

import time

import typer

from tacit_aggregator.clock import moment
from tacit_aggregator.console import (
    CommandGroup,
    Json,
    print_json,
    print_table,
    say,
    workplace,
)
from tacit_aggregator.keys import service

app = typer.Typer(
    cls=CommandGroup, no_args_is_help=True, help="The keys that campaigns are signed with."
)


@app.command("list")
def list_keys(as_json: Json = False) -> None:
    """List the fingerprints of all keys, the one in use first."""
    with workplace() as place, place.database.read() as connection:
        found = service.list_keys(connection)
    rows = [
        {
            "fingerprint": key.fingerprint,
            "state": "in use" if key.retired_at is None else "retired",
            "created": moment(key.created_at),
            "retired": None if key.retired_at is None else moment(key.retired_at),
        }
        for key in found
    ]
    if as_json:
        print_json(rows)
    else:
        print_table(rows, "There are no keys; make one: tacit-aggregator migrate")


@app.command("rotate")
def rotate(as_json: Json = False) -> None:
    """Make a new key for new campaigns; those that exist keep theirs."""
    with workplace() as place:
        secret = service.read_secret(place.settings)
        with place.database.transaction("rotate key") as connection:
            place.database.keep_others_out(connection, service.CHANGING_KEYS)
            fingerprint = service.rotate(connection, secret, time.time())
    if as_json:
        print_json({"fingerprint": fingerprint, "state": "in use"})
        return
    typer.echo(fingerprint)
    say("New campaigns are signed with this key. Tell owners its fingerprint.")
