"""What `--dry-run` shows: exactly what would leave, with nothing drawn, stored or sent."""

import json
from dataclasses import asdict
from math import prod
from typing import Any

import numpy as np

from tacit.protocol import Enrolment
from tacit_client import Contributor, Preview
from tacit_client.cli.files import Records
from tacit_client.cli.output import facts, many, table
from tacit_client.cli.registering import Run
from tacit_client.cli.words import as_fields
from tacit_client.ledger import spending
from tacit_client.preview import RANDOM_ID

_NOTHING = "Dry run: nothing was drawn, stored or sent."
_MOST_SHOWN = 48
"""Characters of a column's data that a person is shown."""


def show_preview(run: Run, contributor: Contributor, records: Records) -> None:
    """Numbers, columns, ε, what waits already, and the requests that would be sent."""
    found = contributor.preview(
        records.given_labels, records.ids, records.persons, **records.evidence
    )
    before = spending(contributor.ledger).most_epsilon
    after = _most_epsilon(contributor, records, found, before)
    enrolment = None if found.enrolled is None else Enrolment(records=found.enrolled)
    document = {
        "campaign": contributor.digest,
        "notice": contributor.notice,
        "records": found.records,
        "already": found.already,
        "to_draw": found.to_draw,
        "uploads": found.uploads,
        **({"rounds": list(found.rounds)} if found.rounds else {}),
        "body_bytes": found.bytes,
        "waiting": {"records": found.waiting, "uploads": found.waiting_uploads},
        "columns": [{**asdict(c), "bytes": _bytes(c.dtype, c.shape)} for c in found.columns],
        "epsilon_per_record": found.epsilon,
        "most_epsilon_per_person": {
            "before": before,
            "after": after,
            "allowed": contributor.policy.max_epsilon,
        },
        "enrolment": None if enrolment is None else as_fields(enrolment),
        "first_upload": found.first_upload,
    }
    run.screen.explain(contributor.notice, "")
    run.screen.show(
        document,
        _numbers(found, after, contributor.policy.max_epsilon),
        "",
        *((_columns(found), "") if found.to_draw else ()),
        *_requests(contributor, found),
        _NOTHING,
    )


def _numbers(found: Preview, epsilon: float, allowed: float) -> Any:
    waiting = f"{many(found.waiting, 'record')}, sent in {many(found.waiting_uploads, 'upload')}"
    return facts(
        [
            ("records", f"{found.records:,}; drawn before: {found.already:,}"),
            ("would be drawn", f"{found.to_draw:,}, sent in {many(found.uploads, 'upload')}"),
            *([("waits already", waiting)] if found.waiting else []),
            *([("in the rounds", _rounds(found))] if found.rounds else []),
            ("bodies", f"{found.bytes:,} bytes"),
            ("ε per record", f"{found.epsilon:g}"),
            ("ε per person", f"at most {epsilon:g} afterwards; the policy allows {allowed:g}"),
        ]
    )


def _rounds(found: Preview) -> str:
    shares = ", ".join(f"{count:,}" for count in found.rounds)
    return f"{shares}: each record one bit, in its own round, if that is asked"


def _columns(found: Preview) -> Any:
    return table(
        ("column", "type", "shape", "bytes", "leaves"),
        [
            (
                column.name,
                column.dtype,
                list(column.shape),
                f"{_bytes(column.dtype, column.shape):,}",
                "as it is" if column.as_it_is else "randomized",
            )
            for column in found.columns
        ],
        numbers="bytes",
    )


def _requests(contributor: Contributor, found: Preview) -> list[str]:
    """What would be sent, in order, as it would be; long data are shortened."""
    if found.enrolled is None:
        return ["Nothing would be sent: every record was drawn and accepted before."]
    path = f"/v1/campaigns/{contributor.digest}"
    enrolment = Enrolment(records=found.enrolled).model_dump_json()
    lines = [f"To {contributor.url}:", f"PUT {path}/enrolment", enrolment]
    if found.rounds:
        lines.append("and in each round, once its question is verified:")
    if found.waiting:
        lines.append(
            f"{many(found.waiting_uploads, 'upload')} of {many(found.waiting, 'record')} drawn"
            " before, byte for byte as they were drawn"
        )
    if found.first_upload is not None:
        body = {name: _shortened(value) for name, value in found.first_upload.items()}
        lines.append(f"PUT {path}/uploads/{RANDOM_ID}")
        lines.append(json.dumps(body, ensure_ascii=False, separators=(",", ":")))
    if found.uploads > 1:
        lines.append(f"and {many(found.uploads - 1, 'upload')} more like it")
    return lines


def _shortened(value: Any) -> Any:
    """A column whose data a person need not read to their end; anything else as it is."""
    if not isinstance(value, dict) or len(value["data"]) <= _MOST_SHOWN:
        return value
    data = value["data"]
    return {**value, "data": f"{data[:_MOST_SHOWN]}… ({len(data):,} characters)"}


def _bytes(dtype: str, shape: tuple[int, ...]) -> int:
    return int(np.dtype(dtype).itemsize * prod(shape))


def _most_epsilon(
    contributor: Contributor, records: Records, found: Preview, before: float
) -> float:
    """The most that one person can have spent afterwards; the preview refused what is too much."""
    if not found.to_draw:
        return before
    people = records.ids if records.persons is None else records.persons
    most = int(np.unique(people, return_counts=True)[1].max())
    return float(min(before + most * found.epsilon, contributor.policy.max_epsilon))
