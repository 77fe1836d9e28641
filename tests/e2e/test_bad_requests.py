"""Every request wrong in every way: a problem document, nothing stored, nothing repeated."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tacit.protocol import PROBLEM_TYPES, Problem
from tacit.protocol.problems import MEDIA_TYPE
from tests.support.api_stage import Attempt, Operation, Stage, operations, stage
from tests.support.bad_requests import wrong_attempts
from tests.support.bad_values import MARKER, NUMBER

OPERATIONS = (
    "get /healthz",
    "get /readyz",
    "get /v1/server",
    "get /v1/token",
    "get /v1/campaigns",
    "put /v1/campaigns/{digest}",
    "put /v1/campaigns/{digest}/enrolment",
    "put /v1/campaigns/{digest}/uploads/{upload}",
    "get /v1/models/{digest}",
    "get /v1/campaigns/{digest}/round",
    "put /v1/campaigns/{digest}/rounds/{number}/done",
    "get /v1/campaigns/{digest}",
    "get /v1/campaigns/{digest}/status",
    "get /v1/campaigns/{digest}/uploads",
    "get /v1/campaigns/{digest}/thresholds/{which}",
    "delete /v1/campaigns/{digest}/enrolment",
    "post /v1/campaigns/{digest}/close",
    "post /v1/campaigns/{digest}/abandon",
)


@pytest.fixture(scope="module")
def open_stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with stage(tmp_path_factory.mktemp("stage")) as made:
        yield made


def faults(attempt: Attempt, answer: httpx.Response) -> list[str]:
    """What is wrong with the answer to a wrong request."""
    if answer.headers.get("content-type") != MEDIA_TYPE:
        return [f"{attempt.what}: answered with {answer.status_code}, and no problem document"]
    problem = Problem.model_validate_json(answer.content)
    found = []
    known = PROBLEM_TYPES.get(problem.type)
    name = problem.type.rpartition(":")[2]
    if known is None or known.status != answer.status_code or not 400 <= answer.status_code < 500:
        found.append(f"{attempt.what}: {answer.status_code} {problem.type}")
    if name not in attempt.problems:
        found.append(f"{attempt.what}: {name} instead of {sorted(attempt.problems)}")
    if MARKER in answer.text or str(NUMBER) in answer.text:
        found.append(f"{attempt.what}: repeated in {answer.text}")
    if problem.request_id != answer.headers["x-request-id"]:
        found.append(f"{attempt.what}: another request's id")
    return found


def named(stage: Stage, name: str) -> list[Operation]:
    return [operation for operation in operations(stage) if operation.name == name]


@pytest.mark.parametrize("name", OPERATIONS)
def test_whatever_is_wrong_is_a_problem_document_and_nothing_is_stored(
    open_stage: Stage, name: str
) -> None:
    attempts = [
        attempt
        for operation in named(open_stage, name)
        for attempt in wrong_attempts(open_stage, operation)
    ]
    before = open_stage.stored()
    found = []
    for attempt in attempts:
        found += faults(attempt, open_stage.send(attempt))
        if open_stage.stored() != before:
            before = open_stage.stored()
            found.append(f"{attempt.what}: something was stored")
    assert not found, "\n".join(found)
    assert len(attempts) >= 5


def test_every_operation_and_every_field_is_tried(open_stage: Stage) -> None:
    documented = {
        f"{method} {path}": operation
        for path, methods in open_stage.openapi["paths"].items()
        for method, operation in methods.items()
    }
    assert set(documented) == set(OPERATIONS)
    for name, declared in documented.items():
        attempts = [
            attempt
            for operation in named(open_stage, name)
            for attempt in wrong_attempts(open_stage, operation)
        ]
        declared_parameters = declared.get("parameters", ())
        parameters = {each["name"] for each in declared_parameters if "name" in each}
        # Headers are declared once for all; no value of If-None-Match is wrong.
        if {"$ref": "#/components/parameters/Tacit-Protocol"} in declared_parameters:
            parameters.add("protocol")
        tried = {attempt.what.partition(" ")[0].partition("=")[0] for attempt in attempts}
        assert parameters <= tried, name
        if "requestBody" in declared:
            schema = declared["requestBody"]["content"]["application/json"]["schema"]
            fields = {attempt.field for attempt in attempts}
            assert set(open_stage.schemas.fields(schema)) <= fields, name


def test_no_refused_value_and_no_mistake_is_in_the_log(open_stage: Stage) -> None:
    """After the tests above; alone, it tries one operation."""
    for operation in named(open_stage, "put /v1/campaigns/{digest}/enrolment"):
        for attempt in wrong_attempts(open_stage, operation):
            open_stage.send(attempt)
    lines = [str(line) for line in open_stage.aggregator.lines]
    assert len(lines) > 100
    assert not [line for line in lines if MARKER in line or str(NUMBER) in line]
    assert not [line for line in open_stage.aggregator.lines if line.get("event") == "failed"]


def test_the_requests_they_were_made_from_are_accepted(tmp_path: Path) -> None:
    with stage(tmp_path) as fresh:
        for operation in operations(fresh):
            before = fresh.stored()
            answer = fresh.send(operation.good)
            assert answer.status_code in (200, 201), (operation.name, answer.text)
            if operation.method != "get":
                assert fresh.stored() != before, "what is stored would not be noticed"
