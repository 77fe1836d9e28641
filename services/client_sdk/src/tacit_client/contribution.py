"""What a call to contribute did."""

from collections.abc import Sequence
from dataclasses import dataclass

from tacit_client.outbox import OutboxEntry, ReportState


@dataclass(frozen=True)
class Contribution:
    """What a call did, in records; `uploads` is how many were sent."""

    records: int
    """Given to this call."""
    drawn: int
    """Randomized now, for the first and only time."""
    already: int
    """Drawn by an earlier call; not drawn again."""
    accepted: int
    """Sent by this call and stored by the server."""
    late: int
    """Sent by this call after the campaign took no more, or after their round had closed."""
    uploads: int
    missed: int = 0
    """Of score campaigns: given, but their round had closed before they could answer."""
    unasked: int = 0
    """Of score campaigns: given, and their round was not asked, or not yet."""
    absent: int = 0
    """Of score campaigns: dealt out by earlier calls, not given to this one, and they have not
    answered."""
    failed: int = 0
    """Of score campaigns: the campaign's model failed on them now, and they have the largest
    score."""

    @classmethod
    def of(
        cls,
        sent: Sequence[OutboxEntry],
        *,
        records: int = 0,
        drawn: int = 0,
        already: int = 0,
        missed: int = 0,
        unasked: int = 0,
        absent: int = 0,
        failed: int = 0,
    ) -> "Contribution":
        """The same, from the uploads that were sent and answered."""
        late = sum(entry.records for entry in sent if entry.state is ReportState.LATE)
        accepted = sum(entry.records for entry in sent) - late
        return cls(
            records,
            drawn,
            already,
            accepted,
            late,
            len(sent),
            missed=missed,
            unasked=unasked,
            absent=absent,
            failed=failed,
        )
