"""What a search says that it waits for."""

from types import SimpleNamespace
from typing import Any

import pytest

from tacit_aggregator.rounds.sentences import waits
from tests.support.score_campaigns import CERTIFIABLE, score_document

NOW = 1_800_000_000.0


def search(**fields: Any) -> Any:
    """A search with an open round that one of two sites has not answered, and time left."""
    usual = {
        "state": "open",
        "round": 1,
        "closes_at": NOW + 3600,
        "ends_at": NOW + 40.2,
        "waiting_sites": 1,
        "sites": 2,
        "answers": 7,
        "least": 5,
        "extensions": 0,
    }
    return SimpleNamespace(**{**usual, **fields})


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "Round 2 of 4 waits for 1 of 2 sites; it may close in 41 s."),
        ({"waiting_sites": 0}, "Round 2 of 4 is being closed."),
        ({"ends_at": NOW}, "Round 2 of 4 is being closed."),
        ({"ends_at": NOW, "answers": 4}, "Round 2 of 4 is being extended."),
        ({"waiting_sites": 0, "answers": 4}, "Round 2 of 4 is being closed."),
        ({"closes_at": NOW}, "The search has ended, and the campaign is being closed."),
    ],
)
def test_an_open_round_waits_for_sites_or_for_nobody(fields: dict[str, Any], said: str) -> None:
    assert waits(search(**fields), score_document(now=NOW), NOW) == said


def test_a_search_that_was_closed_by_hand_promises_no_result() -> None:
    ended = search(state="closing", closed_by="hand", round=None)
    assert "result" not in waits(ended, score_document(now=NOW, **CERTIFIABLE), NOW)
