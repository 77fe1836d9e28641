"""Creating, showing, closing and abandoning campaigns."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import Connection

from tacit.protocol import (
    Campaign,
    CampaignList,
    CampaignState,
    CampaignStatus,
    ClosedBy,
    Features,
    LabelCampaign,
    Model,
    Problems,
    Role,
    ScoreCampaign,
)
from tacit_aggregator.campaigns import queries
from tacit_aggregator.campaigns.documents import Documents
from tacit_aggregator.campaigns.standing import state_of, status_of
from tacit_aggregator.database.rows import AnyRow
from tacit_aggregator.errors import Refusal
from tacit_aggregator.keys.service import current_key
from tacit_aggregator.models.service import find as find_model
from tacit_aggregator.rounds import queries as rounds
from tacit_aggregator.rounds.standing import searches_now
from tacit_aggregator.tokens.service import Identity


def visible(connection: Connection, caller: Identity, digest: str, *, lock: bool = False) -> AnyRow:
    """The campaign, if the caller may see it; otherwise there is none.

    Locked, it stays as it is until the commit.
    """
    if caller.role is Role.CONTRIBUTOR and caller.campaign != digest:
        raise Refusal(Problems.NOT_FOUND)
    campaign = queries.standing(connection, digest, lock=lock)
    if campaign is None or (caller.role is Role.OWNER and campaign.owner != caller.name):
        raise Refusal(Problems.NOT_FOUND)
    return campaign


def check_new(connection: Connection, campaign: Campaign, caller: Identity, now: float) -> None:
    """Refuse a campaign that this caller may not create or that could not be run here."""
    if caller.role is not Role.ADMIN and campaign.owner != caller.name:
        raise Refusal(Problems.FORBIDDEN, "The document's owner must be the token's name.")
    if campaign.closes.timestamp() <= now:
        raise Refusal(Problems.INVALID_REQUEST, "closes is in the past by this server's clock.")
    if isinstance(campaign, LabelCampaign) and isinstance(campaign.evidence, Features):
        _check_features(connection, campaign, campaign.evidence)
    if isinstance(campaign, ScoreCampaign) and campaign.model is not None:
        _check_model(connection, campaign, campaign.model)


def create(
    connection: Connection, campaign: Campaign, digest: str, secret: bytes, now: float
) -> str:
    """Sign and store a campaign that does not exist yet: the signed document, as JSON."""
    key = current_key(connection, secret)
    document = key.sign(campaign)
    signed = document.model_dump_json()
    queries.store(
        connection,
        {
            "digest": digest,
            "payload": document.payload,
            "signed": signed,
            "key": key.fingerprint,
            "title": campaign.title,
            "owner": campaign.owner,
            "planned_n": campaign.planned_n,
            "opens_at": campaign.opens.timestamp(),
            "closes_at": campaign.closes.timestamp(),
            "created_at": now,
            "state": CampaignState.OPEN.value,
            "received": 0,
            "method": campaign.method,
            **_of_rounds(campaign),
        },
    )
    return signed


def _of_rounds(campaign: Campaign) -> dict[str, Any]:
    """What moves a search on, where it is found without reading the document."""
    if not isinstance(campaign, ScoreCampaign):
        return {}
    plan = campaign.rounds
    return {"enrol_until": plan.enrol_until.timestamp(), "least": plan.least}


def listing(
    connection: Connection,
    documents: Documents,
    caller: Identity,
    methods: Collection[str],
    now: float,
) -> CampaignList:
    """The campaigns of these methods that the caller may see, newest first."""
    owner = caller.name if caller.role is Role.OWNER else None
    rows = queries.standings(connection, methods, owner=owner, digest=caller.campaign)
    return CampaignList(campaigns=_statuses(connection, documents, caller, rows, now))


def status(
    connection: Connection, documents: Documents, caller: Identity, digest: str, now: float
) -> CampaignStatus:
    """Where one campaign stands."""
    campaign = visible(connection, caller, digest)
    (found,) = _statuses(connection, documents, caller, [campaign], now)
    return found


def close(connection: Connection, caller: Identity, digest: str, now: float) -> None:
    """Take no more uploads; what was accepted is still counted. Again: no change."""
    campaign = visible(connection, caller, digest, lock=True)
    if campaign.state == CampaignState.OPEN:
        reason = ClosedBy.DATE if now >= campaign.closes_at else ClosedBy.HAND
        queries.set_state(connection, digest, CampaignState.CLOSING.value, reason.value, now)


def abandon(
    connection: Connection, caller: Identity, digest: str, now: float
) -> tuple[int, int, int]:
    """Erase what waits and the counts: (uploads, records, bytes) dropped. Again: no change."""
    campaign = visible(connection, caller, digest, lock=True)
    if campaign.state == CampaignState.CLOSED:
        raise Refusal(Problems.CAMPAIGN_CLOSED, "A closed campaign cannot be abandoned.")
    if campaign.state == CampaignState.ABANDONED:
        return 0, 0, 0
    rounds.lock_all(connection, digest)
    queries.lock_sites(connection, digest)
    dropped = queries.drop_pending(connection, digest)
    rounds.drop(connection, digest, now)
    queries.erase_sketches(connection, digest)
    queries.set_state(connection, digest, CampaignState.ABANDONED.value, campaign.closed_by, now)
    return dropped


def check_takes_enrolments(campaign: AnyRow, now: float) -> None:
    """Refuse when the campaign takes nothing any more."""
    if state_of(campaign, now) not in (CampaignState.WAITING, CampaignState.OPEN):
        raise Refusal(Problems.CAMPAIGN_CLOSED)


def _statuses(
    connection: Connection,
    documents: Documents,
    caller: Identity,
    rows: Sequence[AnyRow],
    now: float,
) -> tuple[CampaignStatus, ...]:
    digests = [row.digest for row in rows]
    sites = defaultdict(list)
    for site in queries.sites_of(connection, digests):
        sites[site.campaign].append(site)
    searches = searches_now(connection, documents, digests)
    only = caller.name if caller.role is Role.CONTRIBUTOR else None
    return tuple(
        status_of(row, sites[row.digest], now, only=only, search=searches.get(row.digest))
        for row in rows
    )


def _check_model(connection: Connection, campaign: ScoreCampaign, asked: Model) -> None:
    model = find_model(connection, asked.digest)
    if model is None or not model.for_sites:
        raise Refusal(
            Problems.UNKNOWN_MODEL,
            "No model with this digest is registered here for sites: models add --for-sites.",
        )
    gives = (model.dtype, model.shape, model.classes, model.outputs)
    if gives != (asked.dtype, asked.shape, campaign.k, asked.outputs):
        raise Refusal(
            Problems.UNKNOWN_MODEL,
            f"The registered model takes {model.dtype} of shape {list(model.shape)}"
            f" and gives {model.outputs} of {model.classes} classes.",
        )


def _check_features(connection: Connection, campaign: Campaign, features: Features) -> None:
    model = find_model(connection, features.model)
    if model is None:
        raise Refusal(Problems.UNKNOWN_MODEL, "No model with this digest is registered here.")
    takes = (model.dtype, model.shape, model.classes)
    if takes != (features.dtype, features.shape, campaign.k):
        raise Refusal(
            Problems.UNKNOWN_MODEL,
            f"The registered model takes {model.dtype} of shape {list(model.shape)}"
            f" and tells {model.classes} classes apart.",
        )
