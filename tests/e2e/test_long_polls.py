"""Sites that wait for the next question, behind proxies that hang up on silence."""

from dataclasses import replace
from pathlib import Path

import pytest

from tacit.protocol import LONGEST_POLL
from tacit_client import Network
from tests.support.aggregator import PATIENCE, until
from tests.support.relay import Relay
from tests.support.scene import PATIENT, service
from tests.support.score_oracle import ScoreOracle
from tests.support.score_scene import (
    answering_here,
    create_score_campaign,
    score_sites,
    some_scores,
)

EACH = 12
PROXY_SECONDS = 30.0
"""After so much silence the usual proxies hang up."""


def hung_up(folder: Path, network: Network, silence: float, polls: int) -> int:
    """Have a site wait for another one for so many polls; how often the proxy hung up on it.

    A poll has ended when it is answered, or when the proxy has hung up.
    """
    heard: list[str] = []
    with service(folder / "aggregator") as stage, Relay(silence=silence) as proxy:
        stage.start()
        proxy.target = stage.aggregator.port
        with stage.owner() as owner:
            campaign = create_score_campaign(owner, 2 * EACH)
            sites = score_sites(
                *(stage.aggregator, campaign, folder, some_scores(("first", "second"), EACH)),
                relays={"first": proxy},
            )

            def tell(_: int, __: int, what: str) -> None:
                heard.append(what)

            with answering_here(sites[:1], network=network, wait=3 * PATIENCE, on_progress=tell):
                until(lambda: len(heard) + proxy.unanswered > polls, 3 * PATIENCE)
                sites[1].answer_here()
            oracle = ScoreOracle(stage.database_url, campaign, sites)
            oracle.check(owner)
            assert sum(taken.records for taken in oracle.counted) == 2 * EACH
    return proxy.unanswered


def test_a_site_waits_behind_a_proxy_that_hangs_up_a_little_later_than_it_polls(
    tmp_path: Path,
) -> None:
    quick = replace(PATIENT, read_seconds=6.0)  # so it polls for a second
    assert hung_up(tmp_path, quick, silence=2.0, polls=4) == 0


def test_a_proxy_that_hangs_up_before_a_poll_is_answered_keeps_nobody_from_answering(
    tmp_path: Path,
) -> None:
    assert hung_up(tmp_path, PATIENT, silence=1.0, polls=3) > 0


@pytest.mark.long
def test_a_site_waits_for_minutes_behind_a_proxy_that_hangs_up_after_30_seconds(
    tmp_path: Path,
) -> None:
    assert LONGEST_POLL < PROXY_SECONDS
    assert hung_up(tmp_path, Network(), silence=PROXY_SECONDS, polls=2) == 0
