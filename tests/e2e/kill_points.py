"""The kill points: every commit and every request of the product, and the story that reaches it.

Each is passed twice, killed just before it and just after it. `make test` passes the commits on the
way of a report; `make test-long` the rest. `test_kill_points.py` compares this table with the
sources, so that a new commit or request needs a line here.
"""

from dataclasses import dataclass
from enum import StrEnum

import pytest

from tests.support.killable import MOMENTS, Kill, Room


class Story(StrEnum):
    """What a process was doing when it was killed; one test each."""

    JOINS = "a site joins"
    JOINS_AGAIN = "a site joins again"
    CONTRIBUTES = "a site contributes"
    EXPORTS = "a site without network exports"
    SUBMITS = "somebody submits a site's bundle"
    HEARS_OF_THE_END = "a site hears that its campaign is over"
    LEAVES = "a site leaves"
    FINDS_AN_OLD_COPY = "a site finds that its ledger is an old copy"
    ANSWERS = "a site answers in rounds"
    RUNS_A_MODEL = "a site runs the model of a score campaign"
    CREATES = "an owner creates a campaign"
    CLOSES = "an owner closes a campaign"
    ABANDONS = "an owner abandons a campaign"
    FETCHES = "an owner fetches a threshold"
    SERVES_A_CONTRIBUTION = "the aggregator serves a contribution"
    SERVES_A_LEAVING_SITE = "the aggregator serves a site that leaves"
    SERVES_AN_OWNER = "the aggregator serves an owner who creates a campaign"
    SERVES_A_CLOSING = "the aggregator serves an owner who closes a campaign"
    SERVES_AN_ABANDONING = "the aggregator serves an owner who abandons a campaign"
    ENDS_BY_DATE = "the aggregator ends a campaign by its date"
    RETRIES = "the aggregator tries an upload again that ended a worker"
    RECOVERS = "the aggregator starts from a backup without the reports that waited"
    SERVES_ROUNDS = "the aggregator serves sites that answer in rounds"
    EXTENDS_A_ROUND = "the aggregator extends a round"
    ENDS_A_SEARCH = "the aggregator serves an owner who closes a score campaign"
    DROPS_A_ROUND = "the aggregator serves an owner who abandons a score campaign"
    MIGRATES = "the operator migrates"
    MINTS = "the operator mints a token"
    REVOKES = "the operator revokes a token"
    INVITES = "the operator invites a site"
    ROTATES = "the operator rotates the signing key"
    REGISTERS = "the operator registers a model"
    REMOVES = "the operator removes a model"


WAY_OF_A_REPORT = (
    Story.CONTRIBUTES,
    Story.ANSWERS,
    Story.SERVES_A_CONTRIBUTION,
    Story.SERVES_ROUNDS,
    Story.EXTENDS_A_ROUND,
    Story.ENDS_A_SEARCH,
)


@dataclass(frozen=True)
class Point:
    """A commit or a request, the story in which a process is killed at it, and which times."""

    room: Room
    name: str
    story: Story
    occurrences: tuple[int, ...] = (1,)


COMMITS_OF_THE_CLIENT = (
    Point("ledger", "join campaign", Story.JOINS),
    Point("ledger", "renew access", Story.JOINS_AGAIN),
    Point("ledger", "draw reports", Story.CONTRIBUTES),
    Point("ledger", "draw reports", Story.EXPORTS),
    Point("ledger", "mark uploads", Story.CONTRIBUTES, (1, 3)),
    Point("ledger", "mark uploads", Story.HEARS_OF_THE_END),
    Point("ledger", "end campaign", Story.HEARS_OF_THE_END),
    Point("ledger", "leave campaign", Story.LEAVES),
    Point("ledger", "note restored copy", Story.FINDS_AN_OLD_COPY),
    Point("ledger", "deal records", Story.ANSWERS),
    Point("ledger", "draw answers", Story.ANSWERS),
)
REQUESTS = (
    Point("transport", "fetch campaign", Story.JOINS),
    Point("transport", "fetch status", Story.CONTRIBUTES),
    Point("transport", "enrol", Story.CONTRIBUTES),
    Point("transport", "send upload", Story.CONTRIBUTES, (1, 2, 3)),
    Point("transport", "send upload", Story.SUBMITS, (2,)),
    Point("transport", "list receipts", Story.HEARS_OF_THE_END),
    Point("transport", "leave campaign", Story.LEAVES),
    Point("transport", "read server", Story.CREATES),
    Point("transport", "read token", Story.CREATES),
    Point("transport", "create campaign", Story.CREATES),
    Point("transport", "list campaigns", Story.CLOSES),
    Point("transport", "close campaign", Story.CLOSES),
    Point("transport", "abandon campaign", Story.ABANDONS),
    Point("transport", "fetch threshold", Story.FETCHES),
    Point("transport", "fetch round", Story.ANSWERS, (2,)),  # after one before it deals
    Point("transport", "send upload", Story.ANSWERS, (2,)),
    Point("transport", "mark round done", Story.ANSWERS, (2,)),
    Point("transport", "fetch model", Story.RUNS_A_MODEL),
)
COMMITS_OF_THE_AGGREGATOR = (
    Point("database", "enrol site", Story.SERVES_A_CONTRIBUTION),
    Point("database", "store uploads", Story.SERVES_A_CONTRIBUTION, (1, 2)),
    Point("database", "fold uploads", Story.SERVES_A_CONTRIBUTION),
    Point("database", "finish campaign", Story.SERVES_A_CONTRIBUTION),
    Point("database", "finish campaign", Story.ENDS_BY_DATE),
    Point("database", "count attempts", Story.RETRIES, (2,)),
    Point("database", "forget lost uploads", Story.RECOVERS),
    Point("database", "leave campaign", Story.SERVES_A_LEAVING_SITE),
    Point("database", "create campaign", Story.SERVES_AN_OWNER),
    Point("database", "close campaign", Story.SERVES_A_CLOSING),
    Point("database", "abandon campaign", Story.SERVES_AN_ABANDONING),
    Point("database", "open first round", Story.SERVES_ROUNDS),
    Point("database", "store uploads", Story.SERVES_ROUNDS, (2,)),
    Point("database", "mark round done", Story.SERVES_ROUNDS, (2,)),
    # The first time it asks the next question, the last time it signs the threshold.
    Point("database", "close round", Story.SERVES_ROUNDS, (1, 2)),
    Point("database", "extend round", Story.EXTENDS_A_ROUND),
    Point("database", "end search", Story.ENDS_A_SEARCH),
    Point("database", "abandon campaign", Story.DROPS_A_ROUND),
)
COMMITS_OF_THE_OPERATOR = (
    Point("database", "migrate", Story.MIGRATES),
    Point("database", "make first key", Story.MIGRATES),
    Point("database", "create token", Story.MINTS),
    Point("database", "revoke token", Story.REVOKES),
    Point("database", "invite site", Story.INVITES),
    Point("database", "rotate key", Story.ROTATES),
    Point("database", "register model", Story.REGISTERS),
    Point("database", "remove model", Story.REMOVES),
)
# Not transactions, and yet something durable happens: files are made, logs cut off.
OTHER_DURABLE_STEPS = (
    Point("ledger", "make ledger", Story.JOINS),
    Point("ledger", "write witness", Story.JOINS, (1, 2)),
    Point("ledger", "replace file", Story.JOINS, (3,)),  # after two witnesses, the policy's
    Point("ledger", "replace file", Story.EXPORTS, (2,)),  # after the witness, the bundle's
    Point("ledger", "write witness", Story.CONTRIBUTES),
    Point("ledger", "write witness", Story.FINDS_AN_OLD_COPY),
    Point("ledger", "replace file", Story.RUNS_A_MODEL),  # the model's
    Point("ledger", "erase log", Story.HEARS_OF_THE_END),
    Point("ledger", "erase log", Story.LEAVES),
    # The first time is at the start; the second erases what was folded.
    Point("database", "erase log", Story.SERVES_A_CONTRIBUTION, (2,)),
    Point("database", "write secret", Story.MIGRATES),
)

NAMED = (
    *COMMITS_OF_THE_CLIENT,
    *REQUESTS,
    *COMMITS_OF_THE_AGGREGATOR,
    *COMMITS_OF_THE_OPERATOR,
)
POINTS = (*NAMED, *OTHER_DURABLE_STEPS)


def kills(story: Story) -> list[Kill]:
    """All ways in which a process is killed in a story."""
    return [
        Kill(point.room, point.name, moment, occurrence)
        for point in POINTS
        if point.story is story
        for occurrence in point.occurrences
        for moment in MOMENTS
    ]


def killed_at(story: Story) -> pytest.MarkDecorator:
    """Run a test once for every kill point of its story, as its argument `kill`."""
    return pytest.mark.parametrize(
        "kill",
        [
            pytest.param(
                kill, id=str(kill), marks=() if _is_hardest(kill, story) else pytest.mark.long
            )
            for kill in kills(story)
        ],
    )


def _is_hardest(kill: Kill, story: Story) -> bool:
    """Just after a commit: it has happened, and nobody was told.

    Requests and answers that are lost are also what the tests of bad networks are about.
    """
    return story in WAY_OF_A_REPORT and kill.moment == "after" and kill.room != "transport"
