"""Moving searches on: what is due is done once, by whichever process comes first."""

from enum import Enum

import structlog
from sqlalchemy import Connection

from tacit.protocol import CampaignState
from tacit_aggregator.campaigns.documents import Documents, Terms
from tacit_aggregator.database.engine import Database
from tacit_aggregator.database.failures import is_locked
from tacit_aggregator.database.rows import AnyRow
from tacit_aggregator.metrics import Metrics
from tacit_aggregator.rounds import queries
from tacit_aggregator.rounds.ending import Turn

_log = structlog.get_logger("tacit_aggregator.rounds")


class Step(Enum):
    """What a search does next."""

    OPEN = "open"
    CLOSE = "close"
    EXTEND = "extend"
    END = "end"


def due(search: AnyRow, now: float) -> Step | None:
    """What is to be done about a search now, by the database's clock."""
    step = None
    if search.state == CampaignState.CLOSING:
        step = Step.END
    elif search.state != CampaignState.OPEN:
        step = None
    elif now >= search.closes_at:
        step = Step.END
    elif search.asked_n is None:
        last_call = now >= search.enrol_until
        everybody = search.enrolled >= search.planned_n
        step = Step.OPEN if now >= search.opens_at and (everybody or last_call) else None
    elif search.round is not None and not search.waiting_sites:
        step = Step.CLOSE
    elif search.round is not None and now >= search.ends_at:
        enough = search.answers >= search.least
        step = Step.CLOSE if enough else Step.EXTEND
    return step


class Mover:
    """Opens, closes and extends rounds, and ends searches; all that it knows is in the database."""

    def __init__(
        self, database: Database, documents: Documents, secret: bytes, metrics: Metrics
    ) -> None:
        self._database = database
        self._documents = documents
        self._secret = secret
        self._metrics = metrics
        self._failing = False
        self._steps = {
            Step.OPEN: self._open,
            Step.CLOSE: self._close,
            Step.EXTEND: self._extend,
            Step.END: self._end,
        }

    @property
    def failing(self) -> bool:
        """Whether a step that was due could not be taken the last time."""
        return self._failing

    def move(self) -> bool:
        """Take a step of every search that has one due: whether there was any."""
        with self._database.read() as connection:
            now = self._database.now(connection)
            steps = [(one.digest, due(one, now)) for one in queries.unfinished(connection)]
        taken = [self._try(step, digest) for digest, step in steps if step is not None]
        self._failing = False in taken
        return any(taken)

    def _try(self, step: Step, digest: str) -> bool | None:
        """What goes wrong in one campaign keeps no other from going on; None if it was locked."""
        try:
            terms = self._documents.get(digest)
            if terms is not None:
                self._steps[step](terms)
        except Exception as error:
            if is_locked(error):  # somebody is at it: the next time
                return None
            # Only what kind of error: the text of a database error may hold the row.
            _log.error("search not moved", step=step.value, error=type(error).__name__)
            return False
        return True

    def _open(self, terms: Terms) -> None:
        with self._database.transaction("open first round") as connection:
            turn = self._turn(connection, terms, Step.OPEN)
            opened = turn is not None and turn.ask_first()
        self._metrics.round_moved("opened", opened)

    def _close(self, terms: Terms) -> None:
        with self._database.transaction("close round") as connection:
            turn = self._turn(connection, terms, Step.CLOSE)
            opened = turn is not None and turn.count_and_go_on()
        self._metrics.round_moved("closed", turn is not None)
        self._metrics.round_moved("opened", opened)

    def _extend(self, terms: Terms) -> None:
        with self._database.transaction("extend round") as connection:
            turn = self._turn(connection, terms, Step.EXTEND)
            if turn is not None:
                turn.extend()
        self._metrics.round_moved("extended", turn is not None)

    def _end(self, terms: Terms) -> None:
        with self._database.transaction("end search") as connection:
            turn = self._turn(connection, terms, Step.END)
            if turn is not None:
                turn.count_and_end()
        closed = turn is not None and turn.search.round is not None
        self._metrics.round_moved("closed", closed)

    def _turn(self, connection: Connection, terms: Terms, step: Step) -> Turn | None:
        """The search, if the step is still due now that nobody else can take it."""
        self._database.be_brief(connection)
        queries.lock(connection, terms.digest)
        now = self._database.now(connection)
        (search,) = queries.searches(connection, [terms.digest])
        if due(search, now) is not step:
            return None
        return Turn(connection, terms, search, self._secret, now)
