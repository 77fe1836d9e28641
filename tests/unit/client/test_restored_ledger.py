"""An old copy of the ledger is noticed; what it forgot is neither drawn nor spent again."""

import json
import shutil
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tacit_client import Contributor, Home, Ledger
from tacit_client.errors import BudgetExceeded, LedgerError, LedgerRestored
from tacit_client.ledger import joined_campaigns, spending
from tests.support.client_world import ALLOWING, OPENS, World, given, world

NOW = OPENS + timedelta(days=10)
SOON = timedelta(minutes=5, seconds=1)
LONG_AGO = OPENS - timedelta(days=2000)
THRIFTY = replace(ALLOWING, max_epsilon=1.5)


def copied(home: Path, name: str = "old") -> Path:
    return Path(shutil.copytree(home, home.parent / name))


def put_back(copy: Path, home: Path) -> None:
    shutil.rmtree(home)
    shutil.copytree(copy, home)


def draw(
    campaign: World,
    home: Path,
    now: datetime = NOW,
    *,
    records: int = 3,
    persons: list[str] | None = None,
) -> int:
    with campaign.join_at(now, home, THRIFTY) as site:
        arguments = given(records).arguments()
        return site.export(home.parent / "bundle", persons=persons, **arguments).drawn


def floor_of(home: Path, now: datetime = NOW) -> float | None:
    with Ledger.open(home, clock=now.timestamp) as ledger:
        return ledger.meta.restored_floor


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home that has joined one campaign, and has drawn nothing."""
    world().join_at(NOW, tmp_path / "home").close()
    return tmp_path / "home"


def test_an_old_copy_put_back_refuses_the_campaigns_of_its_time(tmp_path: Path) -> None:
    home, one = tmp_path / "home", world()
    one.join(home).close()
    old = copied(home)
    with one.join(home) as site:
        site.export(tmp_path / "bundle", **given(3).arguments())
    put_back(old, home)
    with Contributor.open(None, home, ALLOWING) as site:
        with pytest.raises(LedgerRestored, match="new campaign"):
            site.export(tmp_path / "bundle", **given(3).arguments())
        with pytest.raises(LedgerRestored):
            site.preview(**given(3).arguments())
    for _ in range(2):  # it stays so
        with pytest.raises(LedgerRestored):
            world().join(home)


def test_a_campaign_that_opens_after_the_copy_was_put_back_is_welcome(home: Path) -> None:
    old = copied(home)
    world().join_at(NOW, home).close()
    put_back(old, home)
    assert floor_of(home) == NOW.timestamp()
    assert draw(world(opens=NOW + SOON), home, NOW + SOON) == 3


def test_a_campaign_that_could_be_drawn_for_before_the_copy_was_put_back_is_refused(
    home: Path,
) -> None:
    """Clocks may be five minutes apart, so it may have been drawn for before it opened."""
    old, early = copied(home), world(opens=NOW + timedelta(minutes=4))
    assert draw(early, home) == 3
    put_back(old, home)
    with pytest.raises(LedgerRestored):
        draw(early, home)


def test_a_clock_set_back_does_not_hide_that_a_campaign_was_drawn_for(home: Path) -> None:
    old, one = copied(home), world()
    assert draw(one, home) == 3
    put_back(old, home)
    assert floor_of(home, LONG_AGO) == NOW.timestamp()
    with pytest.raises(LedgerRestored):
        draw(one, home)


def test_a_second_restoring_never_lowers_the_floor(home: Path) -> None:
    for now in (NOW, LONG_AGO, NOW + SOON, LONG_AGO):
        Home(home).witness.unlink()
        found = floor_of(home, now)
        assert found is not None
        assert found >= NOW.timestamp()
    assert found == (NOW + SOON).timestamp()


def test_what_was_spent_after_the_copy_was_made_counts_as_spent_by_everybody(home: Path) -> None:
    old = copied(home)
    assert draw(world(epsilon=1.0), home) == 3
    put_back(old, home)
    assert floor_of(home) is not None
    later = NOW + SOON
    dear, cheap = world(epsilon=1.0, opens=later), world(epsilon=0.5, opens=later)
    with pytest.raises(BudgetExceeded, match="everybody counts as having spent ε = 1"):
        draw(dear, home, later)
    assert draw(cheap, home, later) == 3
    with Ledger.open(home) as ledger:
        spent = spending(ledger)
    assert (spent.persons, spent.least_epsilon, spent.most_epsilon) == (3, 1.0, 1.5)


def test_what_the_copy_remembers_of_a_person_is_not_counted_twice(home: Path) -> None:
    assert draw(world(epsilon=1.0), home, records=1) == 1
    old = copied(home)
    assert draw(world(epsilon=0.25), home, records=1) == 1
    put_back(old, home)
    assert floor_of(home) is not None
    later = NOW + SOON
    assert draw(world(epsilon=0.25, opens=later), home, later, records=2) == 2
    with Ledger.open(home) as ledger:
        assert ledger.read("SELECT DISTINCT nano FROM spending") == [(1_500_000_000,)]


def test_spending_is_remembered_over_several_restorings(home: Path) -> None:
    old = copied(home)
    for step in range(3):
        now = NOW + step * SOON
        assert draw(world(epsilon=0.5, opens=now), home, now) == 3
        put_back(old, home)
        assert floor_of(home, now) == now.timestamp()
        with Ledger.open(home) as ledger:
            assert spending(ledger).least_epsilon == 0.5 * (step + 1)
    now = NOW + 3 * SOON
    with pytest.raises(BudgetExceeded):
        draw(world(epsilon=0.5, opens=now), home, now)


def test_without_a_witness_it_is_said_that_spending_is_not_known(home: Path) -> None:
    old = copied(home)
    assert draw(world(epsilon=1.0), home) == 3
    put_back(old, home)
    Home(home).witness.unlink()
    with pytest.raises(LedgerRestored, match="without a witness that is not known"):
        draw(world(), home)


@pytest.mark.parametrize(
    "content",
    [
        *(None, b"", b"[]", b"nonsense", b'{"ledger": "x"}'),
        b'{"ledger": "x", "sequence": 1, "time": NaN, "spent": 0}',
        b'{"ledger": "x", "sequence": 1, "time": 1.0, "spent": -1}',
        b'{"ledger": "x", "sequence": 1e999, "time": 1.0, "spent": 0}',
        b'{"ledger": "x", "sequence": 100000000000000000000, "time": 1.0, "spent": 0}',
    ],
)
def test_a_used_ledger_without_its_witness_counts_as_restored(
    home: Path, content: bytes | None
) -> None:
    Home(home).witness.unlink()
    if content is not None:
        Home(home).witness.write_bytes(content)
    with pytest.raises(LedgerRestored):
        world().join(home)


def test_a_ledger_that_was_deleted_cannot_draw_its_campaigns_again(home: Path) -> None:
    one = world(epsilon=1.0)
    assert draw(one, home) == 3
    shutil.rmtree(home)
    with pytest.raises(LedgerRestored):
        one.join(home)
    with Ledger.open(home) as ledger:
        assert joined_campaigns(ledger) == []
        assert spending(ledger).least_epsilon == 1.0


def test_what_the_witness_does_not_know_of_does_not_leave(home: Path) -> None:
    one, bundle = world(), home.parent / "bundle"
    one.join_at(NOW, home).close()
    in_the_way = Home(home).witness.with_name("home.witness.new")
    in_the_way.mkdir()
    with one.join_at(NOW, home) as site:
        with pytest.raises(LedgerError, match="witness cannot be written"):
            site.export(bundle, **given(3).arguments())
        assert len(site.outbox.waiting()) == 1
        with pytest.raises(LedgerError, match="witness cannot be written"):
            site.ledger.check_witnessed()
        assert not bundle.exists()
        in_the_way.rmdir()
        site.ledger.check_witnessed()
        told = json.loads(Home(home).witness.read_bytes())
        assert told["sequence"] == site.ledger.meta.sequence
        assert told["spent"] == 10**9


def test_a_ledger_that_another_copy_has_overtaken_lets_nothing_leave(home: Path) -> None:
    one = world()
    with one.join_at(NOW, home) as site:
        witness = json.loads(Home(home).witness.read_bytes())
        witness["sequence"] += 1
        Home(home).witness.write_text(json.dumps(witness))
        with pytest.raises(LedgerRestored):
            site.ledger.check_witnessed()
