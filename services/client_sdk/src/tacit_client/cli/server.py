"""Which server an owner speaks with, and with which token."""

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from tacit_client import Owner
from tacit_client.cli.errors import BadFile, BadOption
from tacit_client.cli.registering import Run
from tacit_client.transport import Network

_PANEL = "Server"
_REMEMBERED = "server.json"
_DIGEST = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True)
class Server:
    """Address, pinned key and where the token is; the token is never on the command line."""

    url: Annotated[
        str | None,
        typer.Option("--url", help="Its address.", envvar="TACIT_URL", rich_help_panel=_PANEL),
    ] = None
    key: Annotated[
        str | None,
        typer.Option(
            "--key",
            help="Fingerprint of its signing key.",
            envvar="TACIT_KEY",
            rich_help_panel=_PANEL,
        ),
    ] = None
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file",
            help="A file with the owner's token; or put it into TACIT_TOKEN.",
            rich_help_panel=_PANEL,
        ),
    ] = None

    @contextmanager
    def owner(self, run: Run) -> Iterator[Owner]:
        """Speak as the owner to a server that has the pinned key; remember both once it worked."""
        known = self.or_remembered(run)
        url, key = _needed(known.url, "--url"), checked_key(_needed(known.key, "--key"))
        with Owner(url, self._token(), key=key, network=Network(ca_bundle=run.ca_bundle)) as owner:
            owner.check_key()
            yield owner
        known._remember(run)

    def or_remembered(self, run: Run) -> "Server":
        """These settings, and where they say nothing those that worked the last time."""
        try:
            last = json.loads((run.home.path / _REMEMBERED).read_text(encoding="utf-8"))
            url, key = str(last["url"]), str(last["key"])
        except (OSError, ValueError, KeyError, TypeError):
            return self
        if self.url not in (None, url):
            return self  # another server has another key
        return Server(self.url or url, self.key or key, self.token_file)

    def _remember(self, run: Run) -> None:
        run.home.create()
        settings = json.dumps({"url": self.url, "key": self.key})
        (run.home.path / _REMEMBERED).write_text(settings + "\n", encoding="utf-8")

    def _token(self) -> str:
        if self.token_file is None:
            token = os.environ.get("TACIT_TOKEN", "")
        else:
            try:
                token = self.token_file.read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError):
                raise BadFile(f"The token file {self.token_file} cannot be read.") from None
        if not re.fullmatch(r"[!-~]+", token.strip()):
            raise BadOption(
                "This needs the owner's token: put it into a file that --token-file names, or into"
                " the environment variable TACIT_TOKEN."
            )
        return token.strip()


def checked_key(key: str) -> str:
    """A fingerprint, if it can be one."""
    if not _DIGEST.fullmatch(key):
        raise BadOption("A key's fingerprint is 64 hexadecimal digits; ask the operator for it.")
    return key


def _needed(value: str | None, option: str) -> str:
    if value is None:
        raise BadOption(
            f"Say {option}; the operator tells the server's address and the fingerprint of its"
            " key. Once they have worked they are remembered."
        )
    return value
