"""One site's part in a score campaign, in sentences: what is needed of it, or why nothing is."""

from collections.abc import Sequence
from dataclasses import dataclass

from tacit.protocol import CampaignState, CampaignStatus
from tacit_client.cli.output import many
from tacit_client.ledger.dealt import RoundHere

_COMMAND = "tacit contribute FILE"
_TOO_LATE = (
    "nothing of this site: it had enrolled nothing when the first question was asked, and can take"
    " no part any more; join another campaign."
)


@dataclass(frozen=True)
class OwnPart:
    """What there is to say of this site; empty where that is nothing."""

    needed: str = ""
    """What the campaign waits for of it, as that goes on after "waits for"."""
    to_answer: str = ""
    """What it takes that its records answer, when it is not waited for now."""

    def lines(self) -> list[str]:
        """The same in lines of their own."""
        return [
            line for line in (self.needed and f"Waits for {self.needed}", self.to_answer) if line
        ]


def own_part(
    status: CampaignStatus, site: str, here: Sequence[RoundHere], *, busy: bool
) -> OwnPart:
    """The part of this site by the server's status, and by what its ledger has dealt out.

    While another process holds the ledger (`busy`), no command is named as the next step. Whether
    that process answers is not known: it may be at work for another campaign.
    """
    own = next((each for each in status.sites if each.site == site), None)
    goes_on = status.state in (CampaignState.WAITING, CampaignState.OPEN)
    if status.method != "scores" or not goes_on or (own is not None and own.left):
        return OwnPart()
    command = "" if busy else f": {_COMMAND}"
    awaited = [each.round + 1 for each in status.rounds if site in each.waiting_for]
    if awaited:
        return OwnPart(needed=f"this site to answer round {awaited[-1]}{command}.")
    if own is None or not own.enrolled:
        first = f"this site, which has enrolled nothing yet{command}."
        return OwnPart(needed=_TOO_LATE if status.rounds else first)
    return OwnPart(to_answer=_to_answer(own.enrolled, len(status.rounds), here))


def _to_answer(enrolled: int, asked: int, here: Sequence[RoundHere]) -> str:
    if asked and not any(each.round >= asked and each.answered < each.dealt for each in here):
        return ""
    return (
        f"This site has enrolled {many(enrolled, 'record')}: to answer, {_COMMAND} has to be"
        " running when a question comes, or be run before that round closes."
    )
