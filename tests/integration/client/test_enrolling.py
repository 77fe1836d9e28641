"""A site enrols from one home only, and hears at once where the campaign then stands."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from tacit.protocol import CurrentRound
from tacit_client import Contributor, Policy
from tacit_client.api import Api
from tacit_client.errors import AnotherLedger
from tests.integration.client.score_scenes import HALF, Stage, contributed, staged
from tests.support.score_world import names, scores


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with staged(tmp_path_factory.mktemp("aggregator")) as made:
        yield made


def test_a_second_home_of_a_site_is_refused_before_it_deals_out_anything(
    stage: Stage, tmp_path: Path
) -> None:
    campaign = stage.create()
    with stage.join(campaign, tmp_path / "home") as site:
        contributed(site, wait=False)
    with stage.join(campaign, tmp_path / "another") as second:
        with pytest.raises(AnotherLedger, match="from two homes a record would answer twice"):
            contributed(second, wait=False)
        assert second.ledger.read("SELECT count(*) FROM dealt") == [(0,)]
    assert stage.owner.status(campaign.digest).enrolled == HALF


def test_a_second_home_of_a_site_is_refused_before_it_draws_labels(
    stage: Stage, tmp_path: Path
) -> None:
    campaign = stage.owner.create(
        title="labels",
        classes=["a", "b"],
        epsilon=2.0,
        alpha=0.1,
        planned_n=100,
        closes=timedelta(hours=1),
    )
    labels, probabilities = np.zeros(10, dtype=np.int64), np.full((10, 2), 0.5)
    invitation = stage.aggregator.invitation(campaign.digest, "a site")
    policy = Policy(may_leave={"probabilities"})
    with Contributor.join(invitation, tmp_path / "home", policy) as site:
        for n in (5, 10):
            sent = site.contribute(labels[:n], names(n), probabilities=probabilities[:n])
            assert sent.accepted == 5
    with Contributor.join(invitation, tmp_path / "another", policy) as second:
        with pytest.raises(AnotherLedger):
            second.contribute(labels, names(10), probabilities=probabilities)
        assert second.outbox.entries() == []


def test_what_is_waited_for_is_told_anew_once_the_site_has_enrolled(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    waited: list[float] = []
    ask = Api.current_round

    def current_round(api: Api, digest: str, *, after: int = -1, wait: float = 0.0) -> CurrentRound:
        waited.append(wait)
        return ask(api, digest, after=after, wait=wait)

    monkeypatch.setattr(Api, "current_round", current_round)
    with stage.join(stage.create(), tmp_path / "home") as site:
        site.contribute(
            ids=names(HALF),
            scores=scores(HALF),
            wait=1.0,
            on_progress=lambda _, __, what: told.append(what),
        )
    counts = [what.partition(" planned")[0] for what in told]
    assert counts[:2] == [f"rounds: {number} of {2 * HALF}" for number in (0, HALF)]
    # Both at once, before it is waited for anything.
    assert waited[:2] == [0.0, 0.0]
    assert waited[2] > 0
