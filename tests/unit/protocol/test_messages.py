"""Messages as a whole: strict models, complete schemas, problems as the documentation has them."""

import json
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

import tacit.protocol
from tacit.protocol import (
    PROBLEM_TYPES,
    CampaignState,
    CampaignStatus,
    Enrolment,
    Problem,
    Problems,
    Receipt,
    Receipts,
    Role,
    RoundDone,
    RoundState,
    RoundStatus,
    SearchState,
    ServerInfo,
    SiteStatus,
    Tally,
    TokenInfo,
    UploadState,
)
from tacit.protocol.wire import Wire
from tests.unit.protocol.examples import DIGEST

PAGE = (Path(__file__).parents[3] / "docs" / "protocol.md").read_text()
MODELS = [
    value
    for value in vars(tacit.protocol).values()
    if isinstance(value, type) and issubclass(value, Wire)
]
TALLY = Tally(received=6, pending=3, counted=2, dropped=1)
STATUS = CampaignStatus(
    campaign=DIGEST,
    title="A title",
    owner="An owner",
    state=CampaignState.OPEN,
    closed_by=None,
    planned_n=10,
    enrolled=8,
    records=TALLY,
    site_count=2,
    sites=(SiteStatus(site="A site", enrolled=8, left=False, records=TALLY),),
    opens_in=0.0,
    closes_in=12.5,
    waiting_for=("4 more records.",),
)
ROUND = RoundStatus(
    round=3,
    state=RoundState.OPEN,
    threshold=0.5,
    low=0.25,
    high=0.75,
    answers=37,
    sites=None,
    coverage=None,
    ends_in=40.5,
    extensions=2,
    waiting_sites=2,
    waiting_for=("A site",),
)
LATE = Tally(received=7, pending=3, counted=2, dropped=1, late=1)
SCORES = STATUS.model_copy(update={"method": "scores", "rounds": (ROUND,), "records": LATE})
MESSAGES: list[Wire] = [
    STATUS,
    SCORES,
    ROUND,
    RoundDone(answers=0),
    tacit.protocol.CampaignList(campaigns=(STATUS,)),
    Enrolment(records=5),
    Receipts(
        receipts=(Receipt(upload="ab" * 16, records=2, state=UploadState.DROPPED, reason="why"),),
        next=None,
    ),
    TokenInfo(role=Role.CONTRIBUTOR, name="A site", campaign=DIGEST, expires=None),
    ServerInfo(
        service="tacit-aggregator",
        version="0.1.0",
        protocols=("1.0", "1.1"),
        time=datetime(2026, 1, 1, tzinfo=UTC),
        keys=(DIGEST,),
        most_body_bytes=2**25,
    ),
    Problem(type="urn:tacit:problem:x", title="t", status=422, detail="d", next="n"),
]
WRONG = [None, True, -1, 0.5, "", "\ud800", [], {}, 10**400, [None], {"a": 1}]


def name_of(message: Any) -> str:
    return message.__name__ if isinstance(message, type) else type(message).__name__


@pytest.mark.parametrize("message", MESSAGES, ids=name_of)
def test_a_message_survives_the_way_over_the_wire(message: Wire) -> None:
    assert type(message).model_validate_json(message.model_dump_json()) == message


@pytest.mark.parametrize("message", MESSAGES, ids=name_of)
def test_a_message_with_a_field_too_many_or_too_few_is_refused(message: Wire) -> None:
    fields = json.loads(message.model_dump_json())
    with pytest.raises(ValidationError, match="extra_forbidden"):
        type(message).model_validate_json(json.dumps(fields | {"more": 1}))
    for name, field in type(message).model_fields.items():
        if field.is_required():
            fewer = {other: value for other, value in fields.items() if other != name}
            with pytest.raises(ValidationError, match="missing"):
                type(message).model_validate_json(json.dumps(fewer))


@pytest.mark.parametrize("message", MESSAGES, ids=name_of)
def test_a_field_is_taken_as_it_is_or_refused_never_converted(message: Wire) -> None:
    fields = json.loads(message.model_dump_json())
    for name in fields:
        for value in WRONG:
            try:
                read = type(message).model_validate_json(json.dumps(fields | {name: value}))
            except ValidationError:
                continue
            found = json.loads(read.model_dump_json()).get(name, [])  # no rounds are left out
            assert (found, type(found) is bool) == (value, type(value) is bool)


def test_a_status_of_labels_is_written_as_a_reader_of_version_1_0_knows_it() -> None:
    written = json.loads(STATUS.model_dump_json())
    assert written.keys().isdisjoint({"method", "rounds"})
    assert "late" not in written["records"]
    assert "late" not in written["sites"][0]["records"]
    assert CampaignStatus.model_validate_json(json.dumps(written)) == STATUS
    assert (STATUS.method, STATUS.rounds, STATUS.records.late) == ("labels", (), 0)


def test_a_status_of_scores_says_what_is_new() -> None:
    written = json.loads(SCORES.model_dump_json())
    assert (written["method"], written["records"]["late"]) == ("scores", 1)
    assert written["rounds"][0]["waiting_for"] == ["A site"]
    early = SCORES.model_copy(update={"rounds": ()})
    assert "rounds" not in json.loads(early.model_dump_json())
    assert CampaignStatus.model_validate_json(early.model_dump_json()) == early


@pytest.mark.parametrize("records", ["5", 5.0, True, 0, -1, 2**40 + 1, None, [5]], ids=repr)
def test_a_number_of_records_is_a_positive_integer_and_nothing_like_one(records: Any) -> None:
    with pytest.raises(ValidationError):
        Enrolment.model_validate_json(json.dumps({"records": records}))


@pytest.mark.parametrize("model", MODELS, ids=name_of)
def test_every_model_has_a_closed_schema_and_says_what_it_is(model: type[Wire]) -> None:
    for mode in ("validation", "serialization"):
        schema = TypeAdapter(model).json_schema(mode=mode)
        assert schema["additionalProperties"] is False
        assert schema["properties"].keys() == model.model_fields.keys()
    assert model.__doc__
    assert model.model_config["hide_input_in_errors"] is True


def test_all_that_goes_over_the_wire_is_public() -> None:
    def subclasses(kind: type[Wire]) -> set[type[Wire]]:
        return {kind}.union(*(subclasses(below) for below in kind.__subclasses__()))

    ours = {kind for kind in subclasses(Wire) if kind.__module__.startswith("tacit.protocol.")}
    base = {"Wire", "SignedDocument"}
    assert {kind.__name__ for kind in ours} - base <= set(tacit.protocol.__all__)


def test_the_page_has_a_row_for_every_problem_and_no_other() -> None:
    rows = re.findall(r"^\| `([a-z-]+)` \| (\d{3}) \| (yes|no) \| (.*?) \|$", PAGE, re.MULTILINE)
    expected = [
        (
            problem.value.name,
            str(problem.value.status),
            "yes" if problem.value.may_retry else "no",
            f"{problem.value.title} {problem.value.next}",
        )
        for problem in Problems
    ]
    assert rows == expected


def test_problem_types_are_distinct_and_say_what_to_do() -> None:
    assert len(PROBLEM_TYPES) == len(Problems)
    for urn, kind in PROBLEM_TYPES.items():
        assert urn == f"urn:tacit:problem:{kind.name}"
        assert 400 <= kind.status <= 599
        assert kind.title.endswith(".")
        assert kind.next.endswith(".")


def test_the_page_names_every_field_that_goes_over_the_wire() -> None:
    named = set(re.findall(r"`([a-z_]+)`", PAGE))
    for model in MODELS:
        assert sorted(set(model.model_fields) - named) == [], model.__name__


def test_the_page_names_every_state() -> None:
    closed_by = tacit.protocol.ClosedBy
    for states in (CampaignState, UploadState, Role, closed_by, RoundState, SearchState):
        for state in states:
            assert f"`{state}`" in PAGE


WITHOUT_THE_EXTRA = """
import sys
sys.modules["pydantic"] = sys.modules["pydantic_core"] = sys.modules["rfc8785"] = None
import tacit.conformal, tacit.errors, tacit.mechanisms, tacit.planning, tacit.scores
try:
    import tacit.protocol
except ModuleNotFoundError as error:
    print(error)
"""


def test_the_core_imports_without_what_only_the_protocol_needs() -> None:
    finished = subprocess.run(
        [sys.executable, "-c", WITHOUT_THE_EXTRA], check=True, capture_output=True, text=True
    )
    assert "tacit[protocol]" in finished.stdout
