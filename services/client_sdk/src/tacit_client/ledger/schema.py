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

MIGRATIONS = (_FIRST,)
"""The statements that lead from each version to the next; PRAGMA user_version counts them."""


def migrate(connection: sqlite3.Connection) -> bool:
    """Bring the tables to this version, in one transaction; whether the ledger is a new one."""
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version > len(MIGRATIONS):
        raise LedgerTooNew
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
