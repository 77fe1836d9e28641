"""The invitation: all that a site needs to join, handed over outside the network."""

import base64
import binascii
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, ValidationError

from tacit.errors import InvalidDocument
from tacit.protocol.versions import FIRST, check_version
from tacit.protocol.wire import Digest, Name, Wire, described, parsed

PREFIX = "tacit-invitation."

Url = Annotated[str, StringConstraints(pattern=r"^https?://[!-~]{1,2000}$")]
Token = Annotated[str, StringConstraints(pattern=r"^tacit_[A-Za-z0-9_-]{43}$")]


class Invitation(Wire):
    """Where the campaign is, which key signs it, which document it is, and a token to speak with.

    It holds a secret, the token: whoever has it can contribute in the site's name.
    """

    tacit: Literal["invitation"] = "invitation"
    version: Literal["1.0"] = FIRST
    url: Url
    key: Digest
    """The fingerprint of the key that must have signed everything."""
    campaign: Digest
    site: Name
    token: Annotated[Token, Field(repr=False)]

    def to_text(self) -> str:
        """One line that can be pasted or saved to a file."""
        content = base64.urlsafe_b64encode(self.model_dump_json().encode()).decode("ascii")
        return PREFIX + content.rstrip("=")

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Read what `to_text` wrote; what is wrong is said without showing the text."""
        line = text.strip()
        if not line.startswith(PREFIX):
            raise InvalidDocument(f"An invitation is one line that begins with {PREFIX}")
        encoded = line.removeprefix(PREFIX)
        try:
            content = base64.b64decode(encoded + "=" * (-len(encoded) % 4), "-_", validate=True)
        except (binascii.Error, ValueError):
            raise InvalidDocument("The invitation is incomplete or was changed.") from None
        check_version(parsed(content).get("version"))
        try:
            return cls.model_validate_json(content)
        except ValidationError as error:
            raise InvalidDocument(f"This is not a valid invitation: {described(error)}") from None
