"""Clients of protocol 1.0 see label campaigns as they were, and no others."""

import json
from collections.abc import Iterator

import httpx
import numpy as np
import pytest

from tests.support.aggregator import Aggregator
from tests.support.label_campaigns import Reported, Scene, problem_name
from tests.support.score_campaigns import score_scene

STATUS = {
    "campaign", "title", "owner", "state", "closed_by", "planned_n", "enrolled", "records",
    "site_count", "sites", "opens_in", "closes_in", "waiting_for",
}  # fmt: skip
TALLY = {"received", "pending", "counted", "dropped"}


@pytest.fixture
def old(aggregator: Aggregator, campaign: Scene) -> Iterator[httpx.Client]:
    """The owner, with a client of version 1.0."""
    with aggregator.client() as http:
        http.headers["Authorization"] = campaign.owner.headers["authorization"]
        http.headers["Tacit-Protocol"] = "1.0"
        yield http


def test_the_list_of_an_old_client_leaves_score_campaigns_out(
    aggregator: Aggregator, campaign: Scene, old: httpx.Client
) -> None:
    with score_scene(aggregator) as scored:
        shown = {one["campaign"] for one in old.get("/v1/campaigns").json()["campaigns"]}
        assert campaign.digest in shown
        assert scored.digest not in shown
        for protocol in ("1.1", None):
            headers = {} if protocol is None else {"Tacit-Protocol": protocol}
            old.headers.pop("Tacit-Protocol", None)
            known = old.get("/v1/campaigns", headers=headers).json()["campaigns"]
            assert {campaign.digest, scored.digest} <= {one["campaign"] for one in known}


def test_what_an_old_client_reads_has_no_field_that_it_does_not_know(
    campaign: Scene, old: httpx.Client, generator: np.random.Generator
) -> None:
    site = campaign.site()
    site.http.headers["Tacit-Protocol"] = "1.0"
    site.send(Reported.random(generator, 5).upload(campaign.digest))
    campaign.wait_until_counted(5)
    status = old.get(f"{campaign.address}/status").json()
    assert set(status) == STATUS
    assert set(status["records"]) == set(status["sites"][0]["records"]) == TALLY
    threshold = json.loads(old.get(f"{campaign.address}/thresholds/nominal").json()["payload"])
    assert threshold["version"] == "1.0"
    assert not {"rounds", "asked_n"} & set(threshold)
    document = json.loads(old.get(campaign.address).json()["payload"])
    assert document["version"] == "1.0"


def test_another_protocol_is_not_spoken(old: httpx.Client) -> None:
    answer = old.get("/v1/campaigns", headers={"Tacit-Protocol": "1.2"})
    assert problem_name(answer) == "upgrade-required"
