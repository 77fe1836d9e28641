"""The protocol's requests, one method each."""

from collections.abc import Iterator
from pathlib import Path
from typing import Self

from tacit.protocol import (
    Campaign,
    CampaignList,
    CampaignStatus,
    CurrentRound,
    Enrolment,
    Receipt,
    Receipts,
    RoundDone,
    RoundStatus,
    ServerInfo,
    Signed,
    SiteStatus,
    ThresholdKind,
    TokenInfo,
)
from tacit_client.errors import NotAServer
from tacit_client.transport import Network, Transport

_MOST_PAGES = 100_000
_PAGE = 1000


class Api:
    """What can be asked of a server; answers are what the protocol says, or an error is raised."""

    def __init__(self, url: str, token: str | None = None, network: Network | None = None) -> None:
        self._transport = Transport(url, token, network)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()

    def server(self) -> ServerInfo:
        """What the server says of itself."""
        return self._transport.send("read server", "GET", "/v1/server").read(ServerInfo)

    def token(self) -> TokenInfo:
        """Who the token speaks for."""
        return self._transport.send("read token", "GET", "/v1/token").read(TokenInfo)

    def campaign(self, digest: str) -> Signed:
        """A signed campaign, not verified yet."""
        return self._transport.send("fetch campaign", "GET", _path(digest)).read(Signed)

    def create(self, campaign: Campaign) -> Signed:
        """Publish a campaign; the same again gives the same answer."""
        path, body = _path(campaign.digest), campaign.to_bytes()
        return self._transport.send("create campaign", "PUT", path, body=body).read(Signed)

    def campaigns(self) -> CampaignList:
        """The campaigns that the token may see."""
        return self._transport.send("list campaigns", "GET", "/v1/campaigns").read(CampaignList)

    def status(self, digest: str) -> CampaignStatus:
        """Where a campaign stands."""
        answer = self._transport.send("fetch status", "GET", _path(digest, "status"))
        return _about(digest, answer.read(CampaignStatus))

    def close_campaign(self, digest: str) -> CampaignStatus:
        """Take no more uploads."""
        answer = self._transport.send("close campaign", "POST", _path(digest, "close"))
        return _about(digest, answer.read(CampaignStatus))

    def abandon(self, digest: str) -> CampaignStatus:
        """Erase what is pending; there will be no result."""
        answer = self._transport.send("abandon campaign", "POST", _path(digest, "abandon"))
        return _about(digest, answer.read(CampaignStatus))

    def enrol(self, digest: str, records: int) -> SiteStatus:
        """Say how many records this site has."""
        body = Enrolment(records=records).model_dump_json().encode()
        path = _path(digest, "enrolment")
        return self._transport.send("enrol", "PUT", path, body=body).read(SiteStatus)

    def leave(self, digest: str) -> SiteStatus:
        """Send no more; what was accepted stays counted."""
        path = _path(digest, "enrolment")
        return self._transport.send("leave campaign", "DELETE", path).read(SiteStatus)

    def upload(self, digest: str, upload: str, body: bytes) -> Receipt:
        """Send an upload, or send it again."""
        path = _path(digest, "uploads", upload)
        receipt = self._transport.send("send upload", "PUT", path, body=body).read(Receipt)
        if receipt.upload != upload:
            raise NotAServer
        return receipt

    def receipts(self, digest: str) -> Iterator[Receipt]:
        """All uploads of this site that the server knows, oldest first."""
        path, after = _path(digest, "uploads"), None
        for _ in range(_MOST_PAGES):
            parameters = {"limit": str(_PAGE)} | ({} if after is None else {"after": after})
            answer = self._transport.send("list receipts", "GET", path, parameters=parameters)
            page = answer.read(Receipts)
            yield from page.receipts
            if page.next is None:
                return
            after = page.next

    def current_round(self, digest: str, *, after: int = -1, wait: float = 0.0) -> CurrentRound:
        """What is asked now; with `wait`, once it is another round than those up to `after`."""
        parameters = {"after": str(after), "wait": f"{wait:.3f}"}
        path = _path(digest, "round")
        answer = self._transport.send("fetch round", "GET", path, parameters=parameters)
        current = answer.read(CurrentRound)
        if current.campaign != digest:
            raise NotAServer("The server answered about another campaign than the one asked for.")
        return current

    def done(self, digest: str, number: int, answers: int) -> RoundStatus:
        """Say that all answers of a round were sent, and how many they are."""
        path = _path(digest, "rounds", str(number), "done")
        body = RoundDone(answers=answers).model_dump_json().encode()
        return self._transport.send("mark round done", "PUT", path, body=body).read(RoundStatus)

    def model(self, digest: str, into: Path) -> None:
        """Fetch a model's file; not verified yet."""
        self._transport.send("fetch model", "GET", f"/v1/models/{digest}", into=into)

    def threshold(self, digest: str, which: ThresholdKind) -> Signed:
        """A signed threshold, not verified yet."""
        path = _path(digest, "thresholds", which.value)
        return self._transport.send("fetch threshold", "GET", path).read(Signed)


def _path(digest: str, *parts: str) -> str:
    return "/".join(("/v1/campaigns", digest, *parts))


def _about(digest: str, status: CampaignStatus) -> CampaignStatus:
    if status.campaign != digest:
        raise NotAServer("The server answered about another campaign than the one asked for.")
    return status
