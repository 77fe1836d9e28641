"""Whom a token speaks for is remembered for a second, and never longer than the token is good."""

import asyncio
from dataclasses import dataclass, field

import pytest
from sqlalchemy import Connection

from tacit.protocol import Role
from tacit_aggregator.http import tokens
from tacit_aggregator.tokens import service
from tests.unit.aggregator.conftest import Aggregator


@dataclass
class Time:
    """A clock that goes on when it is told to."""

    now: float = 1_000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Stage:
    """Tokens, the time, and how often they were looked up."""

    aggregator: Aggregator
    time: Time
    tokens: tokens.Tokens
    looked: list[str] = field(default_factory=list)

    def mint(self, seconds: float | None) -> str:
        """A token that is good for so long."""
        now = self.time()
        until = None if seconds is None else now + seconds
        with self.aggregator.database.transaction("mint") as connection:
            return service.mint(
                connection, Role.OWNER, "ada", campaign=None, expires_at=until, now=now
            )

    def is_good(self, token: str, after: float = 0.0) -> bool:
        """Whether it speaks for somebody, some seconds later."""
        self.time.now += after
        return asyncio.run(self.tokens.identity(token)) is not None


@pytest.fixture
def stage(aggregator: Aggregator, monkeypatch: pytest.MonkeyPatch) -> Stage:
    made = Stage(aggregator, Time(), tokens.Tokens(aggregator.database))
    identify = service.identify

    def looked_up(connection: Connection, token: str, now: float) -> object:
        made.looked.append(token)
        return identify(connection, token, now)

    aggregator.database.clock = made.time
    monkeypatch.setattr(tokens, "monotonic", made.time)
    monkeypatch.setattr(tokens, "identify", looked_up)
    return made


@pytest.mark.parametrize("seconds", [None, 0.75, 60.0])
def test_a_token_is_looked_up_once_a_second(stage: Stage, seconds: float | None) -> None:
    token = stage.mint(seconds)
    assert all(stage.is_good(token, after) for after in (0.0, 0.25, 0.25))
    assert stage.looked == [token]
    assert stage.is_good(token, 0.5) is (seconds != 0.75)
    assert stage.looked == [token] * 2


def test_a_token_that_is_remembered_is_good_until_it_expires_and_no_longer(stage: Stage) -> None:
    token = stage.mint(1.25)
    assert stage.is_good(token, 0.75)
    assert stage.is_good(token, 0.25)
    assert not stage.is_good(token, 0.25)


def test_a_token_that_is_revoked_is_good_for_a_second_at_most(stage: Stage) -> None:
    token = stage.mint(None)
    assert stage.is_good(token)
    with stage.aggregator.database.transaction("revoke") as connection:
        (stored,) = service.list_tokens(connection)
        service.revoke(connection, stored.id, stage.time())
    assert stage.is_good(token, 0.5)
    assert not stage.is_good(token, 0.5)


def test_a_token_that_nobody_knew_works_as_soon_as_it_is_minted(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = "a" * 43
    monkeypatch.setattr("secrets.token_urlsafe", lambda _: chosen)
    assert not stage.is_good(service.PREFIX + chosen)
    assert stage.is_good(stage.mint(None))
