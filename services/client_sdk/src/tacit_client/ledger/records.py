"""Records that were drawn: by keyed hashes of their ids, once per campaign."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from tacit_client.errors import BadRecords
from tacit_client.ledger.ledger import Ledger

HASH_BYTES = 16

Hashes = NDArray[np.uint8]
"""An (n, 16) table of keyed hashes."""

RECORD = b"record"
PERSON = b"person"


def keyed_hashes(secret: bytes, purpose: bytes, names: Sequence[str]) -> Hashes:
    """BLAKE2b-128 of each name under the ledger's secret; no name can be read from its hash."""
    hashed = b"".join(
        blake2b(name.encode(), digest_size=HASH_BYTES, key=secret, person=purpose).digest()
        for name in names
    )
    return np.frombuffer(hashed, dtype=np.uint8).reshape(-1, HASH_BYTES)


def hashes_of(ledger: Ledger, ids: Sequence[str], persons: Sequence[str]) -> tuple[Hashes, Hashes]:
    """The keyed hashes of records and persons; a record without a person is its own."""
    secret = ledger.meta.secret
    return keyed_hashes(secret, RECORD, ids), keyed_hashes(secret, PERSON, persons)


@contextmanager
def candidates(
    connection: sqlite3.Connection, campaign: int, records: Hashes, persons: Hashes
) -> Iterator[NDArray[np.int64]]:
    """The positions of the records not drawn yet, which are rows of temp.candidates meanwhile.

    The table is in memory and private to this connection; nothing of it reaches the ledger's file.
    """
    connection.execute(
        "CREATE TEMP TABLE IF NOT EXISTS candidates"
        " (position INTEGER PRIMARY KEY, record BLOB NOT NULL, person BLOB NOT NULL)"
    )
    try:
        connection.executemany(
            "INSERT INTO temp.candidates VALUES (?, ?, ?)",
            zip(range(len(records)), hash_rows(records), hash_rows(persons), strict=True),
        )
        connection.execute(
            "DELETE FROM temp.candidates WHERE EXISTS (SELECT 1 FROM records"
            " WHERE records.campaign = ? AND records.record = candidates.record)",
            (campaign,),
        )
        found = connection.execute("SELECT position FROM temp.candidates ORDER BY position")
        yield np.array([position for (position,) in found], dtype=np.int64)
    finally:
        connection.execute("DELETE FROM temp.candidates")


def check_persons(connection: sqlite3.Connection) -> None:
    """Refuse candidates that were drawn or dealt out as another person's, for whatever campaign.

    Their ε would be spent from two accounts, and neither would know of the other.
    """
    count, first = connection.execute(
        "SELECT count(*), min(position) FROM temp.candidates WHERE EXISTS (SELECT 1 FROM records"
        " WHERE records.record = candidates.record AND records.person <> candidates.person)"
        " OR EXISTS (SELECT 1 FROM dealt"
        " WHERE dealt.record = candidates.record AND dealt.person <> candidates.person)"
    ).fetchone()
    if count:
        raise BadRecords(
            f"The record of row {first} was drawn or dealt out before as another person's, or with"
            f" no person named ({count} such rows in all); nothing was drawn. Give a record with"
            " the same person every time."
        )


def add_records(
    connection: sqlite3.Connection, campaign: int, upload: int, positions: NDArray[np.int64]
) -> None:
    """Mark the candidates at these positions as drawn into an upload."""
    connection.execute(
        "INSERT INTO records (campaign, record, person, upload)"
        " SELECT ?, record, person, ? FROM temp.candidates WHERE position BETWEEN ? AND ?",
        (campaign, upload, int(positions[0]), int(positions[-1])),
    )


def undrawn(ledger: Ledger, campaign: int, records: Hashes, persons: Hashes) -> NDArray[np.int64]:
    """The positions of the records that were never drawn for a campaign."""
    with ledger.rehearsal() as connection, candidates(connection, campaign, records, persons) as it:
        return it


def drawn_count(ledger: Ledger, campaign: int) -> int:
    """How many records were drawn for a campaign."""
    ((count,),) = ledger.read(
        "SELECT coalesce(sum(records), 0) FROM uploads WHERE campaign = ?", (campaign,)
    )
    return int(count)


def hash_rows(hashes: Hashes) -> Iterator[bytes]:
    """The hashes one by one."""
    content = hashes.tobytes()
    return (content[i : i + HASH_BYTES] for i in range(0, len(content), HASH_BYTES))
