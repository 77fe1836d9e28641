"""Ed25519 signatures over documents, and the one key that a party has pinned."""

import base64
import binascii
from dataclasses import dataclass
from typing import Annotated, Generic, Self, TypeVar

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from pydantic import StringConstraints

from tacit.errors import InvalidDocument, WrongDigest, WrongKey, WrongSignature
from tacit.protocol.digests import sha256_hex
from tacit.protocol.wire import Digest, SignedDocument, Wire

_CONTEXT = b"tacit signature v1\n"

Document = TypeVar("Document", bound=SignedDocument)
Base64 = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9+/]*={0,2}$")]


def fingerprint(public_key: bytes) -> str:
    """What a key is known by: SHA-256 of its 32 bytes."""
    return sha256_hex(public_key)


def signed_bytes(kind: str, payload: bytes) -> bytes:
    """What is signed: no signature of one kind of document can stand under another."""
    return _CONTEXT + kind.encode() + b"\n" + payload


class Signed(Wire):
    """A document's bytes as text, with the signature over them and the key that made it."""

    payload: str
    """The canonical JSON of the document; its UTF-8 bytes are what digest and signature cover."""
    public_key: Base64
    signature: Base64

    @property
    def key(self) -> Digest:
        """The fingerprint of the key that this says it was signed with."""
        return fingerprint(_decoded(self.public_key))

    def open(
        self, kind: type[Document], *, key: Digest, digest: Digest | None = None
    ) -> "Opened[Document]":
        """The document inside, if the pinned key signed it and it has the expected digest."""
        public_key = _decoded(self.public_key)
        if fingerprint(public_key) != key:
            raise WrongKey
        try:
            payload = self.payload.encode()
            verifier = Ed25519PublicKey.from_public_bytes(public_key)
            verifier.verify(_decoded(self.signature), signed_bytes(kind.kind, payload))
        except (InvalidSignature, ValueError) as error:
            raise WrongSignature from error
        found = sha256_hex(payload)
        if digest is not None and found != digest:
            raise WrongDigest
        return Opened(kind.from_bytes(payload), found)


@dataclass(frozen=True)
class Opened(Generic[Document]):
    """A document whose signature was verified, and its digest."""

    document: Document
    digest: Digest


@dataclass(frozen=True)
class SigningKey:
    """A private key that signs documents; never shown."""

    private: Ed25519PrivateKey

    @classmethod
    def generate(cls) -> Self:
        """A new key from the operating system's generator."""
        return cls(Ed25519PrivateKey.generate())

    def __repr__(self) -> str:
        return f"SigningKey({self.fingerprint})"

    @property
    def public_bytes(self) -> bytes:
        """The 32 bytes of the public key."""
        return self.private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)

    @property
    def fingerprint(self) -> Digest:
        """What the key is known by."""
        return fingerprint(self.public_bytes)

    def sign(self, document: SignedDocument) -> Signed:
        """The document with its signature."""
        payload = document.to_bytes()
        return Signed(
            payload=payload.decode(),
            public_key=_encoded(self.public_bytes),
            signature=_encoded(self.private.sign(signed_bytes(document.kind, payload))),
        )


def _encoded(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidDocument("A key or a signature is not base64.") from error
