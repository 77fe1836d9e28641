"""Several sites at once, while the aggregator is killed or the network loses messages."""

import random
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from tacit.protocol import CampaignState, LabelCampaign, Opened
from tests.support.aggregator import until
from tests.support.exactly_once import Oracle, check_ledger, rows
from tests.support.relay import Faults
from tests.support.scene import Service, Site, create_campaign, finished, service

SITES = 4
EACH = 40
UPLOADS = 5
N = SITES * EACH
PART = EACH // UPLOADS


def set_up(stage: Service, folder: Path) -> tuple[Opened[LabelCampaign], list[Site]]:
    """Sites that have joined and drawn all but their last upload, with markers of their own."""
    with stage.owner() as owner:
        campaign = create_campaign(owner, N)
    sites = []
    for number in range(SITES):
        invitation = stage.aggregator.invitation(campaign.digest, f"site-{number}")
        site = Site(folder / f"site-{number}", invitation, first=number * EACH)
        site.join_here()
        for start in range(0, EACH - PART, PART):
            site.draw_here(start, start + PART)
        site.bodies()
        sites.append(site)
    return campaign, sites


def contribute(site: Site) -> tuple[str, ...]:
    return ("contribute", str(site.file(EACH - PART, EACH)))


def contribute_at_once(sites: list[Site], meanwhile: Callable[[], None] = lambda: None) -> None:
    """All sites contribute as processes of their own; one that gives up is asked again at once."""
    with ThreadPoolExecutor(len(sites)) as threads:
        running = [
            threads.submit(finished, partial(site.tacit, *contribute(site))) for site in sites
        ]
        meanwhile()
        for one in running:
            one.result()


def received(stage: Service, campaign: Opened[LabelCampaign], least: int) -> bool:
    ((count,),) = rows(
        stage.database, "SELECT received FROM campaigns WHERE digest = ?", campaign.digest
    )
    return bool(count >= least)


def check_exactly_once(stage: Service, campaign: Opened[LabelCampaign], sites: list[Site]) -> None:
    oracle = Oracle(stage.database, campaign.digest, campaign.document)
    until(lambda: oracle.everything_is_counted(N))
    for number, site in enumerate(sites):
        oracle.check_site(f"site-{number}", site.markers(EACH), site.bodies())
        oracle.check_erased(site.markers(EACH))
        check_ledger(site.ledger, campaign.digest, EACH)
    oracle.check_totals()
    with stage.owner() as owner:
        until(lambda: owner.status(campaign.digest).state is CampaignState.CLOSED)
        assert owner.threshold(campaign.digest).document.outcome().n == N


def killed_and_started_again(stage: Service) -> None:
    stage.relay.target = None
    stage.stop()
    stage.start()


def test_sites_in_parallel_are_counted_once_while_the_aggregator_is_killed_twice(
    tmp_path: Path,
) -> None:
    with service(tmp_path / "aggregator") as stage:
        stage.start()
        campaign, sites = set_up(stage, tmp_path)

        def kill_twice() -> None:
            for least in (1, N // 3):
                until(partial(received, stage, campaign, least))
                killed_and_started_again(stage)

        contribute_at_once(sites, kill_twice)
        check_exactly_once(stage, campaign, sites)


@pytest.mark.long
def test_sites_in_parallel_are_counted_once_over_a_network_that_loses_requests_and_answers(
    tmp_path: Path,
) -> None:
    faults = Faults(seed=3, request=0.15, answer=0.15, most=40)
    with service(tmp_path / "aggregator", faults) as stage:
        stage.start()
        campaign, sites = set_up(stage, tmp_path)
        contribute_at_once(sites)
        check_exactly_once(stage, campaign, sites)
    assert min(faults.happened["request"], faults.happened["answer"]) > 0


@pytest.mark.long
@pytest.mark.parametrize("seed", range(8))
def test_sites_and_aggregator_killed_at_random_times_over_a_bad_network_are_counted_once(
    tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)  # noqa: S311 -- a simulation's, not privacy's
    faults = Faults(seed=seed, request=0.05, answer=0.05, most=60)
    with service(tmp_path / "aggregator", faults) as stage:
        stage.start()
        campaign, sites = set_up(stage, tmp_path)
        for _ in range(6):
            running = [site.begin(*contribute(site)) for site in sites]
            # Whatever they are doing by then: the oracle does not depend on it.
            time.sleep(chance.uniform(0.3, 1.5))
            if chance.random() < 0.5:
                killed_and_started_again(stage)
            for process in running:
                process.kill()
                process.wait()
            for site in sites:
                site.bodies()  # from here on, none of these may change
        contribute_at_once(sites)
        check_exactly_once(stage, campaign, sites)
