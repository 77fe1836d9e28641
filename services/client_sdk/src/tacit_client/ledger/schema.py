"""The ledger's tables, and how an older ledger becomes one of this version."""

import secrets
import sqlite3

from tacit_client.errors import LedgerTooNew

_FIRST = """
CREATE TABLE meta (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    ledger TEXT NOT NULL,
    secret BLOB NOT NULL CHECK (length(secret) = 32),
    sequence INTEGER NOT NULL DEFAULT 0,
    latest REAL NOT NULL DEFAULT 0, -- the latest time of a joining, drawing or restoring
    most_nano INTEGER NOT NULL DEFAULT 0, -- the most that one person has spent
    restored_floor REAL,
    spent_floor INTEGER NOT NULL DEFAULT 0 -- what everybody counts as having spent at least
);
CREATE TABLE campaigns (
    number INTEGER PRIMARY KEY,
    digest TEXT NOT NULL UNIQUE,
    signed TEXT NOT NULL,
    url TEXT NOT NULL,
    key TEXT NOT NULL,
    token TEXT,
    site TEXT NOT NULL,
    campaign_key BLOB CHECK (length(campaign_key) = 32),
    state TEXT NOT NULL CHECK (state IN ('joined', 'left', 'ended')),
    joined_at REAL NOT NULL,
    epsilon_nano INTEGER NOT NULL CHECK (epsilon_nano > 0)
);
CREATE TABLE uploads (
    number INTEGER PRIMARY KEY,
    upload TEXT NOT NULL UNIQUE,
    campaign INTEGER NOT NULL REFERENCES campaigns (number),
    records INTEGER NOT NULL CHECK (records > 0),
    state TEXT NOT NULL CHECK (
        state IN ('drawn', 'accepted', 'counted', 'late', 'dropped', 'refused')
    ),
    body BLOB
);
CREATE INDEX uploads_of_campaign ON uploads (campaign, state);
CREATE TABLE records (
    campaign INTEGER NOT NULL REFERENCES campaigns (number),
    record BLOB NOT NULL CHECK (length(record) = 16),
    person BLOB NOT NULL CHECK (length(person) = 16),
    upload INTEGER NOT NULL REFERENCES uploads (number),
    PRIMARY KEY (campaign, record)
) WITHOUT ROWID;
CREATE INDEX records_over_campaigns ON records (record, person);
CREATE TABLE spending (
    person BLOB PRIMARY KEY CHECK (length(person) = 16),
    nano INTEGER NOT NULL CHECK (nano > 0)
) WITHOUT ROWID;

CREATE TRIGGER meta_only_grows BEFORE UPDATE ON meta
WHEN NEW.sequence < OLD.sequence OR NEW.latest < OLD.latest OR NEW.most_nano < OLD.most_nano
    OR NEW.spent_floor < OLD.spent_floor OR NEW.secret IS NOT OLD.secret
    OR coalesce(NEW.restored_floor, 0) < coalesce(OLD.restored_floor, 0)
BEGIN SELECT RAISE(ABORT, 'a ledger does not go back'); END;

CREATE TRIGGER uploads_begin_drawn BEFORE INSERT ON uploads
WHEN NEW.state <> 'drawn' OR NEW.body IS NULL
BEGIN SELECT RAISE(ABORT, 'an upload begins as drawn, with its body'); END;

CREATE TRIGGER uploads_never_go_back BEFORE UPDATE OF state ON uploads
WHEN NEW.state <> OLD.state
    AND NOT (OLD.state = 'drawn')
    AND NOT (OLD.state = 'accepted' AND NEW.state IN ('counted', 'dropped'))
BEGIN SELECT RAISE(ABORT, 'the state of an upload never goes back'); END;

CREATE TRIGGER uploads_stay_the_same BEFORE UPDATE ON uploads
WHEN NEW.upload IS NOT OLD.upload OR NEW.campaign IS NOT OLD.campaign
    OR NEW.records IS NOT OLD.records
    OR (NEW.body IS NOT NULL AND NEW.body IS NOT OLD.body)
    OR (NEW.body IS NULL AND NEW.state = 'drawn')
BEGIN SELECT RAISE(ABORT, 'what was drawn stays as it is'); END;

CREATE TRIGGER uploads_stay BEFORE DELETE ON uploads
BEGIN SELECT RAISE(ABORT, 'what was drawn stays drawn'); END;

CREATE TRIGGER records_stay_the_same BEFORE UPDATE ON records
BEGIN SELECT RAISE(ABORT, 'what was drawn stays as it is'); END;

CREATE TRIGGER records_stay BEFORE DELETE ON records
BEGIN SELECT RAISE(ABORT, 'what was drawn stays drawn'); END;

CREATE TRIGGER spending_only_grows BEFORE UPDATE ON spending
WHEN NEW.person IS NOT OLD.person OR NEW.nano < OLD.nano
BEGIN SELECT RAISE(ABORT, 'what was spent stays spent'); END;

CREATE TRIGGER spending_stays BEFORE DELETE ON spending
BEGIN SELECT RAISE(ABORT, 'what was spent stays spent'); END;

CREATE TRIGGER campaign_keys_stay_erased BEFORE UPDATE ON campaigns
WHEN (NEW.campaign_key IS NOT NULL AND NEW.campaign_key IS NOT OLD.campaign_key)
    OR NEW.digest IS NOT OLD.digest OR NEW.key IS NOT OLD.key
    OR NEW.epsilon_nano IS NOT OLD.epsilon_nano
BEGIN SELECT RAISE(ABORT, 'a campaign has one key, drawn once'); END;

CREATE TRIGGER campaigns_stay BEFORE DELETE ON campaigns
BEGIN SELECT RAISE(ABORT, 'a campaign that was joined stays'); END;
"""

_ROUNDS = """
ALTER TABLE uploads ADD COLUMN round INTEGER CHECK (round >= 0); -- NULL: labels have no rounds
CREATE TABLE dealt (
    campaign INTEGER NOT NULL REFERENCES campaigns (number),
    record BLOB NOT NULL CHECK (length(record) = 16),
    person BLOB NOT NULL CHECK (length(person) = 16),
    round INTEGER NOT NULL CHECK (round >= 0),
    dealing INTEGER NOT NULL CHECK (dealing > 0), -- counts the calls that added records
    PRIMARY KEY (campaign, record)
) WITHOUT ROWID;
CREATE INDEX dealt_over_campaigns ON dealt (record, person);
CREATE INDEX dealt_of_persons ON dealt (person, campaign);
CREATE TABLE questions (
    campaign INTEGER NOT NULL REFERENCES campaigns (number),
    round INTEGER NOT NULL CHECK (round >= 0),
    digest TEXT NOT NULL,
    signed TEXT NOT NULL,
    PRIMARY KEY (campaign, round)
) WITHOUT ROWID;

CREATE TRIGGER dealt_before_any_question BEFORE INSERT ON dealt
WHEN EXISTS (SELECT 1 FROM questions WHERE questions.campaign = NEW.campaign)
BEGIN SELECT RAISE(ABORT, 'records are dealt out before the first question'); END;

CREATE TRIGGER dealt_stay_the_same BEFORE UPDATE ON dealt
BEGIN SELECT RAISE(ABORT, 'a record keeps its round'); END;

CREATE TRIGGER dealt_stay BEFORE DELETE ON dealt
BEGIN SELECT RAISE(ABORT, 'a record keeps its round'); END;

CREATE TRIGGER questions_stay_the_same BEFORE UPDATE ON questions
BEGIN SELECT RAISE(ABORT, 'a round has one question'); END;

CREATE TRIGGER questions_stay BEFORE DELETE ON questions
BEGIN SELECT RAISE(ABORT, 'a round has one question'); END;

CREATE TRIGGER answers_have_a_question BEFORE INSERT ON uploads
WHEN NEW.round IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM questions WHERE campaign = NEW.campaign AND round = NEW.round
)
BEGIN SELECT RAISE(ABORT, 'a round is answered after its question is stored'); END;

CREATE TRIGGER uploads_keep_their_round BEFORE UPDATE OF round ON uploads
WHEN NEW.round IS NOT OLD.round
BEGIN SELECT RAISE(ABORT, 'what was drawn stays as it is'); END;

CREATE TRIGGER records_answer_in_their_round BEFORE INSERT ON records
WHEN (SELECT round FROM uploads WHERE number = NEW.upload) IS NOT
    (SELECT round FROM dealt WHERE campaign = NEW.campaign AND record = NEW.record)
    OR (SELECT campaign FROM uploads WHERE number = NEW.upload) IS NOT NEW.campaign
BEGIN SELECT RAISE(ABORT, 'a record answers in its own round, of its own campaign'); END;

-- INSERT OR REPLACE deletes what is in its way, and fires DELETE triggers only where a connection
-- asks for recursive ones. These hold for every connection.
CREATE TRIGGER meta_is_one BEFORE INSERT ON meta
WHEN EXISTS (SELECT 1 FROM meta)
BEGIN SELECT RAISE(ABORT, 'a ledger has one identity'); END;

CREATE TRIGGER meta_stays BEFORE DELETE ON meta
BEGIN SELECT RAISE(ABORT, 'a ledger has one identity'); END;

CREATE TRIGGER campaigns_are_not_replaced BEFORE INSERT ON campaigns
WHEN EXISTS (SELECT 1 FROM campaigns WHERE number = NEW.number OR digest = NEW.digest)
BEGIN SELECT RAISE(ABORT, 'a campaign that was joined stays'); END;

CREATE TRIGGER campaigns_keep_their_number BEFORE UPDATE OF number ON campaigns
WHEN NEW.number IS NOT OLD.number
BEGIN SELECT RAISE(ABORT, 'a campaign that was joined stays'); END;

CREATE TRIGGER campaigns_stay_over BEFORE UPDATE OF state ON campaigns
WHEN OLD.state <> 'joined' AND NEW.state <> OLD.state
BEGIN SELECT RAISE(ABORT, 'a campaign that is over stays over'); END;

CREATE TRIGGER uploads_are_not_replaced BEFORE INSERT ON uploads
WHEN EXISTS (SELECT 1 FROM uploads WHERE number = NEW.number OR upload = NEW.upload)
BEGIN SELECT RAISE(ABORT, 'what was drawn stays as it is'); END;

CREATE TRIGGER uploads_keep_their_number BEFORE UPDATE OF number ON uploads
WHEN NEW.number IS NOT OLD.number
BEGIN SELECT RAISE(ABORT, 'what was drawn stays as it is'); END;

CREATE TRIGGER records_are_not_replaced BEFORE INSERT ON records
WHEN EXISTS (SELECT 1 FROM records WHERE campaign = NEW.campaign AND record = NEW.record)
BEGIN SELECT RAISE(ABORT, 'a record is drawn once'); END;

CREATE TRIGGER dealt_are_not_replaced BEFORE INSERT ON dealt
WHEN EXISTS (SELECT 1 FROM dealt WHERE campaign = NEW.campaign AND record = NEW.record)
BEGIN SELECT RAISE(ABORT, 'a record keeps its round'); END;

CREATE TRIGGER questions_are_not_replaced BEFORE INSERT ON questions
WHEN EXISTS (SELECT 1 FROM questions WHERE campaign = NEW.campaign AND round = NEW.round)
BEGIN SELECT RAISE(ABORT, 'a round has one question'); END;
"""

MIGRATIONS = (_FIRST, _ROUNDS)
"""The statements that lead from each version to the next; PRAGMA user_version counts them."""


def check_version(connection: sqlite3.Connection) -> int:
    """The version of the tables; refuses those of a newer one than this."""
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version > len(MIGRATIONS):
        raise LedgerTooNew
    return version


def migrate(connection: sqlite3.Connection) -> bool:
    """Bring the tables to this version, in one transaction; whether the ledger is a new one."""
    version = check_version(connection)
    if version == len(MIGRATIONS):
        return False
    # One script is one transaction: a ledger is never between two versions.
    statements = [*MIGRATIONS[version:], f"PRAGMA user_version = {len(MIGRATIONS)};"]
    if version == 0:
        identity, secret = secrets.token_hex(16), secrets.token_hex(32)
        columns = "INSERT INTO meta (one, ledger, secret)"
        first = f"{columns} VALUES (1, '{identity}', x'{secret}');"
        statements.append(first)
    connection.executescript("\n".join(("BEGIN IMMEDIATE;", *statements, "COMMIT;")))
    return version == 0
