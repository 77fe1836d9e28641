"""How many records an upload holds is the site's choice, below the most there may be."""

from pathlib import Path

import pytest

from tacit.protocol import Upload
from tacit_client import Contributor, Network
from tacit_client.drawing import MOST_RECORDS
from tests.support.client_world import ALLOWING, given, world


@pytest.mark.parametrize(
    ("per_upload", "sizes"),
    [(16, [16, 16, 8]), (40, [40]), (1, [1] * 40), (2 * MOST_RECORDS, [40])],
)
def test_uploads_hold_as_many_records_as_was_said(
    per_upload: int, sizes: list[int], tmp_path: Path
) -> None:
    network = Network(records_per_upload=per_upload)
    records = given(40)
    world().join(tmp_path / "home").close()
    with Contributor.open(None, tmp_path / "home", ALLOWING, network=network) as site:
        shown = site.preview(**records.arguments())
        site.export(tmp_path / "bundle", **records.arguments())
        entries = site.outbox.waiting()
        bodies = [site.outbox.body(entry.upload) for entry in entries]
    assert [entry.records for entry in entries] == sizes
    assert [Upload.model_validate_json(body).records for body in bodies] == sizes
    assert (shown.uploads, shown.bytes) == (len(sizes), sum(map(len, bodies)))
