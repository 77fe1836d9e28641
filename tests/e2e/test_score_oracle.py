"""The oracle of score campaigns finds each way in which a campaign could be wrong."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from tacit.protocol import AnswerUpload, Column
from tacit_client import Owner
from tests.support.scene import service
from tests.support.score_oracle import ScoreOracle
from tests.support.score_scene import (
    ScoreSite,
    answering_here,
    create_score_campaign,
    score_sites,
    some_scores,
)

EACH = 60
SITES = ("north", "south")


@dataclass
class Over:
    """A campaign that is over, and was right."""

    owner: Owner
    oracle: ScoreOracle

    def copied(self, folder: Path) -> ScoreOracle:
        """The same of copies of the database and the ledgers."""
        database = folder / "aggregator.db"
        source = Path(self.oracle.url.removeprefix("sqlite:///"))
        with closing(sqlite3.connect(source)) as found, closing(sqlite3.connect(database)) as copy:
            found.backup(copy)
        sites = [self._copied(site, folder) for site in self.oracle.sites]
        return ScoreOracle(f"sqlite:///{database}", self.oracle.campaign, sites)

    def _copied(self, site: ScoreSite, folder: Path) -> ScoreSite:
        shutil.copytree(site.home, folder / site.folder.name / "home")
        return replace(site, folder=folder / site.folder.name)


@pytest.fixture(scope="module")
def over(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Over]:
    folder = tmp_path_factory.mktemp("over")
    with service(folder / "aggregator") as stage:
        stage.start()
        with stage.owner() as owner:
            campaign = create_score_campaign(owner, len(SITES) * EACH)
            scores = some_scores(SITES, EACH)
            sites = score_sites(stage.aggregator, campaign, folder, scores, per_upload=1)
            sites[1].per_upload = EACH  # all that it answers in a round
            with answering_here(sites):
                pass
            yield Over(owner, ScoreOracle(stage.database_url, campaign, sites))


def test_a_campaign_that_is_right_is_found_right(over: Over, tmp_path: Path) -> None:
    over.oracle.check(over.owner)
    over.copied(tmp_path).check(over.owner)


IN_THE_DATABASE = {
    "an answer that is late after all": "UPDATE uploads SET state = 'late' WHERE number = 1",
    "an answer in another round": "UPDATE uploads SET round = 1 - round WHERE round < 2",
    "an upload that was counted and is gone": "DELETE FROM uploads WHERE number = 1",
    "an upload with another body": "UPDATE uploads SET body_hash = x'00' WHERE number = 1",
    "another number of ones": "UPDATE uploads SET ones = records - ones WHERE number < 9",
    "a round with one more": "UPDATE rounds SET answers = answers + 1 WHERE round = 0",
    "a round with another sum": "UPDATE rounds SET ones = ones - 1 WHERE round = 1",
    "a round of fewer sites": "UPDATE rounds SET sites = 1 WHERE round = 2",
    "a round that is missing": "DELETE FROM rounds WHERE round = 1",
    "a round that is open": "UPDATE rounds SET state = 'open' WHERE round = 2",
    "another question": "UPDATE rounds SET digest = 'another' WHERE round = 0",
    "a question that was signed with another threshold": (
        "UPDATE rounds SET signed = (SELECT signed FROM rounds WHERE round = 1) WHERE round = 0"
    ),
    "a search for more records than were enrolled": (
        "UPDATE sites SET enrolled = enrolled - 1 WHERE site = 'north'"
    ),
    "a search for more records than were asked": "UPDATE campaigns SET asked_n = asked_n - 1",
    "late answers of a site that is not there": (
        "UPDATE uploads SET site = 'nobody', state = 'late' WHERE number = 1"
    ),
}
IN_A_LEDGER = {
    "a record that answered in another round": (
        "DROP TRIGGER dealt_stay_the_same; UPDATE dealt SET round = (round + 1) % 3"
    ),
    "records that answered in the round they were moved to": (
        "DROP TRIGGER dealt_stay_the_same; DROP TRIGGER uploads_keep_their_round;"
        " UPDATE dealt SET round = (round + 1) % 3; UPDATE uploads SET round = (round + 1) % 3"
    ),
    "a record that answered and was never dealt out": (
        "DROP TRIGGER dealt_stay;"
        " DELETE FROM dealt WHERE record = (SELECT min(record) FROM records)"
    ),
    "an upload without its record": (
        "DROP TRIGGER records_stay; DELETE FROM records WHERE upload = 1"
    ),
    "a record in two uploads": (
        "INSERT INTO kept SELECT upload || 'again', body FROM kept LIMIT 1"
    ),
    "a question that nobody else was asked": (
        "DROP TRIGGER questions_stay_the_same;"
        " UPDATE questions SET digest = 'another' WHERE round = 0"
    ),
    "a question that another was kept for": (
        "DROP TRIGGER questions_stay_the_same; UPDATE questions SET signed ="
        " (SELECT signed FROM questions WHERE round = 1) WHERE round = 0"
    ),
    "a receipt that does not hold": (
        "DROP TRIGGER uploads_never_go_back; UPDATE uploads SET state = 'late' WHERE number = 1"
    ),
    "a body that was never drawn": "DELETE FROM kept WHERE upload = (SELECT min(upload) FROM kept)",
}


@pytest.mark.parametrize("change", IN_THE_DATABASE.values(), ids=list(IN_THE_DATABASE))
def test_a_database_that_is_wrong_is_found_out(over: Over, tmp_path: Path, change: str) -> None:
    changed = over.copied(tmp_path)
    with closing(sqlite3.connect(tmp_path / "aggregator.db")) as connection, connection:
        assert connection.execute(change).rowcount > 0
    with pytest.raises((AssertionError, LookupError, ValueError)):
        changed.check(over.owner)


@pytest.mark.parametrize("change", IN_A_LEDGER.values(), ids=list(IN_A_LEDGER))
def test_a_ledger_that_is_wrong_is_found_out(over: Over, tmp_path: Path, change: str) -> None:
    changed = over.copied(tmp_path)
    with closing(sqlite3.connect(changed.sites[0].ledger)) as connection:
        connection.executescript(change)
    with pytest.raises((AssertionError, LookupError)):
        changed.check(over.owner)


def test_bits_that_are_not_those_of_the_records_coins_are_found_out(
    over: Over, tmp_path: Path
) -> None:
    """With other coins one bit is the same with probability 0.61 (ε = 1), all 120 with 1e-26."""
    changed = over.copied(tmp_path)
    for site in changed.sites:
        site.campaign_key = bytes(32)
    with pytest.raises(AssertionError):
        changed.check(over.owner)


def test_bits_of_one_record_at_the_place_of_another_are_found_out(
    over: Over, tmp_path: Path
) -> None:
    """A round of one site has 20 bits, all the same with 0.73²⁰ at most; all three with 7e-9."""
    changed = over.copied(tmp_path)
    site = changed.sites[1]
    turned = [(_turned(upload).to_bytes(), upload.upload) for upload in site.answers()]
    with closing(sqlite3.connect(site.ledger)) as connection, connection:
        connection.executemany("UPDATE kept SET body = ? WHERE upload = ?", turned)
    with pytest.raises(AssertionError, match="bits of other coins"):
        changed.check_ledger(site)


def _turned(upload: AnswerUpload) -> AnswerUpload:
    """The same bits, each at the place of the next one."""
    bits = np.roll(upload.answers().astype(np.uint8), 1)
    return upload.model_copy(update={"bits": Column.of(bits)})


def test_totals_that_are_not_those_of_the_sites_are_found_out(
    over: Over, monkeypatch: pytest.MonkeyPatch
) -> None:
    status = over.owner.status(over.oracle.campaign.digest)
    counted, late = status.records.counted - 1, status.records.late + 1
    records = status.records.model_copy(update={"counted": counted, "late": late})
    wrong = status.model_copy(update={"records": records})
    monkeypatch.setattr(over.owner, "status", lambda _: wrong)
    with pytest.raises(AssertionError, match="counted in all is not that of the sites"):
        over.oracle.check_balance(over.owner)
