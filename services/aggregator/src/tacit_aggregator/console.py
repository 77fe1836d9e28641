"""What all commands share: settings, the database, output for people and for programs."""

import json
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError
from sqlalchemy.exc import DBAPIError
from typer.core import TyperGroup

from tacit.protocol.wire import field_errors
from tacit_aggregator.database.engine import Database
from tacit_aggregator.database.schema import check_current
from tacit_aggregator.errors import OperatorError
from tacit_aggregator.settings import Settings

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


@dataclass(frozen=True)
class Workplace:
    """The settings and the migrated database that a command works with."""

    settings: Settings
    database: Database


class CommandGroup(TyperGroup):
    """Commands whose errors an operator can put right end with a sentence and exit code 1."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except OperatorError as error:
            sentence = str(error)
        except DBAPIError as error:
            sentence = _of_database(error)
        typer.echo(sentence, err=True)
        raise typer.Exit(1)


def settings_from_environment() -> Settings:
    """The settings, or a sentence about the variable that is wrong."""
    try:
        return Settings()
    except ValidationError as error:
        wrong = (f"TACIT_{field.upper()}: {what}" for field, what in field_errors(error))
        raise OperatorError("; ".join(wrong) + ".") from None


@contextmanager
def workplace() -> Iterator[Workplace]:
    """Settings and database for one command; refuses a database that is not migrated."""
    settings = settings_from_environment()
    database = Database(settings.database_url)
    try:
        check_current(database)
        yield Workplace(settings, database)
    finally:
        database.close()


def say(sentence: str) -> None:
    """Tell a person, on standard error, so that standard output holds the data alone."""
    typer.echo(sentence, err=True)


def print_json(data: Any) -> None:
    """One line of JSON."""
    typer.echo(json.dumps(data, ensure_ascii=False))


def print_table(rows: Sequence[Mapping[str, Any]], nothing: str) -> None:
    """Rows in columns that are never cut off, since digests are copied from them."""
    if not rows:
        say(nothing)
        return
    names = list(rows[0])
    cells = [names, *([_cell(row[name]) for name in names] for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(names))]
    for line in cells:
        padded = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        typer.echo("  ".join(padded).rstrip())


def write_private(file: Path, text: str) -> None:
    """Write a new file that only its owner may read."""
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as opened:
            opened.write(text)
    except FileExistsError:
        raise OperatorError(f"{file} exists already; name another file.") from None
    except OSError as error:
        raise OperatorError(f"{file} cannot be written: {error.strerror}.") from None


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _of_database(error: DBAPIError) -> str:
    code = getattr(error.orig, "sqlite_errorcode", None)
    if code == sqlite3.SQLITE_BUSY:
        return "Another process is writing to the database; try again."
    # Further lines of PostgreSQL's may show the row that it is about.
    reason = str(error.orig).strip().partition("\n")[0].rstrip(".")
    return f"The database cannot be used: {reason}."
