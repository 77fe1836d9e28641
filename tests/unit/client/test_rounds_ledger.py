"""The ledger's own rules about rounds, and ledgers of before there were any."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tacit_client import Contributor, Home, Ledger, Membership, Outbox, ReportState
from tacit_client.errors import LedgerError, LedgerTooOld
from tacit_client.ledger import find_campaign, joined_campaigns, spending
from tacit_client.ledger.campaigns import finish_campaign
from tacit_client.ledger.dealt import RoundHere, rounds_here
from tacit_client.ledger.schema import MIGRATIONS
from tests.support.client_world import ALLOWING, given, world
from tests.support.score_world import answer, dealt, joined_part, score_world

LEDGERS = Path(__file__).parents[2] / "support" / "ledgers"


@pytest.mark.parametrize(
    ("statement", "rule"),
    [
        ("UPDATE dealt SET round = 0", "keeps its round"),
        ("DELETE FROM dealt", "keeps its round"),
        ("UPDATE questions SET digest = 'x'", "one question"),
        ("DELETE FROM questions", "one question"),
        ("UPDATE uploads SET round = 3", "stays as it is"),
        (
            "INSERT INTO dealt SELECT campaign, zeroblob(16), person, round, 9 FROM dealt LIMIT 1",
            "before the first question",
        ),
        (
            "INSERT INTO uploads (upload, campaign, records, state, body, round)"
            " VALUES ('x', 1, 1, 'drawn', x'00', 3)",
            "after its question",
        ),
        (
            "INSERT INTO records SELECT campaign, record, person, 1 FROM dealt WHERE round = 2",
            "in its own round",
        ),
        (
            "INSERT INTO records VALUES (1, zeroblob(16), zeroblob(16), 1)",
            "in its own round",
        ),
    ],
)
def test_the_ledger_itself_lets_no_round_be_changed(
    tmp_path: Path, statement: str, rule: str
) -> None:
    campaign = score_world()
    with joined_part(campaign, tmp_path / "home") as part:
        answer(part, dealt(part, 40), campaign.asked(1))
        with (
            pytest.raises(sqlite3.IntegrityError, match=rule),
            part.ledger.transaction("break a rule") as connection,
        ):
            connection.execute(statement)


CAMPAIGN = (
    "(digest, signed, url, key, token, site, campaign_key, state, joined_at, epsilon_nano)"
    " SELECT {} , signed, url, key, token, site, randomblob(32), 'joined', 0, 1 FROM campaigns"
)


@pytest.mark.parametrize(
    ("statement", "rule"),
    [
        (
            "INSERT OR REPLACE INTO dealt"
            " SELECT campaign, record, person, 3 - round, dealing FROM dealt",
            "keeps its round|before the first question",
        ),
        ("INSERT OR REPLACE INTO questions VALUES (1, 1, 'another', '{}')", "one question"),
        ("INSERT INTO questions VALUES (1, 1, 'another', '{}')", "one question"),
        ("UPDATE OR REPLACE questions SET digest = 'another'", "one question"),
        (
            "INSERT OR REPLACE INTO uploads (number, upload, campaign, records, state, body, round)"
            " SELECT number, 'another', campaign, records, 'drawn', x'ff', round FROM uploads",
            "stays as it is",
        ),
        (
            "INSERT OR REPLACE INTO uploads (upload, campaign, records, state, body, round)"
            " SELECT upload, campaign, records, 'drawn', x'ff', round FROM uploads",
            "stays as it is",
        ),
        ("UPDATE OR REPLACE uploads SET number = number + 1", "stays as it is"),
        (
            "INSERT OR REPLACE INTO records"
            " SELECT campaign, record, randomblob(16), upload FROM records",
            "drawn once",
        ),
        ("INSERT OR REPLACE INTO spending SELECT person, 1 FROM spending", "stays spent"),
        (f"INSERT OR REPLACE INTO campaigns {CAMPAIGN.format('digest')}", "joined stays"),
        (
            "INSERT OR REPLACE INTO campaigns (number, "
            + CAMPAIGN[1:].format("'0'").replace("SELECT", "SELECT number,"),
            "joined stays",
        ),
        ("UPDATE OR REPLACE campaigns SET number = 7", "joined stays"),
        ("INSERT OR REPLACE INTO meta (one, ledger, secret) VALUES (1, 'x', zeroblob(32))", "one"),
        ("DELETE FROM meta", "one identity"),
    ],
)
def test_the_ledger_itself_lets_nothing_be_replaced(
    tmp_path: Path, statement: str, rule: str
) -> None:
    campaign = score_world()
    with joined_part(campaign, tmp_path / "home") as part:
        answer(part, dealt(part, 40), campaign.asked(1))
        before = held(part.ledger)
        with (
            pytest.raises(sqlite3.IntegrityError, match=rule),
            part.ledger.transaction("break a rule") as connection,
        ):
            connection.execute(statement)
        assert held(part.ledger) == before


def held(ledger: Ledger) -> dict[str, list[tuple[object, ...]]]:
    tables = ("meta", "campaigns", "uploads", "records", "spending", "dealt", "questions")
    return {table: ledger.read(f"SELECT * FROM {table}") for table in tables}  # noqa: S608 -- ours


def test_a_round_that_was_dealt_out_is_not_replaced_before_any_question(tmp_path: Path) -> None:
    with joined_part(score_world(), tmp_path / "home") as part:
        dealt(part, 40)
        statement = "INSERT OR REPLACE INTO dealt SELECT campaign, record, person, 0, 1 FROM dealt"
        with (
            pytest.raises(sqlite3.IntegrityError, match="keeps its round"),
            part.ledger.transaction("break a rule") as connection,
        ):
            connection.execute(statement)


def test_a_connection_that_asks_for_no_recursive_triggers_replaces_nothing_either(
    tmp_path: Path,
) -> None:
    campaign = score_world()
    with joined_part(campaign, tmp_path / "home") as part:
        answer(part, dealt(part, 40), campaign.asked(1))
    with closing(sqlite3.connect(tmp_path / "home" / "ledger.db")) as other:
        for statement in (
            "INSERT OR REPLACE INTO questions VALUES (1, 1, 'another', '{}')",
            "INSERT OR REPLACE INTO records SELECT campaign, record, person, 1 FROM records",
            f"INSERT OR REPLACE INTO campaigns {CAMPAIGN.format('digest')}",
            "INSERT OR REPLACE INTO meta (one, ledger, secret) VALUES (1, 'x', zeroblob(32))",
        ):
            with pytest.raises(sqlite3.IntegrityError):
                other.execute(statement)


def test_a_record_is_drawn_into_an_upload_of_its_own_campaign(tmp_path: Path) -> None:
    one, other = score_world(), score_world()
    with joined_part(one, tmp_path / "home") as part:
        answer(part, dealt(part, 40), one.asked(1))
    with joined_part(other, tmp_path / "home") as part:
        dealt(part, 40, "other")
        with (
            pytest.raises(sqlite3.IntegrityError, match="its own campaign"),
            part.ledger.transaction("break a rule") as connection,
        ):
            connection.execute(
                "INSERT INTO records SELECT campaign, record, person, 1 FROM dealt"
                " WHERE campaign = 2 AND round = 1"
            )


@pytest.mark.parametrize("state", [Membership.LEFT, Membership.ENDED])
def test_a_campaign_that_is_over_is_not_joined_again(tmp_path: Path, state: Membership) -> None:
    with joined_part(score_world(), tmp_path / "home") as part:
        with part.ledger.transaction("end") as connection:
            finish_campaign(connection, part.joined.number, state)
        for wanted in {"joined", "left", "ended"} - {state.value}:
            with (
                pytest.raises(sqlite3.IntegrityError, match="stays over"),
                part.ledger.transaction("break a rule") as connection,
            ):
                connection.execute("UPDATE campaigns SET state = ?", (wanted,))
        assert find_campaign(part.ledger, None).state is state


def test_the_rounds_are_known_here_after_all_is_over(tmp_path: Path) -> None:
    world = score_world()
    with joined_part(world, tmp_path / "home") as part:
        hand = dealt(part, 40)
        answer(part, hand, world.asked(0, 0.5))
        answer(part, hand, world.asked(2, 0.25))
        outbox = Outbox(part.ledger, part.joined.number)
        first, second = outbox.entries()
        outbox.mark({first.upload: ReportState.COUNTED, second.upload: ReportState.LATE})
        with part.ledger.transaction("end") as connection:
            finish_campaign(connection, part.joined.number, Membership.ENDED)
        assert rounds_here(part.ledger, part.joined.number) == (
            RoundHere(0, 0.5, dealt=10, answered=10, late=0),
            RoundHere(1, None, dealt=10, answered=0, late=0),
            RoundHere(2, 0.25, dealt=10, answered=10, late=10),
            RoundHere(3, None, dealt=10, answered=0, late=0),
        )


@pytest.fixture
def first(tmp_path: Path) -> Path:
    """A home with a ledger of the first version, in use."""
    home = Home(tmp_path / "home")
    home.create()
    connection = sqlite3.connect(home.ledger)
    connection.executescript((LEDGERS / "first.sql").read_text())
    connection.close()
    shutil.copy(LEDGERS / "first.witness", home.witness)
    return home.path


def test_a_ledger_of_the_first_version_is_brought_to_this_one_with_all_it_holds(
    first: Path,
) -> None:
    with Ledger.open(first) as ledger:
        assert ledger.read("PRAGMA user_version") == [(len(MIGRATIONS),)]
        assert ledger.meta.restored_floor is None
        joined, left = joined_campaigns(ledger)
        assert (joined.state, left.state) == (Membership.JOINED, Membership.LEFT)
        spent = spending(ledger)
        assert (spent.persons, spent.most_epsilon) == (5, 2.0)
        rounds = ledger.read("SELECT DISTINCT round FROM uploads")
        assert rounds == [(None,)]
        assert ledger.read("PRAGMA foreign_key_check") == []
    with Contributor.open(joined.digest, first, ALLOWING) as contributor:
        counts = contributor.outbox.counts()
        assert (counts[ReportState.COUNTED], counts[ReportState.DRAWN]) == (3, 2)
        assert contributor.outbox.waiting()[0].round is None


def test_a_migrated_ledger_draws_labels_and_answers(first: Path, tmp_path: Path) -> None:
    with world().join(first) as site:
        drawn = site.export(tmp_path / "bundle", **given(4, prefix="new").arguments())
        assert drawn.drawn == 4
    scores = score_world()
    with joined_part(scores, first) as part:
        assert answer(part, dealt(part, 40, "n"), scores.asked(0)) == 10


def test_a_migrated_ledger_is_the_same_as_a_new_one(first: Path, tmp_path: Path) -> None:
    def schema(home: Path) -> list[tuple[str, str]]:
        with Ledger.open(home) as ledger:
            return ledger.read("SELECT type, name FROM sqlite_schema ORDER BY type, name")

    assert schema(first) == schema(tmp_path / "new")


def test_a_migration_that_fails_leaves_the_ledger_as_it_was(
    first: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = (MIGRATIONS[0], MIGRATIONS[1] + "CREATE TABLE dealt (x);")
    monkeypatch.setattr("tacit_client.ledger.schema.MIGRATIONS", broken)
    with pytest.raises(Exception, match="already exists"):
        Ledger.open(first)
    monkeypatch.undo()
    with Ledger.open(first) as ledger:
        assert ledger.read("SELECT count(*) FROM dealt") == [(0,)]


def test_an_older_ledger_that_another_process_holds_is_said_to_be_older(first: Path) -> None:
    with pytest.raises(LedgerTooOld, match="Wait until that has finished"):
        Ledger.reading(first)
    Ledger.open(first).close()
    with Ledger.reading(first) as ledger:
        assert rounds_here(ledger, 1) == ()


def test_a_ledger_that_another_process_holds_can_be_looked_into_and_not_written_to(
    tmp_path: Path,
) -> None:
    campaign = score_world()
    with joined_part(campaign, tmp_path / "home") as part:
        answer(part, dealt(part, 40), campaign.asked(0))
        with Ledger.reading(tmp_path / "home") as ledger:
            assert find_campaign(ledger, None).digest == campaign.campaign.digest
            assert ledger.read("SELECT count(*) FROM questions") == [(1,)]
            with (
                pytest.raises(LedgerError, match="readonly"),
                ledger.transaction("write") as connection,
            ):
                connection.execute("UPDATE meta SET latest = latest + 1")
