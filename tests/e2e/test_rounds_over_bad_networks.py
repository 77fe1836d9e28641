"""Score campaigns over a network that loses requests and answers: nothing is lost or doubled."""

import random
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from tacit_client.cli.exits import ExitCode
from tests.support.aggregator import PATIENCE, until
from tests.support.postgres import BACKENDS
from tests.support.relay import Faults
from tests.support.scene import service
from tests.support.score_oracle import ScoreOracle
from tests.support.score_scene import (
    ScoreSite,
    create_score_campaign,
    score_sites,
    some_scores,
)

SITES = ("north", "east", "south")
EACH = 30
N = EACH * len(SITES)
ROUNDS = 3


def answer_at_once(sites: Sequence[ScoreSite]) -> None:
    """All sites answer as processes of their own, until each has ended somehow."""
    running = [site.begin_answering() for site in sites]
    try:
        for process in running:
            process.wait(PATIENCE)
    finally:
        for process in running:
            process.kill()
            process.wait()


def answer_till_the_end(sites: Sequence[ScoreSite]) -> None:
    """Have all of them contribute; whoever gives up begins again, for the others wait for it."""
    running = [site.begin_answering() for site in sites]

    def have_ended() -> bool:
        for number, process in enumerate(running):
            if process.poll() == ExitCode.TRY_LATER:
                running[number] = sites[number].begin_answering()
        return all(process.poll() is not None for process in running)

    try:
        until(have_ended, seconds=2 * PATIENCE)
        assert [process.returncode for process in running] == [0] * len(sites)
    finally:
        for process in running:
            process.kill()
            process.wait()


def campaign_over(folder: Path, faults: Faults, backend: str = "sqlite") -> None:
    """Three sites answer as processes."""
    with service(folder / "aggregator", faults, backend) as stage:
        stage.start()
        with stage.owner() as owner:
            campaign = create_score_campaign(owner, N, rounds=ROUNDS)
            scores = some_scores(SITES, EACH)
            sites = score_sites(stage.aggregator, campaign, folder, scores, per_upload=4)
            answer_till_the_end(sites)
            oracle = ScoreOracle(stage.database_url, campaign, sites)
            oracle.check(owner)
            for site in sites:
                oracle.check_arrived(site)
            assert sum(taken.records for taken in oracle.counted) == N
    assert min(faults.happened["request"], faults.happened["answer"]) > 0


def test_rounds_over_a_network_that_loses_requests_and_answers_count_every_answer_once(
    tmp_path: Path,
) -> None:
    campaign_over(tmp_path, Faults(seed=5, request=0.08, answer=0.08, most=30))


@pytest.mark.long
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("seed", range(8))
def test_rounds_over_many_bad_networks_count_every_answer_once(
    tmp_path: Path, seed: int, backend: str
) -> None:
    campaign_over(tmp_path, Faults(seed=seed, request=0.15, answer=0.15, most=80), backend)


@pytest.mark.long
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("seed", range(4))
def test_sites_and_aggregator_killed_at_random_times_in_rounds_are_accounted_for_exactly(
    tmp_path: Path, seed: int, backend: str
) -> None:
    chance = random.Random(seed)  # noqa: S311 -- a simulation's, not privacy's
    faults = Faults(seed=seed, request=0.03, answer=0.03, most=40)
    with service(tmp_path / "aggregator", faults, backend) as stage:
        stage.start()
        with stage.owner() as owner:
            # Rounds close without those who are away: some answers will be late, others missed.
            short = timedelta(seconds=3)
            campaign = create_score_campaign(owner, N, rounds=4, round_for=short, least=EACH // 4)
            scores = some_scores(SITES, EACH)
            sites = score_sites(stage.aggregator, campaign, tmp_path, scores, per_upload=2)
            oracle = ScoreOracle(stage.database_url, campaign, sites)
            longest = 3.0
            while not oracle.search_is_over():
                longest += 1.0  # a busy machine needs more time to do anything at all
                running = [site.begin_answering() for site in sites]
                # Whatever they are doing by then: the oracle does not depend on it.
                time.sleep(chance.uniform(1.0, longest))
                if chance.random() < 0.5:
                    stage.relay.target = None
                    stage.stop()
                    stage.start()
                for process in running:
                    process.kill()
                    process.wait()
            answer_at_once(sites)
            oracle.check(owner)
            for site in sites:
                oracle.check_arrived(site)
