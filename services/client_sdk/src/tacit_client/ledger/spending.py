"""What each person has spent over all campaigns, in units of 10⁻⁹ ε."""

import sqlite3
from dataclasses import dataclass

from tacit_client.errors import BudgetExceeded
from tacit_client.ledger.ledger import Ledger
from tacit_client.policy import Policy


@dataclass(frozen=True)
class Spending:
    """How many persons have spent anything, and the most that one of them has."""

    persons: int
    most_epsilon: float
    least_epsilon: float
    """What everybody counts as having spent: above 0 after an old copy was put in place."""


def spending(ledger: Ledger) -> Spending:
    """The ledger's spending so far."""
    ((persons,),) = ledger.read("SELECT count(*) FROM spending")
    meta = ledger.meta
    return Spending(persons, meta.most_nano / 10**9, meta.spent_floor / 10**9)


_OVER = """
SELECT count(*), coalesce(sum(asked.records), 0), coalesce(sum(reserved.nano), 0)
FROM meta JOIN (
    SELECT person, count(*) AS records FROM temp.candidates GROUP BY person
) AS asked
LEFT JOIN spending ON spending.person = asked.person
LEFT JOIN (
    SELECT dealt.person, sum(campaigns.epsilon_nano) AS nano
    FROM dealt JOIN campaigns ON campaigns.number = dealt.campaign
    WHERE campaigns.state = 'joined' AND dealt.person IN (SELECT person FROM temp.candidates)
        AND NOT EXISTS (
            SELECT 1 FROM records
            WHERE records.campaign = dealt.campaign AND records.record = dealt.record
        )
        AND NOT (
            dealt.campaign = :campaign AND dealt.record IN (SELECT record FROM temp.candidates)
        )
    GROUP BY dealt.person
) AS reserved ON reserved.person = asked.person
WHERE max(coalesce(spending.nano, 0), meta.spent_floor) + asked.records * :nano
    + coalesce(reserved.nano, 0) > :limit
"""
"""Of the candidates: those whose persons would go over. What was dealt out and not drawn is
reserved while its campaign is joined; a candidate's own reservation is the one that it uses."""


def check_budget(connection: sqlite3.Connection, campaign: int, nano: int, policy: Policy) -> None:
    """Refuse the candidates if any of their persons would go over the policy's maximum.

    They are about to be drawn for the campaign, or to be dealt out in it.
    """
    parameters = {"campaign": campaign, "nano": nano, "limit": policy.limit}
    persons, records, reserved = connection.execute(_OVER, parameters).fetchone()
    if persons:
        raise BudgetExceeded(
            f"{persons} persons with {records} of the records to be drawn would go over the"
            f" policy's ε of {policy.max_epsilon:g} per person; nothing was drawn. Leave their"
            " records out, or give fewer records of each."
            + (_RESERVED if reserved else "")
            + _after_restoring(connection),
            persons=persons,
            records=records,
        )


def spend(connection: sqlite3.Connection, nano: int) -> None:
    """Add what the candidates spend to their persons' accounts."""
    connection.execute(
        "INSERT INTO spending (person, nano)"
        " SELECT person, spent_floor + count(*) * ? FROM temp.candidates, meta"
        " WHERE true GROUP BY person"
        " ON CONFLICT (person) DO UPDATE"
        " SET nano = max(nano - (SELECT spent_floor FROM meta), 0) + excluded.nano",
        (nano,),
    )
    connection.execute(
        "UPDATE meta SET most_nano = max(most_nano, (SELECT max(nano) FROM spending"
        " WHERE person IN (SELECT person FROM temp.candidates)))"
    )


_RESERVED = (
    " What their other records may still answer in score campaigns counts too, until those are over"
    " or this site leaves them."
)


def _after_restoring(connection: sqlite3.Connection) -> str:
    (floor,) = connection.execute("SELECT spent_floor FROM meta").fetchone()
    if not floor:
        return ""
    return (
        f" Since an old copy of this ledger was put in place, everybody counts as having spent"
        f" ε = {floor / 10**9:g}."
    )
