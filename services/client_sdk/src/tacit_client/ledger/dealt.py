"""Records that were dealt out to rounds, and the one question of each round."""

import sqlite3
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.protocol import RoundQuestion, Signed
from tacit_client.ledger.ledger import Ledger
from tacit_client.ledger.records import Hashes, hash_rows

NEVER = -1
"""Instead of a round, or of a dealing: the record was not dealt out."""


@dataclass(frozen=True)
class RoundHere:
    """A round as this site knows it."""

    round: int
    threshold: float | None
    """What was asked; None where no question was seen here."""
    dealt: int
    """Records of this site that belong to it."""
    answered: int
    """Those of them that have answered, whether in time or not."""
    late: int
    """Those whose answers came after it had closed."""


def keep_undealt(connection: sqlite3.Connection, campaign: int) -> None:
    """Candidates that have a round already are none any more."""
    connection.execute(
        "DELETE FROM temp.candidates WHERE EXISTS (SELECT 1 FROM dealt"
        " WHERE dealt.campaign = ? AND dealt.record = candidates.record)",
        (campaign,),
    )


def add_dealt(
    connection: sqlite3.Connection,
    campaign: int,
    records: Hashes,
    persons: Hashes,
    rounds: NDArray[np.int64],
) -> None:
    """Give each of these records its round, for good."""
    (last,) = connection.execute(
        "SELECT coalesce(max(dealing), 0) FROM dealt WHERE campaign = ?", (campaign,)
    ).fetchone()
    connection.executemany(
        "INSERT INTO dealt (campaign, record, person, round, dealing) VALUES (?, ?, ?, ?, ?)",
        (
            (campaign, record, person, round_, last + 1)
            for record, person, round_ in zip(
                hash_rows(records), hash_rows(persons), rounds.tolist(), strict=True
            )
        ),
    )


def places_of(
    ledger: Ledger, campaign: int, records: Hashes
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The round of each record and the dealing that it came with; `NEVER` where it has none."""
    found = {
        record: (round_, dealing)
        for record, round_, dealing in ledger.read(
            "SELECT record, round, dealing FROM dealt WHERE campaign = ?", (campaign,)
        )
    }
    places = [found.get(record, (NEVER, NEVER)) for record in hash_rows(records)]
    table = np.array(places, dtype=np.int64).reshape(-1, 2)
    return table[:, 0], table[:, 1]


def dealt_count(ledger: Ledger, campaign: int) -> int:
    """How many records have a round."""
    ((count,),) = ledger.read("SELECT count(*) FROM dealt WHERE campaign = ?", (campaign,))
    return int(count)


def last_dealing(ledger: Ledger, campaign: int, enrolled: int) -> int:
    """The last dealing whose records are among those that the server has enrolled.

    Each dealing was enrolled with all before it, or came too late for it.
    """
    last, total = 0, 0
    for dealing, count in ledger.read(
        "SELECT dealing, count(*) FROM dealt WHERE campaign = ? GROUP BY dealing ORDER BY dealing",
        (campaign,),
    ):
        if total + count > enrolled:
            break
        last, total = dealing, total + count
    return last


def unanswered_elsewhere(
    ledger: Ledger, campaign: int, records: Hashes, last: int | None = None
) -> NDArray[np.int64]:
    """The rounds of records that were dealt out, have not answered and are none of these.

    With `last`, of the dealings up to that one.
    """
    given = set(hash_rows(records))
    found = ledger.read(
        "SELECT record, round FROM dealt WHERE campaign = ?1 AND dealing <= coalesce(?2, dealing)"
        " AND NOT EXISTS (SELECT 1 FROM records"
        " WHERE records.campaign = ?1 AND records.record = dealt.record)",
        (campaign, last),
    )
    rounds = [round_ for record, round_ in found if record not in given]
    return np.array(rounds, dtype=np.int64)


def question_digest(ledger: Ledger, campaign: int, number: int) -> str | None:
    """The digest of the question that a round is answered to, once one was seen."""
    rows = ledger.read(
        "SELECT digest FROM questions WHERE campaign = ? AND round = ?", (campaign, number)
    )
    return rows[0][0] if rows else None


def was_asked(ledger: Ledger, campaign: int) -> bool:
    """Whether any question was seen."""
    return bool(ledger.read("SELECT 1 FROM questions WHERE campaign = ? LIMIT 1", (campaign,)))


def put_question(
    connection: sqlite3.Connection, campaign: int, number: int, digest: str, signed: Signed
) -> None:
    """Keep the question of a round; the same again changes nothing."""
    connection.execute(
        "INSERT INTO questions (campaign, round, digest, signed) SELECT ?1, ?2, ?3, ?4"
        " WHERE NOT EXISTS (SELECT 1 FROM questions WHERE campaign = ?1 AND round = ?2"
        " AND digest = ?3)",
        (campaign, number, digest, signed.model_dump_json()),
    )


def answers_taken(ledger: Ledger, campaign: int, number: int) -> int:
    """How many answers of a round the server has taken, by the ledger."""
    ((count,),) = ledger.read(
        "SELECT coalesce(sum(records), 0) FROM uploads WHERE campaign = ? AND round = ?"
        " AND state IN ('accepted', 'counted')",
        (campaign, number),
    )
    return int(count)


def rounds_here(ledger: Ledger, campaign: int) -> tuple[RoundHere, ...]:
    """What the ledger knows of the rounds for which it has records, or a question."""
    dealt = _counts(ledger, "SELECT round, count(*) FROM dealt", campaign)
    sums = "SELECT round, sum(records) FROM uploads"
    answered, late = (
        _counts(ledger, sums, campaign, condition) for condition in ("", " AND state = 'late'")
    )
    asked = {
        number: RoundQuestion.from_bytes(Signed.model_validate_json(signed).payload.encode())
        for number, signed in ledger.read(
            "SELECT round, signed FROM questions WHERE campaign = ?", (campaign,)
        )
    }
    return tuple(
        RoundHere(
            number,
            asked[number].threshold if number in asked else None,
            dealt.get(number, 0),
            answered.get(number, 0),
            late.get(number, 0),
        )
        for number in sorted({*dealt, *asked})
    )


def _counts(ledger: Ledger, counted: str, campaign: int, condition: str = "") -> dict[int, int]:
    rows = ledger.read(f"{counted} WHERE campaign = ?{condition} GROUP BY round", (campaign,))
    return {number: int(count) for number, count in rows if number is not None}
