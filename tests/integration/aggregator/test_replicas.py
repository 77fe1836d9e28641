"""Several aggregators on one PostgreSQL: each upload is counted once, whoever of them dies."""

import signal
import threading
from pathlib import Path

import httpx
import numpy as np
import psycopg
import pytest

from tacit.conformal import CoverageSketch
from tacit.protocol import Signed, Threshold
from tests.support.aggregator import PATIENCE, AggregatorProcess, until
from tests.support.label_campaigns import Reported, Scene, campaign_document, problem_name, scene
from tests.support.postgres import query
from tests.support.replicas import Load, on_duty, replicas

BIG = 10**9


def check_exact(made: Scene, sketch: CoverageSketch) -> None:
    """Everything that was acknowledged is counted once, and the threshold is the library's."""
    records = made.wait_until_counted(sketch.n).records
    assert (records.received, records.dropped) == (sketch.n, 0)
    signed = Signed.model_validate_json(made.threshold().content)
    found = signed.open(Threshold, key=made.aggregator.key).document.outcome()
    assert found == sketch.calibrate(made.document.channel, made.document.alpha)
    url = made.aggregator.settings.database_url
    stored = query(url, "SELECT noisy, every FROM sites WHERE campaign = %s", made.digest)
    for number, expected in enumerate((sketch.noisy, sketch.every)):
        counts = np.sum([np.frombuffer(row[number], "<i8") for row in stored], axis=0)
        np.testing.assert_array_equal(counts, expected)
    states = query(url, "SELECT state, count(*), min(number), max(number) FROM uploads GROUP BY 1")
    ((state, uploads, first, last),) = states
    assert (state, first, last) == ("counted", 1, uploads)


@pytest.mark.parametrize("count", [pytest.param(2, marks=pytest.mark.long), 3])
def test_each_upload_is_counted_once_when_the_one_on_duty_is_killed_and_comes_back(
    tmp_path: Path, count: int
) -> None:
    document = campaign_document(planned_n=BIG)
    with replicas(tmp_path, count) as running, scene(running[0], document) as made:
        load = Load(running, document)
        with load.on():
            load.wait_for(20)
            killed = on_duty(running)
            killed.kill()
            load.wait_for(20)
            assert on_duty(running) is not killed
            killed.start()
            load.wait_for(20)
        check_exact(made, load.sketch())
        for one in running:
            assert one.client().get("/readyz").status_code == 200
            assert not [line for line in one.lines if line.get("level") == "error"]


@pytest.mark.long
def test_a_server_that_hangs_is_off_duty_and_another_counts(
    tmp_path: Path, generator: np.random.Generator
) -> None:
    reported = Reported.random(generator, 20)
    with replicas(tmp_path, 2) as running:
        hanging = on_duty(running)
        (other,) = (one for one in running if one is not hanging)
        assert hanging.process is not None
        hanging.process.send_signal(signal.SIGSTOP)
        try:
            with scene(other, campaign_document(planned_n=BIG)) as made:
                answer = made.site().put(reported.upload(made.digest))
                assert answer.status_code == 200
                made.wait_until_counted(20)
                assert on_duty(running) is other
        finally:
            hanging.process.send_signal(signal.SIGCONT)
        until(lambda: hanging.client().get("/readyz").status_code == 200)


def test_a_rolling_restart_loses_nothing_and_nobody_sees_what_may_not_be_retried(
    tmp_path: Path,
) -> None:
    document = campaign_document(planned_n=BIG)
    with replicas(tmp_path, 2) as running, scene(running[0], document) as made:
        load = Load(running, document)
        with load.on():
            for one in running:
                load.wait_for(10)
                assert one.stop() == 0
                load.wait_for(10)
                one.start()
        check_exact(made, load.sketch())


def test_an_upload_in_flight_is_answered_before_a_replica_stops(
    tmp_path: Path, generator: np.random.Generator
) -> None:
    with replicas(tmp_path, 1) as (one,), scene(one) as made:
        site = made.site()
        upload = Reported.random(generator, 5).upload(made.digest)
        answers: list[httpx.Response] = []
        with psycopg.connect(one.settings.database_url) as blocking:
            blocking.execute("SELECT 1 FROM campaigns FOR UPDATE")
            sending = threading.Thread(target=lambda: answers.append(site.put(upload)))
            sending.start()
            until(lambda: _waits_for_a_lock(one))
            assert one.process is not None
            one.process.send_signal(signal.SIGTERM)
            until(lambda: any(line.get("event") == "stopping" for line in one.lines))
            with pytest.raises(httpx.ConnectError):
                until(lambda: httpx.get(f"{one.url}/readyz").status_code == 0)
        sending.join(PATIENCE)
        assert [answer.status_code for answer in answers] == [200]
        assert one.process.wait(PATIENCE) == 0
        states = query(one.settings.database_url, "SELECT state FROM uploads")
        assert states in ([("accepted",)], [("counted",)])
        one.start()
        made.wait_until_counted(5)


def test_a_replica_that_drains_serves_on_and_says_that_it_is_not_ready(tmp_path: Path) -> None:
    with replicas(tmp_path, 1, drain_seconds=1.0) as (one,), one.client() as client:
        assert client.get("/readyz").status_code == 200
        assert one.process is not None
        one.process.send_signal(signal.SIGTERM)
        until(lambda: any(line.get("event") == "stopping" for line in one.lines))
        assert problem_name(client.get("/readyz")) == "unavailable"
        assert client.get("/v1/server").status_code == 200
        assert one.process.wait(PATIENCE) == 0


def test_the_plan_closes_a_campaign_once_and_takes_no_more_than_one_server_would(
    tmp_path: Path, generator: np.random.Generator
) -> None:
    document = campaign_document(planned_n=100)
    with replicas(tmp_path, 2) as running, scene(running[0], document) as made:
        site = made.site()
        token = site.http.headers["authorization"].removeprefix("Bearer ")
        uploads = [Reported.random(generator, 7).upload(made.digest) for _ in range(40)]
        statuses: list[list[int]] = [[] for _ in running]

        def send(number: int) -> None:
            with running[number].client(token) as http:
                for upload in uploads:  # the same ones to all, at the same time
                    answer = http.put(
                        f"{made.address}/uploads/{upload.upload}",
                        content=upload.to_bytes(),
                        headers={"Content-Type": "application/json"},
                    )
                    statuses[number].append(answer.status_code)

        threads = [threading.Thread(target=send, args=(number,)) for number in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        status = made.wait_until("closed")
        assert status.closed_by == "plan"
        assert status.records.counted == status.records.received == 105  # 15 uploads reach it
        for found in statuses:
            assert sorted(set(found)) == [200, 409]
        assert made.threshold("starred").status_code == 200
        url = running[0].settings.database_url
        assert query(url, "SELECT count(*), max(number) FROM uploads") == [(15, 15)]
        assert query(url, "SELECT count(*) FROM thresholds") == [(1,)]


def _waits_for_a_lock(one: AggregatorProcess) -> bool:
    statement = (
        "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name LIKE %s"
    )
    assert one.process is not None
    return bool(query(one.settings.database_url, statement, f"%:{one.process.pid}"))
