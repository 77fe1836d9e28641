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
        self._last = 0
        self._campaigns: dict[str, _CampaignNow] = {}
        self._sites: dict[tuple[str, str], _SiteNow | None] = {}
        self._stored: dict[tuple[str, str, str], tuple[bytes, Stored]] = {}
        self.accepted: list[Submission] = []

    def store(self, batch: Sequence[Submission]) -> list[Outcome]:
        """Decide about each, and write all that are accepted."""
        self._read(batch)
        outcomes = [self._decide(submission) for submission in batch]
        if self.accepted:
            self._write()
        return outcomes

    def _read(self, batch: Sequence[Submission]) -> None:
        groups: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        for submission in batch:
            groups[submission.campaign, submission.site].append(submission.upload)
        for (campaign, site), ids in groups.items():
            for row in queries.stored(self._connection, campaign, site, ids):
                known = Stored(UploadState(row.state), row.reason)
                self._stored[campaign, site, row.upload] = (row.body_hash, known)
            self._read_standing(campaign, site)

    def _read_standing(self, campaign: str, site: str) -> None:
        row = queries.standing(self._connection, campaign, site)
        if row is None:
            return
        self._campaigns.setdefault(
            campaign,
            _CampaignNow(
                row.state, row.opens_at, row.closes_at, row.planned_n, row.campaign_received
            ),
        )
        self._sites[campaign, site] = _site_now(row)
        self._last = row.last

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
        refusal = _not_enrolled(self._sites[submission.campaign, submission.site], submission)
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

    def _write(self) -> None:
        numbered = list(enumerate(self.accepted, self._last + 1))
        queries.store(
            self._connection,
            [_upload_row(number, submission, self._now) for number, submission in numbered],
            [_pending_row(number, submission) for number, submission in numbered],
        )
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
    if row.enrolled is None or row.left_at is not None:
        return None
    return _SiteNow(row.enrolled, row.site_received)


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
