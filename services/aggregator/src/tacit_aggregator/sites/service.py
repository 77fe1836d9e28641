"""Enrolling and leaving."""

from sqlalchemy import Connection

from tacit.protocol import FieldError, Problems, SiteStatus
from tacit_aggregator.campaigns.service import check_takes_enrolments, visible
from tacit_aggregator.campaigns.standing import site_status
from tacit_aggregator.errors import Refusal
from tacit_aggregator.sites import queries
from tacit_aggregator.tokens.service import Identity


def enrol(
    connection: Connection, caller: Identity, digest: str, records: int, now: float
) -> SiteStatus:
    """Say how many records the site has; the number may rise, or fall to what was received."""
    campaign = visible(connection, caller, digest, lock=True)
    check_takes_enrolments(campaign, now)
    site = queries.find(connection, digest, caller.name)
    if campaign.asked_n is not None and (site is None or site.enrolled != records):
        raise Refusal(Problems.ENROLMENT_CLOSED)
    if site is None:
        values = {"campaign": digest, "site": caller.name, "enrolled": records, "enrolled_at": now}
        queries.store(connection, values)
    elif site.left_at is not None:
        raise Refusal(Problems.NOT_ENROLLED, "This site has left the campaign.")
    elif records < site.received:
        message = f"{site.received} records were received already"
        raise Refusal(
            Problems.INVALID_REQUEST, errors=(FieldError(field="records", message=message),)
        )
    else:
        queries.change(connection, digest, caller.name, enrolled=records)
    return _status(connection, caller, digest)


def leave(connection: Connection, caller: Identity, digest: str, now: float) -> SiteStatus:
    """Send nothing more, for good; what was accepted stays and is counted. Again: no change."""
    visible(connection, caller, digest, lock=True)
    site = queries.find(connection, digest, caller.name)
    if site is None:
        values = {"campaign": digest, "site": caller.name, "enrolled": 0, "enrolled_at": now}
        queries.store(connection, {**values, "left_at": now})
    elif site.left_at is None:
        queries.change(connection, digest, caller.name, left_at=now)
    return _status(connection, caller, digest)


def _status(connection: Connection, caller: Identity, digest: str) -> SiteStatus:
    site = queries.find(connection, digest, caller.name)
    if site is None:
        raise Refusal(Problems.NOT_FOUND)
    return site_status(site)
