"""Label campaigns: check, draw and send the reports of records, all in one call."""

from tacit.protocol import CampaignState, LabelCampaign
from tacit_client import sending
from tacit_client.api import Api
from tacit_client.contribution import Contribution
from tacit_client.drawing import draw
from tacit_client.errors import CampaignEnded, NotYetOpen
from tacit_client.ledger.records import drawn_count, hashes_of, undrawn
from tacit_client.participation import Participation
from tacit_client.progress import OnProgress
from tacit_client.records import Records


def contribute(
    part: Participation[LabelCampaign], api: Api, records: Records, on_progress: OnProgress
) -> Contribution:
    """Draw the records never drawn, and send everything that waits."""
    status = api.status(part.joined.digest)
    if status.state is CampaignState.WAITING:
        raise NotYetOpen(opens_in=status.opens_in)
    part.check_not_left(status)
    if status.state is not CampaignState.OPEN:
        return _finish(part, api, records, on_progress)
    part.check_alone(status, drawn_count(part.ledger, part.joined.number))
    drawn = draw(part, records)
    sent = sending.send_outbox(part.ledger, part.joined, api, on_progress)
    return Contribution.of(sent, records=len(records), drawn=drawn.drawn, already=drawn.already)


def resend(part: Participation[LabelCampaign], api: Api, on_progress: OnProgress) -> Contribution:
    """Send what waits, if today's policy lets leave what was drawn under another."""
    part.check_allowed()
    return Contribution.of(sending.send_outbox(part.ledger, part.joined, api, on_progress))


def _finish(
    part: Participation[LabelCampaign], api: Api, records: Records, on_progress: OnProgress
) -> Contribution:
    """Send what waits to a campaign that takes no new records; refuse to draw for it."""
    hashes, persons = hashes_of(part.ledger, records.ids, records.persons)
    fresh = len(undrawn(part.ledger, part.joined.number, hashes, persons))
    part.check_allowed()
    sent = sending.send_outbox(part.ledger, part.joined, api, on_progress)
    if fresh:
        raise CampaignEnded
    return Contribution.of(sent, records=len(records), already=len(records))
