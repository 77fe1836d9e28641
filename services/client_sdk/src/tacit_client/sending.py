"""Sending: enrol, send what waits in the outbox, write down what became of it."""

from collections.abc import Iterable

from tacit.protocol import CampaignState, CampaignStatus, Receipt, UploadState
from tacit_client.api import Api
from tacit_client.errors import (
    BodyTooLarge,
    CampaignClosed,
    InvalidRequest,
    UploadConflict,
    WrongCampaign,
)
from tacit_client.ledger import JoinedCampaign, Ledger, Membership
from tacit_client.ledger.campaigns import finish_campaign
from tacit_client.ledger.records import drawn_count
from tacit_client.outbox import Outbox, OutboxEntry, ReportState
from tacit_client.progress import OnProgress

REFUSALS = (BodyTooLarge, InvalidRequest, UploadConflict, WrongCampaign)
"""Problems after which sending the same bytes again can never succeed."""

OVER = frozenset({CampaignState.CLOSED, CampaignState.ABANDONED})

_STATES = {
    UploadState.ACCEPTED: ReportState.ACCEPTED,
    UploadState.COUNTED: ReportState.COUNTED,
    UploadState.DROPPED: ReportState.DROPPED,
}

_ENDS = {ReportState.DRAWN: ReportState.LATE, ReportState.ACCEPTED: ReportState.DROPPED}
"""What becomes of an upload that the server does not know when the campaign is over."""


def send_outbox(
    ledger: Ledger, joined: JoinedCampaign, api: Api, on_progress: OnProgress
) -> list[OutboxEntry]:
    """Send every upload that waits or was lost, in order, and mark each as soon as it is answered.

    An upload for which the campaign closed too early is late. One that the server refuses for good
    is marked so, and its problem raised; `resend` goes on with the others.
    """
    outbox = Outbox(ledger, joined.number)
    waiting = [*_lost(outbox, joined, api), *outbox.waiting()]
    if not waiting:
        return []
    total, sent = sum(entry.records for entry in waiting), 0
    on_progress(0, total, "records sent")
    _enrol(ledger, joined, api)
    for entry in waiting:
        outbox.mark({entry.upload: _send(api, joined.digest, entry.upload, outbox)})
        sent += entry.records
        on_progress(sent, total, "records sent")
    return waiting


def _lost(outbox: Outbox, joined: JoinedCampaign, api: Api) -> list[OutboxEntry]:
    """Uploads that the server accepted once and does not know now: it was restored from a copy."""
    accepted = outbox.entries(ReportState.ACCEPTED)
    if not accepted:
        return []
    known = {receipt.upload for receipt in api.receipts(joined.digest)}
    return [entry for entry in accepted if entry.upload not in known]


def _enrol(ledger: Ledger, joined: JoinedCampaign, api: Api) -> None:
    try:
        api.enrol(joined.digest, drawn_count(ledger, joined.number))
    except CampaignClosed:
        # What was accepted before a crash still gets its receipt; the rest will be late.
        return


def _send(api: Api, digest: str, upload: str, outbox: Outbox) -> ReportState:
    try:
        return _STATES[api.upload(digest, upload, outbox.body(upload)).state]
    except CampaignClosed:
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
            with ledger.transaction("end campaign") as connection:
                finish_campaign(connection, joined.number, Membership.ENDED)
            ledger.erase_log()
    return status


def leave(ledger: Ledger, joined: JoinedCampaign, api: Api) -> None:
    """Tell the server, then erase key, token and bodies; what was accepted stays counted."""
    api.leave(joined.digest)
    # An upload whose answer was lost is accepted all the same.
    mark_receipts(Outbox(ledger, joined.number), api.receipts(joined.digest))
    with ledger.transaction("leave campaign") as connection:
        finish_campaign(connection, joined.number, Membership.LEFT)
    ledger.erase_log()
