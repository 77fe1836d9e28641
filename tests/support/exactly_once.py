"""The oracle of kill tests: every acknowledged report is counted once, and none was drawn twice.

Each record has probabilities of its own, so that its two scores fall into cells of the sketch's
grid where no other record's do. The final counts then tell, record by record, how often it was
counted and with which label.
"""

import hashlib
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.conformal import CoverageSketch
from tacit.protocol import LabelCampaign, Upload
from tacit.protocol.reports import Reports
from tests.support.aggregator import until

CLASSES = ("no", "yes")
_STEPS = 512
"""Fewer than the grid has cells, so that neighbours never share one."""


def markers(first: int, count: int) -> NDArray[np.float64]:
    """Probabilities of the records first, first + 1, …: one row each, unlike any other."""
    if not 0 <= first <= first + count < _STEPS // 2:
        raise ValueError("There are not that many markers.")
    yes = 0.5 + (np.arange(first, first + count) + 0.5) / _STEPS
    return np.stack([1 - yes, yes], axis=1)


@dataclass(frozen=True)
class DrawnUpload:
    """An upload as the ledger holds it."""

    upload: str
    records: int
    state: str
    body: bytes | None


def rows(file: Path, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
    """What a query finds in a SQLite file that others may be using."""
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True, timeout=10)) as connection:
        return connection.execute(statement, parameters).fetchall()


def drawn_uploads(ledger: Path, digest: str) -> list[DrawnUpload]:
    """All uploads that were ever drawn for a campaign; none if there is no ledger yet."""
    if not ledger.exists() or not rows(ledger, "SELECT 1 FROM sqlite_master LIMIT 1"):
        return []
    statement = (
        "SELECT uploads.upload, records, uploads.state, body FROM uploads"
        " JOIN campaigns ON campaigns.number = uploads.campaign WHERE digest = ?"
        " ORDER BY uploads.number"
    )
    return [DrawnUpload(*row) for row in rows(ledger, statement, digest)]


def sketch_of(campaign: LabelCampaign, bodies: Sequence[bytes]) -> CoverageSketch:
    """The library's sketch of these uploads, each counted once."""
    sketch = campaign.empty_sketch()
    for body in bodies:
        reports = Reports.of(Upload.model_validate_json(body), campaign)
        sketch = sketch.add(reports.evidence, reports.labels, reports.uniforms)
    return sketch


def evidence_rows(campaign: LabelCampaign, bodies: Sequence[bytes]) -> Iterator[bytes]:
    """The bytes of every record's probabilities, as an upload carries them."""
    for body in bodies:
        evidence = Reports.of(Upload.model_validate_json(body), campaign).evidence
        yield from (row.tobytes() for row in evidence)


@dataclass(frozen=True)
class Oracle:
    """What must hold of one campaign in an aggregator's database."""

    database: Path
    digest: str
    campaign: LabelCampaign

    def everything_is_counted(self, records: int) -> bool:
        """Whether so many were received, and nothing waits."""
        ((received, counted),) = rows(
            self.database,
            "SELECT coalesce(sum(received), 0), coalesce(sum(counted), 0) FROM sites"
            " WHERE campaign = ?",
            self.digest,
        )
        return (received, counted) == (records, records)

    def check_site(self, site: str, expected: NDArray[np.float64], bodies: Sequence[bytes]) -> None:
        """One site: the markers it contributed, each once, as they were drawn."""
        drawn = Counter(evidence_rows(self.campaign, bodies))
        assert drawn == Counter(row.tobytes() for row in expected), "not every record drawn once"
        ((received, counted, dropped, noisy, every),) = rows(
            self.database,
            "SELECT received, counted, dropped, noisy, every FROM sites"
            " WHERE campaign = ? AND site = ?",
            self.digest,
            site,
        )
        assert (received, counted, dropped) == (len(expected), len(expected), 0)
        sketch = sketch_of(self.campaign, bodies)
        np.testing.assert_array_equal(np.frombuffer(noisy, "<i8"), sketch.noisy)
        np.testing.assert_array_equal(np.frombuffer(every, "<i8"), sketch.every)
        self._check_markers(expected, np.frombuffer(noisy, "<i8"), np.frombuffer(every, "<i8"))
        self._check_uploads(site, bodies)

    def check_totals(self) -> None:
        """The campaign's own number, and nothing left that waits."""
        ((received, of_sites),) = rows(
            self.database,
            "SELECT received, (SELECT sum(received) FROM sites WHERE campaign = digest)"
            " FROM campaigns WHERE digest = ?",
            self.digest,
        )
        assert received == of_sites
        assert rows(self.database, "SELECT * FROM pending WHERE campaign = ?", self.digest) == []

    def check_erased(self, evidence: NDArray[np.generic]) -> None:
        """No record's evidence is in any file of the database, once the log was cut off."""
        files = [Path(f"{self.database}{ending}") for ending in ("", "-wal", "-shm")]

        def found() -> int:
            content = b"".join(file.read_bytes() for file in files if file.exists())
            return sum(row.tobytes() in content for row in evidence)

        until(lambda: not found(), seconds=20)

    def _check_markers(
        self, expected: NDArray[np.float64], noisy: NDArray[np.int64], every: NDArray[np.int64]
    ) -> None:
        """Record by record: both its scores counted once, and one of them for its report."""
        for row in expected:
            (cells,) = np.nonzero(self.campaign.empty_sketch().add(row[None], [0]).every)
            assert every[cells].tolist() == [1, 1]
            assert noisy[cells].sum() == 1

    def _check_uploads(self, site: str, bodies: Sequence[bytes]) -> None:
        """What the server took is, byte for byte, what the site drew."""
        stored = rows(
            self.database,
            "SELECT upload, body_hash, records, state FROM uploads"
            " WHERE campaign = ? AND site = ? ORDER BY upload",
            self.digest,
            site,
        )
        sent = [Upload.model_validate_json(body) for body in bodies]
        assert stored == sorted(
            (upload.upload, hashlib.sha256(body).digest(), upload.records, "counted")
            for upload, body in zip(sent, bodies, strict=True)
        )


def check_ledger(ledger: Path, digest: str, records: int) -> None:
    """Every record is in the ledger once, in one upload, and spent its ε once."""
    ((drawn, distinct),) = rows(
        ledger,
        "SELECT count(*), count(DISTINCT record) FROM records"
        " JOIN campaigns ON campaigns.number = records.campaign WHERE digest = ?",
        digest,
    )
    assert (drawn, distinct) == (records, records)
    assert sum(upload.records for upload in drawn_uploads(ledger, digest)) == records
    spent = rows(ledger, "SELECT DISTINCT nano FROM spending")
    assert spent == rows(ledger, "SELECT DISTINCT epsilon_nano FROM campaigns")
