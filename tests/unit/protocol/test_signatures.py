"""Signatures: only the pinned key, over exactly these bytes, for exactly this kind of document."""

import base64
import pickle

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tacit.errors import InvalidDocument, Untrusted, WrongDigest, WrongKey, WrongSignature
from tacit.protocol import LabelCampaign, Signed, SigningKey, Threshold, fingerprint
from tests.unit.protocol.examples import campaign, respelled, threshold

KEY, OTHER = SigningKey.generate(), SigningKey.generate()
CAMPAIGN = campaign()
SIGNED = KEY.sign(CAMPAIGN)


def signed_anyhow(kind: str, payload: bytes) -> Signed:
    signature = KEY.private.sign(b"tacit signature v1\n" + kind.encode() + b"\n" + payload)
    return Signed(
        payload=payload.decode(),
        public_key=SIGNED.public_key,
        signature=base64.b64encode(signature).decode(),
    )


def test_a_signed_document_opens_with_the_pinned_key_and_digest() -> None:
    read = Signed.model_validate_json(SIGNED.model_dump_json())
    opened = read.open(LabelCampaign, key=KEY.fingerprint, digest=CAMPAIGN.digest)
    assert opened.document == CAMPAIGN
    assert opened.digest == CAMPAIGN.digest
    assert read.key == KEY.fingerprint == fingerprint(KEY.public_bytes)


@given(st.integers(0, len(SIGNED.payload.encode()) - 1), st.integers(1, 127))
def test_no_byte_of_the_document_can_change(position: int, change: int) -> None:
    payload = bytearray(SIGNED.payload.encode())
    payload[position] ^= change
    changed = SIGNED.model_copy(update={"payload": payload.decode("latin-1")})
    with pytest.raises(WrongSignature):
        changed.open(LabelCampaign, key=KEY.fingerprint)


@given(st.integers(0, 63), st.integers(1, 255))
def test_no_byte_of_the_signature_can_change(position: int, change: int) -> None:
    signature = bytearray(base64.b64decode(SIGNED.signature))
    signature[position] ^= change
    changed = SIGNED.model_copy(update={"signature": base64.b64encode(signature).decode()})
    with pytest.raises(WrongSignature):
        changed.open(LabelCampaign, key=KEY.fingerprint)


def test_another_key_is_refused_though_its_signature_is_good() -> None:
    with pytest.raises(WrongKey):
        OTHER.sign(CAMPAIGN).open(LabelCampaign, key=KEY.fingerprint)


def test_another_document_of_the_same_key_is_refused() -> None:
    with pytest.raises(WrongDigest):
        KEY.sign(campaign()).open(LabelCampaign, key=KEY.fingerprint, digest=CAMPAIGN.digest)


def test_a_signature_of_one_kind_does_not_stand_under_another() -> None:
    with pytest.raises(WrongSignature):
        KEY.sign(threshold(CAMPAIGN)).open(LabelCampaign, key=KEY.fingerprint)
    with pytest.raises(WrongSignature):
        signed_anyhow("threshold", CAMPAIGN.to_bytes()).open(LabelCampaign, key=KEY.fingerprint)
    with pytest.raises(InvalidDocument):
        signed_anyhow("threshold", CAMPAIGN.to_bytes()).open(Threshold, key=KEY.fingerprint)


def test_a_good_signature_does_not_make_a_bad_document_good() -> None:
    for payload in (respelled(CAMPAIGN, alpha=2), CAMPAIGN.to_bytes() + b" ", b"[]", b""):
        with pytest.raises(InvalidDocument):
            signed_anyhow("campaign", payload).open(LabelCampaign, key=KEY.fingerprint)


@pytest.mark.parametrize("field", ["public_key", "signature"])
@pytest.mark.parametrize("value", ["", "A", "AA==", "AAA=A", "====", "AAAA" * 1000])
def test_keys_and_signatures_of_a_wrong_size_are_refused_with_an_error_of_tacit(
    field: str, value: str
) -> None:
    changed = SIGNED.model_copy(update={field: value})
    with pytest.raises((Untrusted, InvalidDocument)):
        changed.open(LabelCampaign, key=KEY.fingerprint)


def test_a_public_key_of_a_wrong_size_cannot_be_pinned() -> None:
    short = SIGNED.model_copy(update={"public_key": "AAAA"})
    with pytest.raises(WrongSignature):
        short.open(LabelCampaign, key=fingerprint(bytes(3)))


def test_text_that_is_no_unicode_is_refused_with_an_error_of_tacit() -> None:
    broken = SIGNED.model_copy(update={"payload": "\ud800"})
    with pytest.raises(WrongSignature):
        broken.open(LabelCampaign, key=KEY.fingerprint)


@pytest.mark.parametrize("value", ["-_", "AA AA", "AA\n", "é", "A==="])
def test_what_is_no_base64_is_no_signed_document(value: str) -> None:
    fields = SIGNED.model_dump()
    for field in ("public_key", "signature"):
        with pytest.raises(ValidationError):
            Signed.model_validate(fields | {field: value})


def test_a_signing_key_does_not_show_itself() -> None:
    private = KEY.private.private_bytes_raw()
    for shown in (repr(KEY), str(KEY), f"{KEY}"):
        assert private.hex() not in shown
        assert KEY.fingerprint in shown
    with pytest.raises(TypeError):
        pickle.dumps(KEY)


def test_the_same_key_signs_the_same_document_the_same_way() -> None:
    again = SigningKey(Ed25519PrivateKey.from_private_bytes(KEY.private.private_bytes_raw()))
    assert again.sign(CAMPAIGN) == SIGNED
