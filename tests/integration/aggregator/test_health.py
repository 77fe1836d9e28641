"""How the server is: public routes, numbers, no room, and errors that nobody expected."""

import secrets
import time
from typing import Any

import httpx
import numpy as np
import pytest
from sqlalchemy import select, update

from tacit.protocol import PROBLEM_TYPES, Column, Features, ServerInfo, Upload
from tacit_aggregator.database.engine import Database
from tacit_aggregator.database.tables import signing_keys
from tacit_aggregator.models.service import RegisteredModel, register
from tests.support.aggregator import Aggregator, as_process, in_thread, migrated, until
from tests.support.label_campaigns import (
    Reported,
    campaign_document,
    problem,
    problem_name,
    scene,
)
from tests.support.openapi import PUBLIC
from tests.support.score_campaigns import score_scene

_SEVEN_COUNTED = 'tacit_records_total{state="counted"} 7.0'


def test_public_routes_need_no_token(aggregator: Aggregator) -> None:
    with aggregator.client() as nobody:
        for path in PUBLIC:
            assert nobody.get(path).status_code == 200
        info = ServerInfo.model_validate_json(nobody.get("/v1/server").content)
        assert info.most_body_bytes == aggregator.settings.most_body_bytes
        assert aggregator.key in info.keys


def test_a_wrong_address_or_method_is_a_problem_too(aggregator: Aggregator) -> None:
    with aggregator.client() as client:
        assert problem_name(client.get("/v1/nothing")) == "not-found"
        wrong = client.post("/healthz")
        assert (problem_name(wrong), wrong.headers["allow"]) == ("method-not-allowed", "GET")
        assert problem(wrong).type in PROBLEM_TYPES


def test_an_error_nobody_expected_gives_no_details(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    now: list[Any] = [time.time()]
    settings = migrated(tmp_path_factory.mktemp("broken"))
    with in_thread(settings, lambda: now[0]) as aggregator, aggregator.client() as client:
        now[0] = "a clock that tells no time: marker"
        answer = client.get("/v1/server")
        now[0] = time.time()
    found = problem(answer)
    assert (found.status, found.type) == (500, "urn:tacit:problem:internal")
    assert "marker" not in answer.text
    assert "ValueError" not in answer.text


def test_a_server_without_room_says_when_to_come_again(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    settings = migrated(tmp_path_factory.mktemp("full"), most_pending_bytes=2**20)
    gone = RegisteredModel("0" * 64, "gone", "pt2", "gone", None, "uint8", (2**20,), 2, "logits")
    database = Database(settings.database_url)
    with database.transaction("test model") as connection:
        register(connection, gone, time.time())
    database.close()
    evidence = Features(model=gone.digest, dtype="uint8", shape=gone.shape)
    document = campaign_document(k=2, evidence=evidence)
    with in_thread(settings) as aggregator, scene(aggregator, document) as made:
        site = made.site()
        uploads = [
            Upload(
                campaign=made.digest,
                upload=secrets.token_hex(16),
                labels=Column.of(np.zeros(1, np.uint8)),
                features=Column.of(np.zeros((1, 2**20), np.uint8)),
            )
            for _ in range(2)
        ]
        site.send(uploads[0])  # it is larger than the room there is, but nothing else waits
        answer = site.put(uploads[1])
        assert (answer.status_code, problem_name(answer)) == (503, "overloaded")
        assert int(answer.headers["retry-after"]) >= 1
        assert made.status().records.received == 1
        assert site.send(uploads[0]).state == "accepted"


def test_the_numbers_for_prometheus_count_and_name_no_site_and_no_campaign(
    tmp_path_factory: pytest.TempPathFactory, generator: np.random.Generator
) -> None:
    settings = migrated(tmp_path_factory.mktemp("metrics"), metrics_port=0)
    with as_process(settings) as aggregator, scene(aggregator, campaign_document()) as made:
        made.site("a named site").send(Reported.random(generator, 7).upload(made.digest))
        made.wait_until_counted(7)
        assert made.owner.get("/metrics").status_code == 404
        (port,) = [
            line["port"] for line in aggregator.lines if line.get("event") == "metrics listening"
        ]

        def numbers() -> str:
            return httpx.get(f"http://127.0.0.1:{port}/metrics", trust_env=False).text

        text: str = until(lambda: found if _SEVEN_COUNTED in (found := numbers()) else None)
    assert 'tacit_uploads_total{state="accepted"} 1.0' in text
    assert "tacit_pending_records 0.0" in text
    assert 'tacit_transaction_seconds_count{name="fold uploads"} 1.0' in text
    assert 'route="/v1/campaigns/{digest}/uploads/{upload}",status="200"' in text
    assert "tacit_fold_seconds_count 1.0" in text
    for name in ("a named site", made.digest, made.document.owner):
        assert name not in text


def test_a_server_that_cannot_move_a_search_on_is_not_ready_until_it_can(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    settings = migrated(tmp_path_factory.mktemp("stuck"))
    database = Database(settings.database_url)
    with in_thread(settings) as aggregator, score_scene(aggregator) as scene:
        assert scene.owner.get("/readyz").status_code == 200
        with database.transaction("test") as connection:
            pem = connection.execute(select(signing_keys.c.private_pem)).scalar_one()
            connection.execute(update(signing_keys).values(private_pem=b"no key"))
        site = scene.site(enrol=40)
        answer = until(
            lambda: found if (found := scene.owner.get("/readyz")).status_code != 200 else None
        )
        assert problem_name(answer) == "unavailable"
        assert "search" in problem(answer).detail
        assert scene.owner.get("/healthz").status_code == 200
        with database.transaction("test") as connection:
            connection.execute(update(signing_keys).values(private_pem=pem))
        until(lambda: scene.owner.get("/readyz").status_code == 200)
        assert site.asked().round == 0
    database.close()
