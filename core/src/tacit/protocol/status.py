"""Where a campaign stands, and who is asking."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from tacit.protocol.campaign import Method
from tacit.protocol.rounds import RoundStatus
from tacit.protocol.uploads import Count
from tacit.protocol.wire import Digest, Moment, Name, Wire


def _nothing(value: object) -> bool:
    """What a reader of version 1.0 does not know is left out where it says nothing."""
    return not value


def _of_labels(method: str) -> bool:
    return method == "labels"


class CampaignState(StrEnum):
    """A campaign's life.

    waiting: before it opens. open: takes uploads. closing: takes no more, and counts what it has.
    closed: all that was accepted is counted. abandoned: pending features erased, no results.
    """

    WAITING = "waiting"
    OPEN = "open"
    CLOSING = "closing"
    CLOSED = "closed"
    ABANDONED = "abandoned"


class ClosedBy(StrEnum):
    """Why a campaign takes no more uploads; by hand, there is no starred threshold."""

    PLAN = "plan"
    DATE = "date"
    HAND = "hand"


class Tally(Wire):
    """Records: received = pending + counted + dropped + late."""

    received: Count
    pending: Count
    counted: Count
    dropped: Count
    late: Annotated[Count, Field(exclude_if=_nothing)] = 0
    """Of score campaigns: answers to a round that had closed."""


class SiteStatus(Wire):
    """One site's part."""

    site: Name
    enrolled: Count
    left: bool
    records: Tally


class CampaignStatus(Wire):
    """How far a campaign is and what it waits for; `sites` holds those that the asker may see."""

    campaign: Digest
    title: Name
    owner: Name
    state: CampaignState
    closed_by: ClosedBy | None
    planned_n: Count
    enrolled: Count
    records: Tally
    site_count: Count
    sites: tuple[SiteStatus, ...]
    opens_in: Annotated[float, Field(ge=0)]
    """Remaining seconds by the aggregator's clock, 0 when it has happened."""
    closes_in: Annotated[float, Field(ge=0)]
    waiting_for: tuple[str, ...]
    """Why there is no final result yet, in sentences; empty when there is one."""
    method: Annotated[Method, Field(exclude_if=_of_labels)] = "labels"
    rounds: Annotated[tuple[RoundStatus, ...], Field(exclude_if=_nothing)] = ()
    """Of score campaigns: those that were opened, in their order."""


class CampaignList(Wire):
    """The campaigns that the asker may see, newest first."""

    campaigns: tuple[CampaignStatus, ...]


class Role(StrEnum):
    """What a token may do: run the server, own campaigns, or contribute as one site."""

    ADMIN = "admin"
    OWNER = "owner"
    CONTRIBUTOR = "contributor"


class TokenInfo(Wire):
    """Who a token speaks for."""

    role: Role
    name: Name
    """The owner's name or the site's."""
    campaign: Digest | None
    """The one campaign it is for, if it is for one."""
    expires: Moment | None


class ServerInfo(Wire):
    """What a server says of itself to anyone."""

    service: str
    version: str
    protocols: tuple[str, ...]
    time: Moment
    keys: tuple[Digest, ...]
    """Fingerprints of its signing keys, the one in use first."""
    most_body_bytes: Count
