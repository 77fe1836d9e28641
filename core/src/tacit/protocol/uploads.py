"""Uploads: a site's reports in columns, and what the aggregator says about them."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from tacit.protocol.columns import Column
from tacit.protocol.versions import FIRST
from tacit.protocol.wire import EXACT, Digest, Identifier, Wire

MOST_RECORDS = 100_000
"""Records in one upload."""

Count = Annotated[int, Field(ge=0, le=EXACT)]


class Enrolment(Wire):
    """How many records a site has for a campaign; it may raise the number later."""

    records: Annotated[int, Field(ge=1, le=2**40)]


class Upload(Wire):
    """Reports of some records, one column per quantity, and the campaign they were made for."""

    version: Literal["1.0"] = FIRST
    campaign: Digest
    upload: Identifier
    """Drawn by the site, once; the same upload may be sent again, byte for byte."""
    labels: Column
    """The randomized labels."""
    probabilities: Column | None = None
    features: Column | None = None
    uniforms: Column | None = None
    """One number in [0, 1] per record, for randomized scores only."""

    @property
    def records(self) -> int:
        """How many records these reports are of."""
        return self.labels.rows

    def to_bytes(self) -> bytes:
        """The body as it is sent, and sent again."""
        return self.model_dump_json(exclude_none=True).encode()


class UploadState(StrEnum):
    """What became of an upload.

    accepted: stored, and will be counted. counted: in the sketch, features erased.
    dropped: erased without being counted, for the reason that stands beside it.
    late: answers that came after their round had closed, and are not counted.
    """

    ACCEPTED = "accepted"
    COUNTED = "counted"
    DROPPED = "dropped"
    LATE = "late"


class Receipt(Wire):
    """What the aggregator knows of one upload of this site."""

    upload: Identifier
    records: Count
    state: UploadState
    reason: str | None = None


class Receipts(Wire):
    """The uploads of this site, oldest first, a page at a time."""

    receipts: tuple[Receipt, ...]
    next: Identifier | None
    """The upload to ask for those after, if there are more."""
