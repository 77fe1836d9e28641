"""The command line, run in this process, for a site that was handed everything offline."""

import json
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from tacit.protocol import Campaign, Invitation, SigningKey
from tacit_client.cli.app import app

TOKEN = "tacit_" + "t" * 43

_RESERVED = socket.socket()
_RESERVED.bind(("127.0.0.1", 0))
NOWHERE = f"http://127.0.0.1:{_RESERVED.getsockname()[1]}"
"""A port that is taken and does not listen: nobody answers there."""


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """The one object on standard output; anything else there is an error."""
        found = json.loads(self.out)
        assert isinstance(found, dict)
        return found


def tacit(*arguments: str | Path, home: Path | None = None, stdin: str | None = None) -> Ended:
    """Run a command with this home."""
    words = [str(argument) for argument in arguments]
    place = [] if home is None else ["--home", str(home)]
    result = CliRunner().invoke(app, [*words, *place], input=stdin)
    return Ended(result.exit_code, result.stdout, result.stderr)


@dataclass(frozen=True)
class Site:
    """A home, an invitation and a signed campaign, as files."""

    home: Path
    invitation: Path
    signed: Path
    campaign: Campaign

    @classmethod
    def invited(
        cls,
        folder: Path,
        campaign: Campaign,
        *,
        url: str = NOWHERE,
        key: SigningKey | None = None,
    ) -> "Site":
        """A site with its invitation, which names `key` instead of the signer's if it is given."""
        signer = SigningKey.generate()
        invitation = Invitation(
            url=url,
            key=(key or signer).fingerprint,
            campaign=campaign.digest,
            site="north",
            token=TOKEN,
        )
        paths = folder / "invitation.txt", folder / "campaign.json"
        paths[0].write_text(invitation.to_text() + "\n")
        paths[1].write_text(signer.sign(campaign).model_dump_json())
        return cls(folder / "home", *paths, campaign)

    def run(self, *arguments: str | Path, stdin: str | None = None) -> Ended:
        """Run a command in this site's home."""
        return tacit(*arguments, home=self.home, stdin=stdin)

    def join(self, *options: str) -> Ended:
        """Join without network, letting probabilities leave."""
        carried = ("--campaign", self.signed, "--may-leave", "probabilities")
        return self.run("join", self.invitation, *carried, *options)
