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


def spending(ledger: Ledger) -> Spending:
    """The ledger's spending so far."""
    ((persons, most),) = ledger.read("SELECT count(*), coalesce(max(nano), 0) FROM spending")
    return Spending(persons, most / 10**9)


def check_budget(connection: sqlite3.Connection, nano: int, policy: Policy) -> None:
    """Refuse the candidates if any of their persons would go over the policy's maximum."""
    persons, records = connection.execute(
        "SELECT count(*), coalesce(sum(asked.records), 0) FROM"
        " (SELECT person, count(*) AS records FROM temp.candidates GROUP BY person) AS asked"
        " LEFT JOIN spending USING (person)"
        " WHERE coalesce(spending.nano, 0) + asked.records * ? > ?",
        (nano, policy.limit),
    ).fetchone()
    if persons:
        raise BudgetExceeded(
            f"{persons} persons with {records} of the records to be drawn would go over the"
            f" policy's ε of {policy.max_epsilon:g} per person; nothing was drawn. Leave their"
            " records out, or give fewer records of each.",
            persons=persons,
            records=records,
        )


def spend(connection: sqlite3.Connection, nano: int) -> None:
    """Add what the candidates spend to their persons' accounts."""
    connection.execute(
        "INSERT INTO spending (person, nano)"
        " SELECT person, count(*) * ? FROM temp.candidates WHERE true GROUP BY person"
        " ON CONFLICT (person) DO UPDATE SET nano = nano + excluded.nano",
        (nano,),
    )
