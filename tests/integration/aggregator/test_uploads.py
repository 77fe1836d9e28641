"""Uploads: stored exactly once, refused as a whole, and limited in size and time."""

import json
import secrets
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest

from tacit.protocol import Column, Problem, Upload
from tests.support.aggregator import Aggregator
from tests.support.label_campaigns import JSON, Reported, Scene, problem, problem_name


def test_an_upload_sent_many_times_at_once_is_stored_once(
    campaign: Scene, generator: np.random.Generator
) -> None:
    site = campaign.site()
    upload = Reported.random(generator, 10).upload(campaign.digest)
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda _: site.put(upload).status_code, range(32)))
    assert answers == [200] * 32
    assert campaign.wait_until_counted(10).records.received == 10
    assert site.send(upload).state == "counted"


def test_uploads_that_arrive_together_are_decided_each_by_itself(
    campaign: Scene, generator: np.random.Generator
) -> None:
    site = campaign.site(enrol=20)
    uploads = [Reported.random(generator, 1).upload(campaign.digest) for _ in range(40)]
    with ThreadPoolExecutor(16) as threads:
        answers = list(threads.map(lambda upload: site.put(upload).status_code, uploads))
    assert (answers.count(200), answers.count(409)) == (20, 20)
    assert campaign.wait_until_counted(20).records.received == 20


def test_another_body_under_the_same_id_is_refused_and_changes_nothing(
    campaign: Scene, generator: np.random.Generator
) -> None:
    site = campaign.site()
    upload = Reported.random(generator, 10).upload(campaign.digest)
    site.send(upload)
    other = Reported.random(generator, 10).upload(campaign.digest, upload.upload)
    assert problem_name(site.put(other)) == "upload-conflict"
    spaced = upload.to_bytes().replace(b":", b": ", 1)
    assert problem_name(site.put_bytes(upload.upload, spaced)) == "upload-conflict"
    assert campaign.wait_until_counted(10).records.received == 10


def test_two_sites_may_use_the_same_upload_id(
    campaign: Scene, generator: np.random.Generator
) -> None:
    upload = Reported.random(generator, 5).upload(campaign.digest)
    for name in ("one", "two"):
        assert campaign.site(name).send(upload).state == "accepted"
    assert campaign.wait_until_counted(10).site_count == 2


def test_an_upload_for_another_campaign_or_address_is_refused(
    campaign: Scene, generator: np.random.Generator
) -> None:
    site = campaign.site()
    foreign = Reported.random(generator, 5).upload(secrets.token_hex(32))
    assert problem_name(site.put(foreign)) == "wrong-digest"
    upload = Reported.random(generator, 5).upload(campaign.digest)
    elsewhere = site.put_bytes(secrets.token_hex(16), upload.to_bytes())
    assert problem_name(elsewhere) == "invalid-request"
    assert campaign.status().records.received == 0


def test_a_site_that_has_not_enrolled_is_told_to(
    campaign: Scene, generator: np.random.Generator
) -> None:
    site = campaign.site(enrol=None)
    upload = Reported.random(generator, 5).upload(campaign.digest)
    assert problem_name(site.put(upload)) == "not-enrolled"
    site.enrol(5)
    site.send(upload)


def _wrong_uploads() -> Iterator[tuple[str, dict[str, Any]]]:
    generator = np.random.default_rng(1)
    good = Reported.random(generator, 6)
    labels, table = Column.of(good.labels), Column.of(good.probabilities)

    def fields(**changes: Any) -> dict[str, Any]:
        return {"labels": labels, "probabilities": table, **changes}

    yield "a label too large", fields(labels=Column.of(np.full(6, 4, np.uint8)))
    yield "labels of another type", fields(labels=Column.of(good.labels.astype(np.int32)))
    yield "too few labels", fields(labels=Column.of(good.labels[:5]))
    yield (
        "no records",
        fields(labels=Column.of(good.labels[:0]), probabilities=Column.of(good.probabilities[:0])),
    )
    yield (
        "rows that do not sum to 1",
        fields(probabilities=Column.of(good.probabilities * np.float32(2))),
    )
    yield "not a number", fields(probabilities=Column.of(np.full((6, 4), np.nan, np.float32)))
    yield "too few classes", fields(probabilities=Column.of(good.probabilities[:, :3]))
    yield "no evidence", fields(probabilities=None)
    yield "features", fields(features=table)
    yield "uniforms", fields(uniforms=Column.of(np.zeros(6)))


@pytest.mark.parametrize(
    "columns",
    [pytest.param(columns, id=name) for name, columns in _wrong_uploads()],
)
def test_an_upload_with_wrong_columns_is_refused_and_nothing_is_stored(
    campaign: Scene, columns: dict[str, Any]
) -> None:
    upload = Upload(campaign=campaign.digest, upload=secrets.token_hex(16), **columns)
    answer = campaign.site().put(upload)
    assert (answer.status_code, problem_name(answer)) == (422, "invalid-request")
    assert campaign.status().records.received == 0


def test_an_error_repeats_nothing_that_was_sent(campaign: Scene) -> None:
    marker = "marker0123"
    good = Reported.random(np.random.default_rng(1), 3).upload(campaign.digest)
    fields = json.loads(good.to_bytes())
    site = campaign.site()
    for wrong in (
        {**fields, marker: 1},
        {**fields, "labels": {**fields["labels"], "data": marker}},
        {**fields, "labels": {**fields["labels"], "dtype": marker}},
        {**fields, "labels": marker},
        {**fields, "version": marker},
    ):
        answer = site.put_bytes(good.upload, json.dumps(wrong).encode())
        assert problem(answer).status in (422, 426)
        assert marker not in answer.text


def test_a_broken_body_is_a_problem_not_an_error(campaign: Scene) -> None:
    site = campaign.site()
    for body in (b"", b"{", b"[]", b"null", b"\xff", b"{}", b'{"a":' * 5000, b"1e999"):
        assert problem_name(site.put_bytes(secrets.token_hex(16), body)) == "invalid-request"


@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/json; charset=latin-1"},
        {"Content-Type": ""},
        {"Content-Type": "application/json", "Content-Encoding": "gzip"},
    ],
)
def test_only_plain_json_is_read(campaign: Scene, headers: dict[str, str]) -> None:
    address = f"{campaign.address}/uploads/{secrets.token_hex(16)}"
    answer = campaign.site().http.put(address, content=b"{}", headers=headers)
    assert problem_name(answer) == "unsupported-media"


@pytest.mark.parametrize(
    ("name", "wrong", "right"),
    [("content-type", "text/plain", "application/json"), ("content-encoding", "gzip", "identity")],
)
@pytest.mark.parametrize("turned", [False, True])
def test_a_header_that_is_there_twice_is_refused_if_either_is_wrong(
    campaign: Scene, name: str, wrong: str, right: str, turned: bool
) -> None:
    site = campaign.site()
    headers = [(name, wrong), (name, right)]
    given = [*(() if name == "content-type" else JSON.items()), *headers[:: -1 if turned else 1]]
    answer = site.http.put(f"{campaign.address}/uploads/{'0' * 32}", content=b"{}", headers=given)
    assert problem_name(answer) == "unsupported-media"


def test_a_body_beyond_the_limit_is_refused_said_or_unsaid(
    campaign: Scene, aggregator: Aggregator
) -> None:
    site = campaign.site()
    most = aggregator.settings.most_body_bytes
    address = f"{campaign.address}/uploads/{secrets.token_hex(16)}"
    said = site.http.put(address, content=b" " * (most + 1), headers=JSON)
    assert problem_name(said) == "body-too-large"

    def chunks() -> Iterator[bytes]:
        for _ in range(100):
            yield b" " * 10_000

    unsaid = site.http.put(address, content=chunks(), headers=JSON)
    assert problem_name(unsaid) == "body-too-large"
    within = site.http.put(address, content=b" " * most, headers=JSON)
    assert problem_name(within) == "invalid-request"


def test_a_body_that_does_not_arrive_is_given_up(campaign: Scene, aggregator: Aggregator) -> None:
    site = campaign.site()
    parts = urlsplit(aggregator.url)
    head = (
        f"PUT {campaign.address}/uploads/{secrets.token_hex(16)} HTTP/1.1\r\n"
        f"Host: {parts.netloc}\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n"
        f"Authorization: {site.http.headers['authorization']}\r\n\r\n{{"
    )
    with socket.create_connection((parts.hostname, parts.port), timeout=30) as connection:
        connection.sendall(head.encode())
        received = b""
        while part := connection.recv(65536):  # until the server closes the connection
            received += part
    assert received.startswith(b"HTTP/1.1 408")
    document = Problem.model_validate_json(received.partition(b"\r\n\r\n")[2])
    assert document.type.endswith("body-too-slow")


def test_a_client_that_hangs_up_in_the_middle_disturbs_nobody(
    campaign: Scene, aggregator: Aggregator, generator: np.random.Generator
) -> None:
    site = campaign.site()
    parts = urlsplit(aggregator.url)
    head = (
        f"PUT {campaign.address}/uploads/{secrets.token_hex(16)} HTTP/1.1\r\n"
        f"Host: {parts.netloc}\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n"
        f"Authorization: {site.http.headers['authorization']}\r\n\r\n{{"
    )
    with socket.create_connection((parts.hostname, parts.port), timeout=30) as connection:
        connection.sendall(head.encode())
    site.send(Reported.random(generator, 2).upload(campaign.digest))
    assert campaign.wait_until_counted(2).records.received == 2


def test_another_version_of_the_protocol_is_refused(
    campaign: Scene, generator: np.random.Generator
) -> None:
    site = campaign.site()
    upload = Reported.random(generator, 2).upload(campaign.digest)
    answer = site.http.put(
        f"{campaign.address}/uploads/{upload.upload}",
        content=upload.to_bytes(),
        headers={**JSON, "Tacit-Protocol": "2.0"},
    )
    assert (answer.status_code, problem_name(answer)) == (426, "upgrade-required")
    assert campaign.status().records.received == 0
