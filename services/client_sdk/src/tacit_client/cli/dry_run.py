"""What `--dry-run` shows: exactly what would leave, with nothing drawn, stored or sent."""

import json
from dataclasses import asdict
from math import prod
from typing import Any

import numpy as np

from tacit.protocol import Column
from tacit_client import Contributor, Preview
from tacit_client.cli.files import Records
from tacit_client.cli.output import facts, many, table
from tacit_client.cli.registering import Run
from tacit_client.ledger import spending

_NOTHING = "Dry run: nothing was drawn, stored or sent."


def show_preview(run: Run, contributor: Contributor, records: Records) -> None:
    """Numbers, columns, ε, and the message of the first record with its label left open."""
    found = contributor.preview(records.labels, records.ids, records.persons, **records.evidence)
    columns = [
        {**asdict(column), "bytes": np.dtype(column.dtype).itemsize * prod(column.shape)}
        for column in found.columns
    ]
    before = spending(contributor.ledger).most_epsilon
    after = _most_epsilon(contributor, records, found, before)
    first = _first_record(found)
    document = {
        "campaign": contributor.digest,
        "notice": contributor.notice,
        "records": found.records,
        "already": found.already,
        "to_draw": found.to_draw,
        "uploads": found.uploads,
        "body_bytes": found.bytes,
        "columns": columns,
        "epsilon_per_record": found.epsilon,
        "most_epsilon_per_person": {
            "before": before,
            "after": after,
            "allowed": contributor.policy.max_epsilon,
        },
        "first_record": first,
    }
    run.screen.show(
        document,
        contributor.notice,
        "",
        facts(
            [
                ("records", f"{found.records:,}; drawn before: {found.already:,}"),
                ("would be drawn", f"{found.to_draw:,}, sent in {many(found.uploads, 'upload')}"),
                ("bodies", f"{found.bytes:,} bytes"),
                ("ε per record", f"{found.epsilon:g}"),
                (
                    "ε per person",
                    f"at most {after:g} afterwards; the policy allows"
                    f" {contributor.policy.max_epsilon:g}",
                ),
            ]
        ),
        "",
        table(
            ("column", "type", "shape", "bytes", "leaves"),
            [
                (
                    column["name"],
                    column["dtype"],
                    list(column["shape"]),
                    f"{column['bytes']:,}",
                    "as it is" if column["as_it_is"] else "randomized",
                )
                for column in columns
            ],
            numbers="bytes",
        ),
        "",
        "The first record's message:",
        json.dumps(first, ensure_ascii=False),
        _NOTHING,
    )


def _first_record(found: Preview) -> dict[str, Any] | None:
    """The part of the first upload that is about its first record."""
    if found.first_upload is None:
        return None
    message = {**found.first_upload}
    for name in ("labels", "uniforms", "probabilities", "features"):
        if name in message:
            message[name] = _first_of(message[name])
    return message


def _first_of(column: dict[str, Any]) -> Any:
    try:
        first: Any = Column.model_validate_json(json.dumps(column)).array()[0].tolist()
    except ValueError:  # what is randomized is left open, and no base64
        return column["data"]
    return first


def _most_epsilon(
    contributor: Contributor, records: Records, found: Preview, before: float
) -> float:
    """The most that one person can have spent afterwards; the preview refused what is too much."""
    if not found.to_draw:
        return before
    people = records.ids if records.persons is None else records.persons
    most = int(np.unique(people, return_counts=True)[1].max())
    return float(min(before + most * found.epsilon, contributor.policy.max_epsilon))
