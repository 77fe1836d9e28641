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
from tacit_client.outbox import Outbox, ReportState
from tacit_client.progress import OnProgress

REFUSALS = (BodyTooLarge, InvalidRequest, UploadConflict, WrongCampaign)
"""Problems after which sending the same bytes again can never succeed."""

OVER = frozenset({CampaignState.CLOSED, CampaignState.ABANDONED})

_STATES = {
    UploadState.ACCEPTED: ReportState.ACCEPTED,
    UploadState.COUNTED: ReportState.COUNTED,
    UploadState.DROPPED: ReportState.DROPPED,
}


def send_outbox(ledger: Ledger, joined: JoinedCampaign, api: Api, on_progress: OnProgress) -> None:
    """Send every upload that waits, in order, and mark each as soon as it is answered.

    An upload for which the campaign closed too early is late. One that the server refuses for good
    is marked so, and its problem raised; `resend` goes on with the others.
    """
    outbox = Outbox(ledger, joined.number)
    waiting = outbox.waiting()
    if not waiting:
        return
    total, sent = sum(entry.records for entry in waiting), 0
    on_progress(0, total, "records sent")
    _enrol(ledger, joined, api)
    for entry in waiting:
        outbox.mark({entry.upload: _send(api, joined.digest, entry.upload, outbox)})
        sent += entry.records
        on_progress(sent, total, "records sent")


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
        outbox.mark({e.upload: ReportState.LATE for e in outbox.waiting() if e.upload not in known})
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
