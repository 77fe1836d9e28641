"""The model owner's side: create campaigns, follow them, fetch thresholds."""

import time
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Literal, Self, TypeVar

from tacit.errors import WrongKey
from tacit.protocol import (
    Campaign,
    CampaignStatus,
    Features,
    LabelCampaign,
    Model,
    Opened,
    Probabilities,
    ScoreCampaign,
    ServerInfo,
    Signed,
    ThresholdKind,
    TokenInfo,
)
from tacit.scores import HPS, Score
from tacit_client.api import Api
from tacit_client.errors import NotOver, NotReady, UnknownCampaign
from tacit_client.news import OVER, news
from tacit_client.terms import asked_by, checked_terms, moment_after, round_seconds, whole_second
from tacit_client.thresholds import ThresholdFile, VerifiedThreshold
from tacit_client.transport import Network

_LONGEST_PAUSE = 10.0
_SHORTEST_PAUSE = 0.1
_PAUSE = 1.0

AnyCampaign = TypeVar("AnyCampaign", bound=Campaign)


class Owner:
    """A model owner at one server; `key` is the fingerprint of the key that must sign everything.

    Campaigns are named by their digest.
    """

    def __init__(self, url: str, token: str, key: str, *, network: Network | None = None) -> None:
        self.url = url
        self.key = key
        self._api = Api(url, token, network)
        self._verified: set[str] = set()
        """Digests of campaigns that the pinned key has signed."""

    def disconnect(self) -> None:
        """Close the connections."""
        self._api.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.disconnect()

    def __repr__(self) -> str:
        return f"Owner({self.url!r}, key={self.key})"

    def server(self) -> ServerInfo:
        """What the server says of itself."""
        return self._api.server()

    def check_key(self) -> ServerInfo:
        """What the server says of itself; `WrongKey` if the pinned key is none of its keys.

        It tells a mistaken key before anything is done. What proves a key are signatures.
        """
        info = self._api.server()
        if self.key not in info.keys:
            raise WrongKey(
                "The pinned key is none of those that the server offers. Compare its fingerprint"
                " with the operator, by telephone."
            )
        return info

    def token(self) -> TokenInfo:
        """Who the token speaks for."""
        return self._api.token()

    def create(
        self,
        *,
        title: str,
        classes: Sequence[str],
        epsilon: float,
        alpha: float,
        planned_n: int,
        closes: datetime | timedelta,
        evidence: Probabilities | Features | Literal["probabilities"] = "probabilities",
        score: Score | None = None,
        delta: float | None = None,
        opens: datetime | None = None,
    ) -> Opened[LabelCampaign]:
        """A new campaign, published and verified: `.digest` and `.document`.

        It opens now, by the server's clock, unless `opens` says otherwise; `closes` is a date or
        how long it stays open. Dates need a time zone. The score is HPS if none is given. With δ
        the campaign has a starred threshold too. `BadTerms` says which terms make no campaign.
        """
        begins = self._opening(opens)
        with checked_terms():
            campaign = LabelCampaign.of(
                title=title,
                owner=self._api.token().name,
                classes=classes,
                epsilon=epsilon,
                evidence=Probabilities() if isinstance(evidence, str) else evidence,
                score=score or HPS(),
                alpha=alpha,
                planned_n=planned_n,
                opens=begins,
                closes=moment_after("closes", begins, closes),
                delta=delta,
            )
        return self.publish(campaign)

    def create_scores(  # noqa: PLR0913 -- the terms of a campaign are that many
        self,
        *,
        title: str,
        classes: Sequence[str],
        epsilon: float,
        alpha: float,
        planned_n: int,
        closes: datetime | timedelta,
        enrol_until: datetime | timedelta | None = None,
        round_for: timedelta | None = None,
        rounds: int | Sequence[int] = 10,
        least: int | None = None,
        tolerance: float = 0.0,
        score: Score | None = None,
        delta: float | None = None,
        model: Model | None = None,
        opens: datetime | None = None,
    ) -> Opened[ScoreCampaign]:
        """A new score campaign, published and verified; with δ its threshold is certified.

        The first question is asked when `planned_n` records are enrolled, or at `enrol_until`: by
        default after half of the campaign's time. `rounds` is how many there are, or the share of
        each; one lasts `round_for` at most, by default so long that all of them fit into the time
        that is left, and with fewer than `least` answers it is extended.
        """
        begins = self._opening(opens)
        ends = moment_after("closes", begins, closes)
        shares = (1,) * rounds if isinstance(rounds, int) else tuple(rounds)
        asked = _asked_from(begins, ends, enrol_until)
        with checked_terms():
            campaign = ScoreCampaign.of(
                title=title,
                owner=self._api.token().name,
                classes=classes,
                epsilon=epsilon,
                score=score or HPS(),
                alpha=alpha,
                planned_n=planned_n,
                opens=begins,
                enrol_until=asked,
                closes=ends,
                round_seconds=round_seconds(round_for, asked, ends, len(shares)),
                shares=shares,
                least=least,
                tolerance=tolerance,
                delta=delta,
                model=model,
            )
        return self.publish(campaign)

    def publish(self, campaign: AnyCampaign) -> Opened[AnyCampaign]:
        """Publish a campaign document; the answer must be that very document, signed."""
        signed = self._api.create(campaign)
        opened = signed.open(type(campaign), key=self.key, digest=campaign.digest)
        self._verified.add(opened.digest)
        return opened

    def campaigns(self) -> tuple[CampaignStatus, ...]:
        """The owner's campaigns, newest first."""
        return self._api.campaigns().campaigns

    def find(self, prefix: str) -> str:
        """The digest of the one campaign whose digest begins so."""
        found = [status.campaign for status in self.campaigns()]
        matching = [digest for digest in found if digest.startswith(prefix)]
        if len(matching) != 1:
            raise UnknownCampaign
        return matching[0]

    def campaign(self, digest: str) -> Opened[Campaign]:
        """The campaign document, verified."""
        return self.signed_campaign(digest).open(Campaign, key=self.key, digest=digest)

    def signed_campaign(self, digest: str) -> Signed:
        """The campaign document with its signature, verified."""
        signed = self._api.campaign(_digest(digest))
        signed.open(Campaign, key=self.key, digest=digest)
        self._verified.add(digest)
        return signed

    def status(self, digest: str) -> CampaignStatus:
        """Where a campaign stands."""
        return self._api.status(self._signed_by_the_key(digest))

    def follow(
        self, digest: str, *, every: float = 1.0, timeout: float | None = None
    ) -> Iterator[CampaignStatus]:
        """Statuses as they change, until the campaign is closed or abandoned, or time is up."""
        ends = None if timeout is None else time.monotonic() + timeout
        last: CampaignStatus | None = None
        while True:
            status = self.status(digest)
            if last is None or news(status) != news(last):
                yield status
                last = status
            if status.state in OVER or (ends is not None and time.monotonic() >= ends):
                return
            time.sleep(max(every, _SHORTEST_PAUSE))

    def close(self, digest: str) -> CampaignStatus:
        """Take no more uploads; ended by hand, there will be no starred threshold."""
        return self._api.close_campaign(self._signed_by_the_key(digest))

    def abandon(self, digest: str) -> CampaignStatus:
        """Erase what is pending and end without results."""
        return self._api.abandon(self._signed_by_the_key(digest))

    def threshold(
        self,
        digest: str,
        which: ThresholdKind | Literal["nominal", "starred"] | None = None,
        *,
        wait: float | None = None,
    ) -> VerifiedThreshold:
        """A threshold, verified against the pinned key and the campaign's terms.

        Score campaigns have one, starred if they have δ; of a label campaign it is the nominal one
        unless `which` says otherwise.

        Without `wait` it is the one there is now, of the records counted so far; while there is
        none, `NotReady` says what is missing. With `wait` it is the final one: asked for until the
        campaign is over, and then `NotReady` or `NotOver` if that many seconds have passed.
        """
        campaign = self.signed_campaign(digest)
        terms = campaign.open(Campaign, key=self.key, digest=digest).document
        kind = _usual_kind(terms) if which is None else ThresholdKind(which)
        ends = time.monotonic() + (wait or 0.0)
        while True:
            try:
                file = ThresholdFile(threshold=self._api.threshold(digest, kind), campaign=campaign)
                found = VerifiedThreshold.verify(file, key=self.key, campaign=digest, which=kind)
                if wait is None or found.document.final:
                    return found
                raise NotOver
            except (NotReady, NotOver) as error:
                left = ends - time.monotonic()
                if left <= 0:
                    raise
                asked = error.retry_after if isinstance(error, NotReady) else None
                pause = _PAUSE if asked is None else asked
                time.sleep(min(left, max(_SHORTEST_PAUSE, min(pause, _LONGEST_PAUSE))))

    def _opening(self, given: datetime | None) -> datetime:
        """When a new campaign opens: now, by the clock of the server with the pinned key."""
        now = self.check_key().time
        return now if given is None else whole_second("opens", given)

    def _signed_by_the_key(self, digest: str) -> str:
        """The digest, once the pinned key is known to have signed its campaign."""
        if digest not in self._verified:
            self.signed_campaign(digest)
        return digest


def _usual_kind(campaign: Campaign) -> ThresholdKind:
    """The kind of threshold that somebody wants who does not say which."""
    certified = isinstance(campaign, ScoreCampaign) and campaign.delta is not None
    return ThresholdKind.STARRED if certified else ThresholdKind.NOMINAL


def _asked_from(opens: datetime, closes: datetime, given: datetime | timedelta | None) -> datetime:
    """When the first question is asked at the latest."""
    if given is None:
        return asked_by(opens, closes)
    return moment_after("enrol_until", opens, given)


def _digest(digest: str) -> str:
    """A digest that may stand in an address."""
    if len(digest) != 64 or digest.strip("0123456789abcdef"):
        raise UnknownCampaign("A campaign is named by its digest: 64 hexadecimal digits.")
    return digest
