"""Where a campaign stands, from its rows, in the words of the protocol."""

from collections.abc import Iterable, Sequence

from tacit.protocol import CampaignState, CampaignStatus, ClosedBy, SiteStatus, Tally
from tacit_aggregator.clock import moment
from tacit_aggregator.database.rows import AnyRow
from tacit_aggregator.rounds.standing import SearchNow


def state_of(campaign: AnyRow, now: float) -> CampaignState:
    """Its state now: what is stored, and what its dates make of it."""
    stored = CampaignState(campaign.state)
    if stored is not CampaignState.OPEN:
        return stored
    if now >= campaign.closes_at:
        return CampaignState.CLOSING
    return CampaignState.WAITING if now < campaign.opens_at else CampaignState.OPEN


def site_status(site: AnyRow) -> SiteStatus:
    """One site's part."""
    return SiteStatus(
        site=site.site,
        enrolled=site.enrolled,
        left=site.left_at is not None,
        records=tally([site]),
    )


def tally(sites: Iterable[AnyRow]) -> Tally:
    """The records of these sites by what became of them."""
    received = counted = dropped = late = 0
    for site in sites:
        received += site.received
        counted += site.counted
        dropped += site.dropped
        late += site.late
    return Tally(
        received=received,
        pending=received - counted - dropped - late,
        counted=counted,
        dropped=dropped,
        late=late,
    )


def status_of(
    campaign: AnyRow,
    sites: Sequence[AnyRow],
    now: float,
    *,
    only: str | None = None,
    search: SearchNow | None = None,
) -> CampaignStatus:
    """The status of a campaign with these sites; `only` is the one site that may be shown.

    `search` is where the search of a score campaign stands.
    """
    state = state_of(campaign, now)
    records = tally(sites)
    closed_by = campaign.closed_by
    if state is CampaignState.CLOSING and closed_by is None:
        closed_by = ClosedBy.DATE
    waits = waiting_for(campaign, state, records) if search is None else search.waiting_for(now)
    takes_uploads = state in (CampaignState.WAITING, CampaignState.OPEN)
    return CampaignStatus(
        campaign=campaign.digest,
        title=campaign.title,
        owner=campaign.owner,
        state=state,
        closed_by=None if closed_by is None else ClosedBy(closed_by),
        planned_n=campaign.planned_n,
        enrolled=sum(site.enrolled for site in sites) if search is None else search.enrolled,
        records=records,
        site_count=len(sites),
        sites=tuple(site_status(site) for site in sites if only in (None, site.site)),
        opens_in=max(0.0, campaign.opens_at - now) if takes_uploads else 0.0,
        closes_in=max(0.0, campaign.closes_at - now) if takes_uploads else 0.0,
        waiting_for=tuple(waits),
        method=campaign.method,
        rounds=() if search is None else search.round_statuses(sites, now, only),
    )


def waiting_for(campaign: AnyRow, state: CampaignState, records: Tally) -> Iterable[str]:
    """Why there is no final result yet, in sentences."""
    if state is CampaignState.ABANDONED:
        yield "The campaign was abandoned: there will be no result."
    if state is CampaignState.CLOSED and not records.counted:
        yield "The campaign closed without a counted record: there will be no result."
    if state is CampaignState.WAITING:
        yield f"The campaign opens on {moment(campaign.opens_at)}."
    if state in (CampaignState.WAITING, CampaignState.OPEN):
        yield progress(campaign, records)
    if records.pending:
        yield waiting_to_be_scored(records)


def progress(campaign: AnyRow, records: Tally) -> str:
    """How far a campaign that takes uploads is from its end."""
    return (
        f"{records.received} of {campaign.planned_n} planned records received;"
        f" it ends at the plan or on {moment(campaign.closes_at)}."
    )


def waiting_to_be_scored(records: Tally) -> str:
    """How many records are accepted and not counted."""
    one = records.pending == 1
    return f"{records.pending} {'record is' if one else 'records are'} waiting to be scored."
