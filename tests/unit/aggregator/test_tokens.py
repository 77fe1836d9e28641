"""Tokens: shown once, found by their hash, worthless when expired or revoked."""

import hashlib
import re
from pathlib import Path

import pytest

from tacit.protocol import Role
from tacit_aggregator.database.location import database_file
from tacit_aggregator.errors import OperatorError
from tacit_aggregator.tokens import service
from tests.unit.aggregator.conftest import Aggregator

CAMPAIGN = "ab" * 32


def minted(aggregator: Aggregator, role: Role = Role.OWNER, name: str = "ada") -> str:
    campaign = CAMPAIGN if role is Role.CONTRIBUTOR else None
    with aggregator.database.transaction("mint") as connection:
        return service.mint(connection, role, name, campaign=campaign, expires_at=100.0, now=1.0)


def identified(aggregator: Aggregator, token: str, now: float = 2.0) -> service.Identity | None:
    with aggregator.database.read() as connection:
        return service.identify(connection, token, now)


@pytest.mark.parametrize("role", Role)
def test_a_token_speaks_for_whom_it_was_minted(aggregator: Aggregator, role: Role) -> None:
    campaign = CAMPAIGN if role is Role.CONTRIBUTOR else None
    token = minted(aggregator, role)
    assert identified(aggregator, token) == service.Identity(role, "ada", campaign, 100.0)


def test_a_token_is_256_random_bits_in_the_form_that_invitations_hold(
    aggregator: Aggregator,
) -> None:
    tokens = {minted(aggregator) for _ in range(20)}
    assert len(tokens) == 20
    assert all(re.fullmatch(r"tacit_[A-Za-z0-9_-]{43}", token) for token in tokens)


def test_the_database_file_holds_the_hash_of_a_token_and_never_the_token(
    aggregator: Aggregator,
) -> None:
    token = minted(aggregator)
    assert aggregator.database.erase_log()
    content = Path(database_file(aggregator.settings.database_url)).read_bytes()
    assert hashlib.sha256(token.encode()).digest() in content
    assert token.encode() not in content
    assert token.removeprefix("tacit_").encode() not in content


@pytest.mark.parametrize("token", ["", "tacit_" + "a" * 43, "\N{SNOWMAN}", "\ud800", "a" * 10_000])
def test_an_unknown_token_speaks_for_nobody(aggregator: Aggregator, token: str) -> None:
    minted(aggregator)
    assert identified(aggregator, token) is None


def test_a_token_speaks_for_nobody_from_the_moment_it_expires(aggregator: Aggregator) -> None:
    token = minted(aggregator)
    assert identified(aggregator, token, now=99.9) is not None
    assert identified(aggregator, token, now=100.0) is None


def test_a_revoked_token_speaks_for_nobody_and_others_still_do(aggregator: Aggregator) -> None:
    token, other = minted(aggregator), minted(aggregator, name="bob")
    with aggregator.database.transaction("revoke") as connection:
        (first, _) = service.list_tokens(connection)
        victim = first if first.name == "ada" else service.list_tokens(connection)[1]
        service.revoke(connection, victim.id, 3.0)
        service.revoke(connection, victim.id, 4.0)
    assert identified(aggregator, token) is None
    assert identified(aggregator, other) is not None
    with aggregator.database.read() as connection:
        (revoked,) = [t for t in service.list_tokens(connection) if t.id == victim.id]
    assert revoked.revoked_at == 3.0


@pytest.mark.parametrize(
    ("role", "name", "campaign", "expires_at"),
    [
        (Role.CONTRIBUTOR, "site", None, None),
        (Role.OWNER, "ada", CAMPAIGN, None),
        (Role.ADMIN, "root", CAMPAIGN, None),
        (Role.OWNER, "", None, None),
        (Role.OWNER, " ada", None, None),
        (Role.OWNER, "a\nb", None, None),
        (Role.OWNER, "a" * 101, None, None),
        (Role.OWNER, "ada", None, 1.0),
    ],
)
def test_a_token_that_makes_no_sense_is_not_minted(
    aggregator: Aggregator, role: Role, name: str, campaign: str | None, expires_at: float | None
) -> None:
    with (
        pytest.raises(OperatorError),
        aggregator.database.transaction("mint") as connection,
    ):
        service.mint(connection, role, name, campaign=campaign, expires_at=expires_at, now=1.0)
    with aggregator.database.read() as connection:
        assert service.list_tokens(connection) == ()


def test_no_repr_shows_a_token(aggregator: Aggregator) -> None:
    with aggregator.database.transaction("mint") as connection:
        found = service.create(
            connection, Role.OWNER, "ada", campaign=None, expires_at=None, now=1.0
        )
        listed = service.list_tokens(connection)
    assert found.token not in repr((found, listed, identified(aggregator, found.token)))
