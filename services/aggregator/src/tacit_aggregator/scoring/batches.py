"""Batches: what waits, oldest first, put together so that it is scored and counted at once."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from tacit.protocol.columns import Dtype
from tacit_aggregator.database.rows import AnyRow
from tacit_aggregator.scoring.backlog import Amount

MOST_UPLOADS = 4096
MOST_RECORDS = 200_000
MOST_BYTES = 2**24


@dataclass(frozen=True, repr=False)
class Group:
    """Uploads of one site for one campaign: all that wait from the first number to the last."""

    campaign: str
    site: str
    evidence_dtype: Dtype
    rows: list[AnyRow] = field(default_factory=list)

    @property
    def numbers(self) -> list[int]:
        """The uploads."""
        return [row.number for row in self.rows]

    @property
    def amount(self) -> Amount:
        """How much it is."""
        return Amount(
            len(self.rows),
            sum(row.records for row in self.rows),
            sum(size_of(row) for row in self.rows),
        )


@dataclass(frozen=True, repr=False)
class Batch:
    """Some groups that one task of a worker is about."""

    groups: tuple[Group, ...]
    last: int
    """The newest upload that was looked at."""

    @property
    def numbers(self) -> list[int]:
        """All uploads, oldest first."""
        return sorted(number for group in self.groups for number in group.numbers)


def size_of(row: AnyRow) -> int:
    """The bytes that an upload takes while it waits."""
    return len(row.labels) + len(row.evidence) + len(row.uniforms or b"")


def gather(rows: Iterable[AnyRow]) -> Batch | None:
    """A batch of the first rows; no more are read than it takes.

    It ends before an upload that was tried before, which is scored alone, and before one whose
    evidence is of another type than that of its group: a group is one range without gaps.
    """
    groups: dict[tuple[str, str], Group] = {}
    records = size = last = 0
    for row in rows:
        group = groups.get((row.campaign, row.site))
        if group is None:
            group = Group(row.campaign, row.site, row.evidence_dtype)
        elif group.evidence_dtype != row.evidence_dtype or row.attempts:
            break
        if row.attempts and groups:
            break
        groups[row.campaign, row.site] = group
        group.rows.append(row)
        last = row.number
        records += row.records
        size += size_of(row)
        if row.attempts or records >= MOST_RECORDS or size >= MOST_BYTES:
            break
    return Batch(tuple(groups.values()), last) if groups else None
