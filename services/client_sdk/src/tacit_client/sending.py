"""Sending: enrol, send what waits in the outbox, write down what became of it."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace

from tacit.protocol import CampaignStatus, Receipt, UploadState
from tacit_client.api import Api
from tacit_client.dates import is_past
from tacit_client.errors import (
    BodyTooLarge,
    CampaignClosed,
    EnrolmentClosed,
    InvalidRequest,
    NotAServer,
    RoundClosed,
    UploadConflict,
    WrongCampaign,
    WrongQuestion,
)
from tacit_client.ledger import JoinedCampaign, Ledger, Membership
from tacit_client.ledger.campaigns import finish_campaign
from tacit_client.ledger.records import drawn_count
from tacit_client.news import OVER
from tacit_client.outbox import Outbox, OutboxEntry, ReportState
from tacit_client.progress import OnProgress

REFUSALS = (BodyTooLarge, InvalidRequest, UploadConflict, WrongCampaign, WrongQuestion)
"""Problems after which sending the same bytes again can never succeed."""

MOST_ENROLLED = 2**40
"""The most records that an `Enrolment` can say."""

_STATES = {
    UploadState.ACCEPTED: ReportState.ACCEPTED,
    UploadState.COUNTED: ReportState.COUNTED,
    UploadState.DROPPED: ReportState.DROPPED,
    UploadState.LATE: ReportState.LATE,
}

_ENDS = {ReportState.DRAWN: ReportState.LATE, ReportState.ACCEPTED: ReportState.DROPPED}
"""What becomes of an upload that the server does not know when the campaign is over."""


def send_outbox(
    ledger: Ledger, joined: JoinedCampaign, api: Api, on_progress: OnProgress
) -> list[OutboxEntry]:
    """Send every upload that waits or was lost, in order, and mark each as soon as it is answered.

    They are returned with the states that were answered. An upload for which the campaign closed
    too early is late. One that the server refuses for good is marked so, and its problem raised;
    `resend` goes on with the others.
    """
    outbox = Outbox(ledger, joined.number)
    waiting = [*lost(outbox, joined, api), *outbox.waiting()]
    if waiting:
        enrol(api, joined.digest, joined.site, drawn_count(ledger, joined.number))
    return send_uploads(ledger, joined, api, waiting, on_progress)


def send_uploads(
    ledger: Ledger,
    joined: JoinedCampaign,
    api: Api,
    uploads: Sequence[OutboxEntry],
    on_progress: OnProgress,
) -> list[OutboxEntry]:
    """Send these uploads, in order, and mark each as soon as it is answered."""
    ledger.check_witnessed()
    outbox = Outbox(ledger, joined.number)
    if not uploads:
        return []
    total, sent = sum(entry.records for entry in uploads), 0
    on_progress(0, total, "records sent")
    answered = []
    for entry in uploads:
        state = _send(api, joined.digest, entry.upload, outbox)
        outbox.mark({entry.upload: state})
        answered.append(replace(entry, state=state))
        sent += entry.records
        on_progress(sent, total, "records sent")
    return answered


def lost(outbox: Outbox, joined: JoinedCampaign, api: Api) -> list[OutboxEntry]:
    """Uploads that the server took or counted, and does not know now: it was restored from a copy.

    One that was counted stays so in the ledger, whatever is answered now.
    """
    taken = outbox.entries(ReportState.ACCEPTED, ReportState.COUNTED)
    if not taken:
        return []
    known = {receipt.upload for receipt in api.receipts(joined.digest)}
    return [entry for entry in taken if entry.upload not in known]


def enrol(api: Api, digest: str, site: str, records: int) -> int:
    """Say how many records the site has; never fewer than were enrolled, by whatever way.

    How many are enrolled then; fewer than that, if nobody can enrol any more.
    """
    sites = api.status(digest).sites
    enrolled = max((each.enrolled for each in sites if each.site == site), default=0)
    if enrolled > MOST_ENROLLED:
        raise NotAServer("The server says that this site enrolled more records than any can have.")
    # What was accepted before a crash still gets its receipt; the rest will be late.
    with suppress(CampaignClosed, EnrolmentClosed):
        return api.enrol(digest, max(records, enrolled)).enrolled
    return enrolled


def _send(api: Api, digest: str, upload: str, outbox: Outbox) -> ReportState:
    try:
        return _STATES[api.upload(digest, upload, outbox.body(upload)).state]
    except (CampaignClosed, RoundClosed):
        return ReportState.LATE
    except REFUSALS:
        outbox.mark({upload: ReportState.REFUSED})
        raise


def mark_receipts(outbox: Outbox, receipts: Iterable[Receipt]) -> None:
    """Write down the states that receipts tell; those of uploads not in the ledger are left out."""
    states = {receipt.upload: _STATES[receipt.state] for receipt in receipts}
    if states:
        outbox.mark(states)


def refresh(ledger: Ledger, joined: JoinedCampaign, api: Api) -> CampaignStatus:
    """Bring the ledger to what the server says; erase key and bodies once the campaign is over."""
    outbox = Outbox(ledger, joined.number)
    # The status is asked for first: if it says closed, the receipts that follow are final.
    status = api.status(joined.digest)
    receipts = list(api.receipts(joined.digest))
    mark_receipts(outbox, receipts)
    if status.state in OVER and joined.state is Membership.JOINED:
        known = {receipt.upload for receipt in receipts}
        for state, end in _ENDS.items():
            unknown = (e.upload for e in outbox.entries(state) if e.upload not in known)
            outbox.mark(dict.fromkeys(unknown, end))
        if not outbox.entries(ReportState.DRAWN, ReportState.ACCEPTED):
            _end(ledger, joined)
    return status


def end_by_date(ledger: Ledger, joined: JoinedCampaign) -> None:
    """Erase key and bodies if the campaign's date has passed and nothing waits to be sent.

    For a site without a network, to which no server can say that the campaign is over.
    """
    past = is_past(joined.document(), ledger.clock())
    if past and joined.state is Membership.JOINED and not Outbox(ledger, joined.number).waiting():
        _end(ledger, joined)


def _end(ledger: Ledger, joined: JoinedCampaign) -> None:
    with ledger.transaction("end campaign") as connection:
        finish_campaign(connection, joined.number, Membership.ENDED)
    ledger.erase_log()


def leave(ledger: Ledger, joined: JoinedCampaign, api: Api | None) -> None:
    """Tell the server, then erase key, token and bodies; what was accepted stays counted.

    Without an `api` no server is told. What was exported before could still be submitted.
    """
    if api is not None:
        api.leave(joined.digest)
        # An upload whose answer was lost is accepted all the same.
        mark_receipts(Outbox(ledger, joined.number), api.receipts(joined.digest))
    with ledger.transaction("leave campaign") as connection:
        finish_campaign(connection, joined.number, Membership.LEFT)
    ledger.erase_log()
