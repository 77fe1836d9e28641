"""Campaign documents, read once: they never change."""

import threading
from collections import OrderedDict
from dataclasses import dataclass

from sqlalchemy import Connection

from tacit.protocol import Campaign, LabelCampaign, ScoreCampaign
from tacit_aggregator.campaigns import queries
from tacit_aggregator.database.engine import Database

_MOST = 256


@dataclass(frozen=True)
class Terms:
    """A campaign's document with its digest and its bytes."""

    digest: str
    payload: str
    campaign: Campaign

    @property
    def labels(self) -> LabelCampaign:
        """The terms of a label campaign; nobody may ask for these of another."""
        if not isinstance(self.campaign, LabelCampaign):
            raise TypeError("This is not a label campaign.")
        return self.campaign

    @property
    def scores(self) -> ScoreCampaign:
        """The terms of a score campaign; nobody may ask for these of another."""
        if not isinstance(self.campaign, ScoreCampaign):
            raise TypeError("This is not a score campaign.")
        return self.campaign


class Documents:
    """The terms of campaigns by digest; those used last stay in memory."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._known: OrderedDict[str, Terms] = OrderedDict()

    def known(self, digest: str) -> Terms | None:
        """The terms, if they are in memory."""
        with self._lock:
            terms = self._known.get(digest)
            if terms is not None:
                self._known.move_to_end(digest)
            return terms

    def get(self, digest: str) -> Terms | None:
        """The terms, from memory or from the database; None if there is no such campaign."""
        terms = self.known(digest)
        if terms is not None:
            return terms
        with self._database.read() as connection:
            return self.read(connection, digest)

    def read(self, connection: Connection, digest: str) -> Terms | None:
        """The same for whoever has a connection already."""
        terms = self.known(digest)
        if terms is not None:
            return terms
        payload = queries.payload(connection, digest)
        if payload is None:
            return None
        terms = Terms(digest, payload, Campaign.from_bytes(payload.encode()))
        with self._lock:
            self._known[digest] = terms
            while len(self._known) > _MOST:
                self._known.popitem(last=False)
        return terms
