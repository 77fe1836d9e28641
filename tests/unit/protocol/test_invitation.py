"""Invitations: one line that holds a secret and never shows it."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tacit.errors import InvalidDocument, TacitError, UpgradeRequired
from tacit.protocol import Invitation
from tacit.protocol.invitation import PREFIX
from tests.unit.protocol.examples import DIGEST

TOKEN = "tacit_" + "k" * 43


def invitation(**fields: Any) -> Invitation:
    asked: dict[str, Any] = {
        "url": "https://aggregator.example:8443/tacit",
        "key": DIGEST,
        "campaign": "cd" * 32,
        "site": "Haus Süd 3",
        "token": TOKEN,
    }
    return Invitation(**(asked | fields))


def as_text(content: bytes) -> str:
    return PREFIX + base64.urlsafe_b64encode(content).decode().rstrip("=")


@given(st.from_regex(r"[^\W_]([^\W_ ]{0,40} ?[^\W_])?", fullmatch=True), st.integers(1, 65535))
def test_an_invitation_survives_as_one_line_of_text(site: str, port: int) -> None:
    sent = invitation(site=site, url=f"http://127.0.0.1:{port}")
    text = sent.to_text()
    assert len(text.split()) == 1
    assert Invitation.from_text(f"  {text}\n") == sent


def test_fields_may_come_in_any_order() -> None:
    fields = json.loads(invitation().model_dump_json())
    turned = json.dumps(dict(reversed(fields.items())), indent=2).encode()
    assert Invitation.from_text(as_text(turned)) == invitation()


def test_the_token_is_not_shown() -> None:
    assert TOKEN not in repr(invitation())
    assert TOKEN not in str(invitation())


@given(st.text(max_size=80))
def test_text_that_is_no_invitation_gives_an_invalid_document(text: str) -> None:
    for line in (text, PREFIX + text):
        with pytest.raises(InvalidDocument):
            Invitation.from_text(line)


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_an_invitation_that_was_cut_is_refused_without_showing_it(cut: int) -> None:
    text = invitation().to_text()[:-cut]
    with pytest.raises(TacitError) as caught:
        Invitation.from_text(text)
    assert text[-20:] not in str(caught.value)


@pytest.mark.parametrize(
    "fields",
    [
        {"url": "ftp://aggregator.example"},
        {"url": "https://"},
        {"url": "https://aggregator.example/a b"},
        {"url": "https://aggregator.example/\x1b[2J"},
        {"url": "https://" + "a" * 2001},
        {"key": "ab"},
        {"campaign": None},
        {"site": " "},
        {"token": "tacit_short-kkkkkkkkk"},
        {"token": TOKEN + "kkkkkkkkk"},
        {"token": 5},
        {"tacit": "campaign"},
    ],
    ids=str,
)
def test_a_wrong_field_is_named_but_not_shown(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        invitation(**fields)
    content = json.dumps(json.loads(invitation().model_dump_json()) | fields).encode()
    with pytest.raises(InvalidDocument) as caught:
        Invitation.from_text(as_text(content))
    assert next(iter(fields)) in str(caught.value)
    assert "kkkkkkkk" not in str(caught.value)


def test_a_field_that_an_invitation_does_not_have_is_refused_without_repeating_its_name() -> None:
    content = json.dumps(json.loads(invitation().model_dump_json()) | {"\x1b[2J": "admin"}).encode()
    with pytest.raises(InvalidDocument, match=r"\(unknown\)") as caught:
        Invitation.from_text(as_text(content))
    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize("version", ["1.2", None, 1])
def test_an_invitation_of_another_version_says_to_upgrade(version: Any) -> None:
    content = json.dumps(json.loads(invitation().model_dump_json()) | {"version": version})
    with pytest.raises(UpgradeRequired):
        Invitation.from_text(as_text(content.encode()))
