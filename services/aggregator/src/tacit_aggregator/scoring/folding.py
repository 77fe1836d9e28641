"""Folding: counts go into the site's sketch, and what they came from is erased, in one go."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import Connection

from tacit_aggregator.scoring import queries
from tacit_aggregator.scoring.backlog import Amount
from tacit_aggregator.scoring.batches import Group, size_of
from tacit_aggregator.scoring.worker import Counts

_COUNTS = np.dtype("<i8")


@dataclass(frozen=True)
class Folded:
    """What became of a group."""

    counted: Amount
    dropped: Amount


class CountedElsewhere(Exception):
    """What this transaction counted was erased by another; it must not be committed."""


def lock(connection: Connection, groups: Iterable[Group]) -> None:
    """Lock the sites of these groups: whoever counts, drops or stores uploads of theirs waits."""
    queries.lock_sites(connection, [(group.campaign, group.site) for group in groups])


def fold(connection: Connection, group: Group, counts: Counts, now: float) -> Folded | None:
    """Count a group, whose site is locked.

    None if not all of it waits any more: its campaign was abandoned, or another server counted
    some of it. Nothing is changed then.
    """
    numbers = group.numbers
    chosen: dict[str, Any] = {
        "first": numbers[0],
        "last": numbers[-1],
        "of_campaign": group.campaign,
        "of_site": group.site,
    }
    if queries.still_waiting(connection, chosen) != len(numbers):
        return None
    if queries.erase(connection, chosen) != len(numbers):
        raise CountedElsewhere
    folded = _folded(group, counts)
    dropped = [{"of_number": numbers[place], "why": reason} for place, reason in counts.failed]
    stored = queries.sketch(connection, group.campaign, group.site)
    tally = {
        "of_campaign": group.campaign,
        "of_site": group.site,
        "new_noisy": _sum(stored.noisy, counts.noisy),
        "new_every": _sum(stored.every, counts.every),
        "more_counted": folded.counted.records,
        "more_dropped": folded.dropped.records,
        "at": now if folded.counted.records else None,
    }
    queries.fold(connection, chosen, tally, dropped)
    return folded


def nothing_but(reason: str, uploads: int) -> Counts:
    """The counts of uploads that are all dropped."""
    return Counts(b"", b"", tuple((place, reason) for place in range(uploads)))


def _folded(group: Group, counts: Counts) -> Folded:
    failed = [group.rows[place] for place, _ in counts.failed]
    dropped = Amount(
        len(failed), sum(row.records for row in failed), sum(size_of(row) for row in failed)
    )
    every = group.amount
    return Folded(
        Amount(
            every.uploads - dropped.uploads,
            every.records - dropped.records,
            every.size - dropped.size,
        ),
        dropped,
    )


def _sum(stored: bytes | None, more: bytes) -> bytes | None:
    if not stored or not more:
        return stored or more or None
    total = np.frombuffer(stored, _COUNTS) + np.frombuffer(more, _COUNTS)
    return total.astype(_COUNTS, copy=False).tobytes()
