"""`tacit threshold …` and `tacit predict`: what a campaign found, and its use."""

import csv
import json
import os
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from tacit.conformal import NotCertifiable
from tacit.protocol import ThresholdKind
from tacit_client import VerifiedThreshold, verify_threshold
from tacit_client.cli.errors import BadOption
from tacit_client.cli.exits import ExitCode
from tacit_client.cli.files import Table, read_table
from tacit_client.cli.files.layout import EvidenceLayout
from tacit_client.cli.output import table
from tacit_client.cli.registering import Run, command, finish
from tacit_client.cli.server import Server, checked_key
from tacit_client.cli.words import as_fields, threshold_facts

_SHOWN = 10
_RANDOMIZED = (
    "The score is randomized: the sets were made with fresh random numbers, and differ when made"
    " again."
)
_NOT_FINAL = (
    "Warning: this threshold is not final. It is of the records that were counted when it was"
    " fetched, and the campaign went on; tacit threshold get --wait SECONDS fetches the final one."
)

Key = Annotated[
    str | None,
    typer.Option(
        "--key", help="Fingerprint of the key that must have signed it.", envvar="TACIT_KEY"
    ),
]


def get(
    run: Run,
    server: Server,
    campaign: Annotated[str, typer.Argument(help="The campaign's digest, or its beginning.")],
    *,
    which: Annotated[
        ThresholdKind | None,
        typer.Option(
            help="nominal: so far. starred: once, at the planned end. Default: nominal; of scores"
            " the one there is.",
            show_default=False,
        ),
    ] = None,
    wait: Annotated[
        float | None,
        typer.Option(help="Seconds to wait until the campaign is over. Default: as of now.", min=0),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Save it, with its signatures.")
    ] = None,
) -> None:
    """Fetch a threshold and verify it."""
    with server.owner(run) as owner:
        digest = owner.find(campaign)
        found = owner.threshold(digest, which, wait=wait)
        if output is not None:
            found.save(output)
            run.screen.say(f"The signed threshold is in {output}.")
        _show(run, found)
    if isinstance(found.outcome, NotCertifiable):
        finish(ExitCode.REFUSED_THERE)


def verify(
    run: Run,
    file: Annotated[Path, typer.Argument(help="What tacit threshold get -o wrote.")],
    *,
    key: Key = None,
    campaign: Annotated[
        str | None,
        typer.Option(help="The digest it must be of, 12 digits or more; or the signed document."),
    ] = None,
) -> None:
    """Verify a saved threshold: signatures, campaign and every term."""
    _show(run, verify_threshold(file, key=_key(run, key), campaign=campaign))


def predict(
    run: Run,
    layout: EvidenceLayout,
    file: Annotated[Path, typer.Argument(help="Probabilities or logits: .csv, .npz or .parquet.")],
    *,
    threshold: Annotated[Path, typer.Option(help="What tacit threshold get -o wrote.")],
    key: Key = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the sets as CSV.")
    ] = None,
) -> None:
    """Make prediction sets for new records with a verified threshold."""
    verified = VerifiedThreshold.load(threshold, key=_key(run, key))
    classes = verified.document.classes
    if not verified.document.final:
        run.screen.say(_NOT_FINAL)
    found = read_table(file, classes, layout)
    uniforms = None
    if verified.calibration.score.randomized:
        uniforms = _uniforms(len(found.probabilities))
        run.screen.say(_RANDOMIZED)
    sets = verified.sets(found.probabilities, uniforms)
    named = [[classes[index] for index in np.flatnonzero(row)] for row in sets]
    if output is not None:
        _write(output, found, named)
    _show_sets(run, found, sets, named, output, final=verified.document.final)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(help="Fetch and verify thresholds.", no_args_is_help=True)
    command(group, "get")(get)
    command(group, "verify")(verify)
    app.add_typer(group, name="threshold")
    command(app, "predict")(predict)


def _key(run: Run, key: str | None) -> str:
    pinned = key or Server().or_remembered(run).key
    if pinned is None:
        raise BadOption("Say --key, the fingerprint of the key that must have signed it.")
    return checked_key(pinned)


def _show(run: Run, found: VerifiedThreshold) -> None:
    run.screen.show(
        {"verified": True, "key": found.key, "threshold": as_fields(found.document)},
        threshold_facts(found.document, found.campaign),
        *(
            ("There is no threshold to use: there were too few records.",)
            if isinstance(found.outcome, NotCertifiable)
            else ()
        ),
        f"Verified: signed by the pinned key {found.key[:12]}, with the terms of its campaign.",
    )


def _uniforms(n: int) -> NDArray[np.float64]:
    words = np.frombuffer(os.urandom(8 * n), dtype=np.uint64)
    return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _names(found: Table) -> tuple[str, list[str]]:
    """What a record is called in the output, and those names."""
    if found.ids is None:
        return "row", [str(row) for row in range(len(found.probabilities))]
    return "id", [str(name) for name in found.ids]


def _in_words(names: list[str]) -> str:
    """A set in one field: names between bars, or JSON where a name has a bar in it."""
    if any("|" in name for name in names):
        return json.dumps(names, ensure_ascii=False)
    return "|".join(names)


def _write(output: Path, found: Table, named: list[list[str]]) -> None:
    heading, names = _names(found)
    with output.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([heading, "size", "set"])
        writer.writerows(
            [name, len(classes), _in_words(classes)]
            for name, classes in zip(names, named, strict=True)
        )


def _show_sets(
    run: Run,
    found: Table,
    sets: NDArray[np.bool_],
    named: list[list[str]],
    output: Path | None,
    *,
    final: bool,
) -> None:
    sizes = Counter(int(size) for size in sets.sum(axis=1))
    heading, names = _names(found)
    document: dict[str, Any] = {
        "records": len(named),
        "final": final,
        "mean_size": float(sets.sum(axis=1).mean()),
        "sizes": {str(size): count for size, count in sorted(sizes.items())},
    }
    if output is None:
        document["sets"] = [
            {heading: name, "set": classes} for name, classes in zip(names, named, strict=True)
        ]
    else:
        document["output"] = str(output)
    rows = [
        (name, len(classes), ", ".join(classes) or "(empty)")
        for name, classes in zip(names[:_SHOWN], named[:_SHOWN], strict=True)
    ]
    spread = ", ".join(f"{count:,} of size {size}" for size, count in sorted(sizes.items()))
    run.screen.show(
        document,
        *(() if output is not None else (table((heading, "size", "set"), rows, numbers="size"),)),
        *(("…",) if output is None and len(named) > _SHOWN else ()),
        f"{len(named):,} sets of {document['mean_size']:.2f} classes on average: {spread}.",
        *(() if output is None else (f"The sets are in {output}.",)),
    )
