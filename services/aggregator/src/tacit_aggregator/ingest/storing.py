"""One transaction of ingest: many uploads, each accepted, replayed or refused by itself."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from tacit.protocol import CampaignState, Problems, UploadState
from tacit_aggregator.database.rows import AnyRow
from tacit_aggregator.errors import Refusal
from tacit_aggregator.ingest import queries
from tacit_aggregator.ingest.submission import Stored, Submission

Outcome = Stored | Refusal


@dataclass
class _CampaignNow:
    state: str
    opens_at: float
    closes_at: float
    planned_n: int
    received: int


@dataclass
class _SiteNow:
    enrolled: int
    received: int


class Storing:
    """The uploads of one transaction, decided in the order they came."""

    def __init__(self, connection: Connection, now: float, room: int) -> None:
        self._connection = connection
        self._now = now
        self._room = room
        self._campaigns: dict[str, _CampaignNow] = {}
        self._sites: dict[tuple[str, str], _SiteNow | None] = {}
        self._stored: dict[tuple[str, str, str], tuple[bytes, Stored]] = {}
        self.accepted: list[Submission] = []

    def decide(self, batch: Sequence[Submission]) -> list[Outcome]:
        """Decide about each, with everything locked that this rests on."""
        if batch:
            self._read(batch)
        return [self._decide(submission) for submission in batch]

    def _read(self, batch: Sequence[Submission]) -> None:
        """Lock campaigns, then sites; what is stored is read when no other process adds to it."""
        groups: defaultdict[str, defaultdict[str, list[str]]] = defaultdict(
            lambda: defaultdict(list)
        )
        for submission in batch:
            groups[submission.campaign][submission.site].append(submission.upload)
        for row in queries.lock_campaigns(self._connection, groups):
            self._campaigns[row.digest] = _CampaignNow(
                row.state, row.opens_at, row.closes_at, row.planned_n, row.received
            )
        for campaign in sorted(groups):
            for row in queries.lock_sites(self._connection, campaign, groups[campaign]):
                self._sites[campaign, row.site] = _site_now(row)
        for campaign, of_sites in groups.items():
            for site, ids in of_sites.items():
                self._read_stored(campaign, site, ids)

    def _read_stored(self, campaign: str, site: str, ids: Sequence[str]) -> None:
        for row in queries.stored(self._connection, campaign, site, ids):
            known = Stored(UploadState(row.state), row.reason)
            self._stored[campaign, site, row.upload] = (row.body_hash, known)

    def _decide(self, submission: Submission) -> Outcome:
        key = (submission.campaign, submission.site, submission.upload)
        if key in self._stored:
            body_hash, known = self._stored[key]
            same = body_hash == submission.body_hash
            return known if same else Refusal(Problems.UPLOAD_CONFLICT)
        refusal = self._refusal(submission)
        if refusal is not None:
            return refusal
        self._accept(submission)
        accepted = Stored(UploadState.ACCEPTED)
        self._stored[key] = (submission.body_hash, accepted)
        return accepted

    def _refusal(self, submission: Submission) -> Refusal | None:
        campaign = self._campaigns.get(submission.campaign)
        if campaign is None:
            return Refusal(Problems.NOT_FOUND)
        if campaign.state != CampaignState.OPEN or self._now >= campaign.closes_at:
            return Refusal(Problems.CAMPAIGN_CLOSED)
        if self._now < campaign.opens_at:
            return Refusal(Problems.NOT_OPEN, retry_after=campaign.opens_at - self._now)
        refusal = _not_enrolled(self._sites.get((submission.campaign, submission.site)), submission)
        if refusal is None and submission.size > self._room:
            refusal = Refusal(Problems.OVERLOADED, retry_after=5)
        return refusal

    def _accept(self, submission: Submission) -> None:
        campaign = self._campaigns[submission.campaign]
        site = self._sites[submission.campaign, submission.site]
        if site is not None:
            site.received += submission.records
        campaign.received += submission.records
        if campaign.received >= campaign.planned_n:
            campaign.state = CampaignState.CLOSING.value
        self._room -= submission.size
        self.accepted.append(submission)

    def write(self) -> None:
        """Write all that are accepted."""
        if not self.accepted:
            return
        self._write_numbers()
        first = queries.next_number(self._connection, len(self.accepted))
        numbered = list(enumerate(self.accepted, first))
        queries.store(
            self._connection,
            [_upload_row(number, submission, self._now) for number, submission in numbered],
            [_pending_row(number, submission) for number, submission in numbered],
        )

    def _write_numbers(self) -> None:
        campaigns = {submission.campaign for submission in self.accepted}
        groups = {(submission.campaign, submission.site) for submission in self.accepted}
        queries.receive(
            self._connection,
            [
                {"of_campaign": campaign, "of_site": site, "now_received": now.received}
                for campaign, site in groups
                if (now := self._sites[campaign, site]) is not None
            ],
            [
                {"of_campaign": campaign, "now_received": self._campaigns[campaign].received}
                for campaign in campaigns
            ],
        )
        for campaign in campaigns:
            if self._campaigns[campaign].state != CampaignState.OPEN:
                queries.close_by_plan(self._connection, campaign, self._now)


def _site_now(row: AnyRow) -> _SiteNow | None:
    return None if row.left_at is not None else _SiteNow(row.enrolled, row.received)


def _not_enrolled(site: _SiteNow | None, submission: Submission) -> Refusal | None:
    if site is None:
        return Refusal(Problems.NOT_ENROLLED, "The site has not enrolled, or it has left.")
    if site.received + submission.records <= site.enrolled:
        return None
    return Refusal(
        Problems.NOT_ENROLLED,
        f"The site enrolled {site.enrolled} records and has sent {site.received};"
        f" there is no room for {submission.records} more.",
    )


def _upload_row(number: int, submission: Submission, now: float) -> dict[str, Any]:
    return {
        "number": number,
        "campaign": submission.campaign,
        "site": submission.site,
        "upload": submission.upload,
        "body_hash": submission.body_hash,
        "records": submission.records,
        "state": UploadState.ACCEPTED.value,
        "received_at": now,
    }


def _pending_row(number: int, submission: Submission) -> dict[str, Any]:
    return {
        "number": number,
        "campaign": submission.campaign,
        "site": submission.site,
        "records": submission.records,
        "labels": submission.labels,
        "evidence": submission.evidence,
        "evidence_dtype": submission.evidence_dtype,
        "uniforms": submission.uniforms,
        "attempts": 0,
    }
