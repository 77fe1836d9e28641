"""A record is drawn once, with the coins of (campaign key, record), or not at all."""

import sqlite3
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import given as property_of
from hypothesis import strategies as st

from tacit.mechanisms import RandomizedResponse, RecordCoins
from tacit.protocol import Reports, Upload
from tacit.scores import RandomizedAPS
from tacit_client import Contributor, ReportState
from tacit_client import drawing as drawing_module
from tacit_client.errors import BadRecords, BudgetExceeded
from tacit_client.ledger import joined_campaigns, spending
from tacit_client.ledger.records import RECORD, keyed_hashes
from tests.support.client_world import ALLOWING, given, world


def drawn_uploads(contributor: Contributor) -> list[Upload]:
    outbox = contributor.outbox
    return [Upload.model_validate_json(outbox.body(entry.upload)) for entry in outbox.waiting()]


def test_reports_are_those_of_the_campaign_key_and_the_record(tmp_path: Path) -> None:
    one, records = world(k=4, score=RandomizedAPS()), given(50, 4)
    with one.join(tmp_path / "home") as site:
        site.export(tmp_path / "bundle", **records.arguments())
        (joined,) = joined_campaigns(site.ledger)
        (upload,) = drawn_uploads(site)
        hashes = keyed_hashes(site.ledger.meta.secret, RECORD, records.ids)
    assert joined.campaign_key is not None
    reports = Reports.of(upload, one.campaign)
    mechanism = RandomizedResponse.from_channel(one.campaign.channel)
    labels = RecordCoins(joined.campaign_key, hashes, purpose="labels")
    words = RecordCoins(joined.campaign_key, hashes, purpose="uniforms").blocks(0, 50, 0)[:, 0]
    assert np.array_equal(reports.labels, mechanism.privatize(records.labels, labels))
    assert reports.uniforms is not None
    assert reports.uniforms.tolist() == [(int(word) >> 11) * 2.0**-53 for word in words]
    assert np.array_equal(reports.evidence, records.probabilities)


def test_a_record_drawn_before_keeps_its_report_whatever_is_given_now(tmp_path: Path) -> None:
    one, records = world(), given(40)
    with one.join(tmp_path / "home") as site:
        site.export(tmp_path / "bundle", **records.arguments())
        before = drawn_uploads(site)
        changed = replace(records, labels=(records.labels + 1) % 3)
        again = site.export(tmp_path / "bundle", **changed.arguments())
        assert (again.drawn, again.already) == (0, 40)
        assert drawn_uploads(site) == before


def test_only_records_that_are_new_are_drawn(tmp_path: Path) -> None:
    one, records = world(), given(40)
    with one.join(tmp_path / "home") as site:
        some = slice(5, 25)
        site.export(
            tmp_path / "bundle",
            records.labels[some],
            records.ids[some],
            probabilities=records.probabilities[some],
        )
        later = site.export(tmp_path / "bundle", **records.arguments())
        assert (later.drawn, later.already) == (20, 20)
        evidence = np.concatenate(
            [Reports.of(upload, one.campaign).evidence for upload in drawn_uploads(site)]
        )
    expected = np.concatenate(
        [records.probabilities[5:25], records.probabilities[:5], records.probabilities[25:]]
    )
    assert np.array_equal(evidence, expected)


def test_uploads_are_cut_to_a_size_and_together_hold_every_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drawing_module, "MOST_RECORDS", 7)
    one, records = world(), given(20)
    with one.join(tmp_path / "home") as site:
        assert site.export(tmp_path / "bundle", **records.arguments()).uploads == 3
        uploads = drawn_uploads(site)
        counted = site.ledger.read("SELECT upload, count(*) FROM records GROUP BY upload")
    assert [upload.records for upload in uploads] == [7, 7, 6]
    assert [count for _, count in counted] == [7, 7, 6]
    evidence = np.concatenate([Reports.of(upload, one.campaign).evidence for upload in uploads])
    assert np.array_equal(evidence, records.probabilities)


def test_a_drawing_that_fails_on_its_way_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    with world().join(tmp_path / "home") as site:
        monkeypatch.setattr(drawing_module, "spend", fail)
        with pytest.raises(KeyboardInterrupt):
            site.export(tmp_path / "bundle", **given(10).arguments())
        assert site.outbox.entries() == []
        assert site.ledger.read("SELECT * FROM records") == []
        assert spending(site.ledger).persons == 0
        monkeypatch.undo()
        assert site.export(tmp_path / "bundle", **given(10).arguments()).drawn == 10


def test_bad_records_draw_nothing(tmp_path: Path) -> None:
    with world().join(tmp_path / "home") as site:
        with pytest.raises(BadRecords):
            site.export(tmp_path / "bundle", **(given(3).arguments() | {"ids": ["a", "a", "b"]}))
        assert site.outbox.entries() == []


def test_a_person_over_the_maximum_stops_the_whole_call(tmp_path: Path) -> None:
    records = given(5)
    persons = ["p", "p", "p", "q", "q"]
    policy = replace(ALLOWING, max_epsilon=2.0)
    with world(epsilon=1.0).join(tmp_path / "home", policy) as site:
        with pytest.raises(BudgetExceeded) as caught:
            site.export(tmp_path / "bundle", persons=persons, **records.arguments())
        assert (caught.value.persons, caught.value.records) == (1, 3)
        assert site.outbox.entries() == []
        allowed = {name: value[1:] for name, value in records.arguments().items()}
        assert site.export(tmp_path / "bundle", persons=persons[1:], **allowed).drawn == 4
        assert spending(site.ledger).most_epsilon == 2.0


def test_what_a_person_spent_in_one_campaign_is_missing_in_the_next(tmp_path: Path) -> None:
    home, records = tmp_path / "home", given(4)
    policy = replace(ALLOWING, max_epsilon=1.5)
    with world(epsilon=1.0).join(home, policy) as site:
        site.export(tmp_path / "bundle", **records.arguments())
    with world(epsilon=0.5).join(home, policy) as site:
        site.export(tmp_path / "bundle", **records.arguments())
    with world(epsilon=0.001).join(home, policy) as site:
        with pytest.raises(BudgetExceeded):
            site.export(tmp_path / "bundle", **records.arguments())
        others = given(4, prefix="other")
        assert site.export(tmp_path / "bundle", **others.arguments()).drawn == 4


def test_a_record_that_is_its_own_person_is_the_person_of_that_name(tmp_path: Path) -> None:
    home, records = tmp_path / "home", given(1)
    policy = replace(ALLOWING, max_epsilon=1.0)
    with world(epsilon=1.0).join(home, policy) as site:
        site.export(tmp_path / "bundle", **records.arguments())
    named = given(1, prefix="visit").arguments() | {"persons": records.ids}
    with world(epsilon=1.0).join(home, policy) as site, pytest.raises(BudgetExceeded):
        site.export(tmp_path / "bundle", **named)


@pytest.mark.parametrize("persons", [None, ["p", "p", "other"]])
def test_a_record_given_as_another_persons_than_before_is_refused(
    tmp_path: Path, persons: list[str] | None
) -> None:
    home, records = tmp_path / "home", given(3).arguments()
    last = {name: value[2:] for name, value in records.items()}
    with world().join(home) as site:
        site.export(tmp_path / "bundle", persons=["p"], **last)
    with world().join(home) as site:
        with pytest.raises(BadRecords, match=r"row 2 was drawn .*\(1 such rows"):
            site.preview(persons=persons, **records)
        with pytest.raises(BadRecords, match=r"row 2 was drawn .*\(1 such rows"):
            site.export(tmp_path / "bundle", persons=persons, **records)
        assert site.outbox.entries() == []
        assert spending(site.ledger).most_epsilon == 1.0
        assert site.export(tmp_path / "bundle", persons=["p", "p", "p"], **records).drawn == 3
        assert spending(site.ledger).most_epsilon == 4.0


def test_the_ledger_holds_no_id_and_no_label_but_in_keyed_hashes(tmp_path: Path) -> None:
    ids = [f"patient-number-{index}" for index in range(30)]
    with world().join(tmp_path / "home") as site:
        site.export(tmp_path / "bundle", **(given(30).arguments() | {"ids": ids}))
    for path in (tmp_path / "home").iterdir():
        assert b"patient-number" not in path.read_bytes()
    assert b"patient-number" not in (tmp_path / "bundle").read_bytes()


STATES = [state.value for state in ReportState]
ALLOWED = {(state, state) for state in STATES}
ALLOWED |= {("drawn", state) for state in STATES}
ALLOWED |= {("accepted", "counted"), ("accepted", "dropped")}


@property_of(path=st.lists(st.sampled_from(STATES), max_size=6))
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_state_never_goes_back(tmp_path_factory: pytest.TempPathFactory, path: list[str]) -> None:
    directory = tmp_path_factory.mktemp("states")
    with world().join(directory / "home") as site:
        site.export(directory / "bundle", **given(2).arguments())
        state = "drawn"
        for following in path:
            (entry,) = site.outbox.entries()
            site.outbox.mark({entry.upload: ReportState(following)})
            expected = following if (state, following) in ALLOWED else state
            assert site.outbox.entries()[0].state == expected
            if (state, following) not in ALLOWED:
                with (
                    pytest.raises(sqlite3.IntegrityError),
                    site.ledger.transaction("go back") as connection,
                ):
                    connection.execute("UPDATE uploads SET state = ?", (following,))
            state = expected


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM records",
        "DELETE FROM uploads",
        "DELETE FROM spending",
        "DELETE FROM campaigns",
        "UPDATE records SET person = zeroblob(16)",
        "UPDATE spending SET nano = nano - 1",
        "UPDATE uploads SET body = x'00'",
        "UPDATE uploads SET body = NULL",
        "UPDATE uploads SET records = 1",
        "UPDATE campaigns SET campaign_key = randomblob(32)",
        "UPDATE campaigns SET epsilon_nano = 1",
        "UPDATE meta SET sequence = sequence - 1",
        "UPDATE meta SET latest = latest - 1",
        "UPDATE meta SET most_nano = most_nano - 1",
        "UPDATE meta SET secret = randomblob(32)",
        "INSERT INTO records SELECT campaign, record, person, upload FROM records",
    ],
)
def test_the_file_itself_refuses_to_forget(tmp_path: Path, statement: str) -> None:
    with world().join(tmp_path / "home") as site:
        site.export(tmp_path / "bundle", **given(2).arguments())
        with (
            pytest.raises(sqlite3.IntegrityError),
            site.ledger.transaction("forget") as connection,
        ):
            connection.execute(statement)


def test_a_preview_tells_the_exact_bytes_and_draws_nothing(tmp_path: Path) -> None:
    records = given(25)
    with world(score=RandomizedAPS()).join(tmp_path / "home") as site:
        sequence = site.ledger.meta.sequence
        shown = site.preview(**records.arguments())
        assert site.outbox.entries() == []
        assert site.ledger.meta.sequence == sequence
        assert spending(site.ledger).persons == 0
        site.export(tmp_path / "bundle", **records.arguments())
        (entry,) = site.outbox.waiting()
        body = site.outbox.body(entry.upload)
        upload = Upload.model_validate_json(body).model_dump(mode="json", exclude_none=True)
        assert (shown.uploads, shown.bytes, shown.to_draw) == (1, len(body), 25)
        assert shown.first_upload is not None
        assert shown.first_upload["probabilities"] == upload["probabilities"]
        assert upload["probabilities"]["data"] not in repr(shown)
        assert shown.first_upload.keys() == upload.keys()
        assert [(column.name, column.as_it_is) for column in shown.columns] == [
            ("labels", False),
            ("probabilities", True),
            ("uniforms", False),
        ]
        after = site.preview(**records.arguments())
        assert (after.to_draw, after.already, after.uploads, after.first_upload) == (0, 25, 0, None)


def test_a_preview_refuses_what_a_drawing_would(tmp_path: Path) -> None:
    policy = replace(ALLOWING, max_epsilon=1.0)
    with (
        world(epsilon=1.0).join(tmp_path / "home", policy) as site,
        pytest.raises(BudgetExceeded),
    ):
        site.preview(persons=["p"] * 5, **given(5).arguments())


def test_the_notice_says_what_leaves_and_what_is_protected(tmp_path: Path) -> None:
    with world(epsilon=1.0).join(tmp_path / "home") as site:
        assert "probabilities" in site.notice
        assert "ε = 1 " in site.notice
        assert "Only the label is protected" in site.notice
