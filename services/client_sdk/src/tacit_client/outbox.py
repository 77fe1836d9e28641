"""The outbox: uploads that were drawn, as the bytes that are sent, and sent again."""

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from tacit.protocol import AnswerUpload, Upload
from tacit_client.ledger import Ledger


class ReportState(StrEnum):
    """What became of a record's report; drawn never goes back."""

    DRAWN = "drawn"
    ACCEPTED = "accepted"
    COUNTED = "counted"
    LATE = "late"
    DROPPED = "dropped"
    REFUSED = "refused"


@dataclass(frozen=True)
class OutboxEntry:
    """An upload without its body."""

    upload: str
    records: int
    state: ReportState
    round: int | None = None
    """Of answers: the round that they belong to."""


class Outbox:
    """The uploads of one campaign in the ledger; bodies stay until the campaign is over."""

    def __init__(self, ledger: Ledger, campaign: int) -> None:
        self._ledger = ledger
        self._campaign = campaign

    def entries(self, *states: ReportState) -> list[OutboxEntry]:
        """The uploads in any of these states, or all of them, oldest first."""
        rows = self._ledger.read(
            "SELECT upload, records, state, round FROM uploads WHERE campaign = ? ORDER BY number",
            (self._campaign,),
        )
        entries = [
            OutboxEntry(upload, records, ReportState(state), round_)
            for upload, records, state, round_ in rows
        ]
        return [entry for entry in entries if not states or entry.state in states]

    def waiting(self) -> list[OutboxEntry]:
        """The uploads that the server has not acknowledged."""
        return self.entries(ReportState.DRAWN)

    def body(self, upload: str) -> bytes:
        """The bytes of an upload, the same whenever it is sent."""
        ((body,),) = self._ledger.read("SELECT body FROM uploads WHERE upload = ?", (upload,))
        return bytes(body)

    def mark(self, states: Mapping[str, ReportState]) -> None:
        """Write down what became of uploads; a state that would go back is left as it is."""
        with self._ledger.transaction("mark uploads") as connection:
            connection.executemany(
                "UPDATE uploads SET state = ?1 WHERE upload = ?2 AND campaign = ?3"
                " AND (state = 'drawn'"
                " OR (state = 'accepted' AND ?1 IN ('counted', 'dropped')))",
                [(state.value, upload, self._campaign) for upload, state in states.items()],
            )

    def counts(self) -> dict[ReportState, int]:
        """How many records are in each state."""
        rows = self._ledger.read(
            "SELECT state, sum(records) FROM uploads WHERE campaign = ? GROUP BY state",
            (self._campaign,),
        )
        found = {ReportState(state): int(records) for state, records in rows}
        return {state: found.get(state, 0) for state in ReportState}


def put_upload(
    connection: sqlite3.Connection,
    campaign: int,
    upload: Upload | AnswerUpload,
    round_: int | None = None,
) -> int:
    """Put a drawn upload into the outbox; its number in the ledger."""
    cursor = connection.execute(
        "INSERT INTO uploads (upload, campaign, records, state, body, round)"
        " VALUES (?, ?, ?, 'drawn', ?, ?)",
        (upload.upload, campaign, upload.records, upload.to_bytes(), round_),
    )
    return int(cursor.lastrowid or 0)  # never None: SQLite has just numbered the row
