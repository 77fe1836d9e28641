"""A site's token touches and shows what is the site's own, whatever it names."""

import json
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from tacit.protocol import CampaignStatus, Receipts, SiteStatus, UploadState
from tests.support.aggregator import Aggregator, in_thread, migrated
from tests.support.label_campaigns import problem, problem_name
from tests.support.people import RECORDS, Play, play
from tests.support.tiny_models import save_onnx

BOTH = pytest.mark.parametrize("played", ["labels", "scores"], indirect=True)
SCORES = pytest.mark.parametrize("played", ["scores"], indirect=True)


@pytest.fixture(scope="module")
def aggregator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Aggregator]:
    folder: Path = tmp_path_factory.mktemp("isolation")
    with in_thread(migrated(folder)) as running:
        yield running


@pytest.fixture
def played(aggregator: Aggregator, model: str, request: pytest.FixtureRequest) -> Iterator[Play]:
    with play(aggregator, request.param, model) as made:
        yield made


def status(played: Play, who: str) -> CampaignStatus:
    answer = played.clients[who].get(f"{played.address}/status").raise_for_status()
    return CampaignStatus.model_validate_json(answer.content)


def of_site(played: Play, name: str) -> SiteStatus:
    return next(site for site in status(played, "owner").sites if site.site == name)


def uploads(played: Play, who: str) -> Receipts:
    answer = played.clients[who].get(f"{played.address}/uploads")
    return Receipts.model_validate_json(answer.raise_for_status().content)


@BOTH
def test_the_same_upload_id_of_two_sites_names_two_uploads(played: Play) -> None:
    ours = played.upload(4)
    assert played.put("site", ours).status_code == 200
    before = of_site(played, "north")
    theirs = played.upload(5).model_copy(update={"upload": ours.upload})
    assert played.put("neighbour", theirs).status_code == 200
    assert of_site(played, "north").records.received == before.records.received
    assert of_site(played, "south").records.received == 5
    found = {each.upload: each.records for each in uploads(played, "site").receipts}
    assert found[ours.upload] == 4
    assert [each.records for each in uploads(played, "neighbour").receipts] == [5]
    assert problem_name(played.put("site", theirs)) == "upload-conflict"


@BOTH
def test_a_site_sees_no_receipt_of_another_wherever_it_begins(played: Play) -> None:
    ours = played.upload()
    played.put("site", ours).raise_for_status()
    assert uploads(played, "neighbour").receipts == ()
    own = played.upload()
    played.put("neighbour", own).raise_for_status()
    somebodys, nobodys = (
        played.clients["neighbour"].get(f"{played.address}/uploads", params={"after": upload})
        for upload in (ours.upload, secrets.token_hex(16))
    )
    assert somebodys.status_code == nobodys.status_code == 422
    assert problem(somebodys).detail == problem(nobodys).detail
    assert [each.upload for each in uploads(played, "neighbour").receipts] == [own.upload]


@BOTH
def test_an_upload_for_one_campaign_is_not_taken_by_another(played: Play) -> None:
    before = played.stored()
    ours = played.upload()
    token = played.clients["stranger"].get("/v1/token").json()
    address = f"/v1/campaigns/{token['campaign']}/uploads/{ours.upload}"
    headers = {"Content-Type": "application/json"}
    answer = played.clients["stranger"].put(address, content=ours.to_bytes(), headers=headers)
    assert problem_name(answer) in {"wrong-digest", "invalid-request"}
    assert played.stored() == before


@BOTH
def test_a_site_that_leaves_takes_no_other_along(played: Play) -> None:
    before = of_site(played, "north")
    played.clients["neighbour"].delete(f"{played.address}/enrolment").raise_for_status()
    assert of_site(played, "south").left
    assert of_site(played, "north") == before
    assert problem_name(played.put("neighbour", played.upload())) == "not-enrolled"
    assert played.put("site", played.upload()).status_code == 200


@BOTH
def test_a_site_enrols_itself_and_nobody_else(played: Play) -> None:
    before = of_site(played, "north")
    body = {"records": RECORDS, "site": "north"}
    answer = played.clients["neighbour"].put(f"{played.address}/enrolment", json=body)
    assert problem_name(answer) == "invalid-request"
    played.clients["neighbour"].put(f"{played.address}/enrolment", json={"records": RECORDS})
    assert of_site(played, "north") == before


@BOTH
def test_a_site_sees_itself_and_how_many_others_there_are(played: Play) -> None:
    played.put("site", played.upload()).raise_for_status()
    seen = status(played, "neighbour")
    assert [site.site for site in seen.sites] == ["south"]
    assert (seen.site_count, seen.enrolled) == (2, 2 * RECORDS)
    assert "north" not in seen.model_dump_json()
    assert {site.site for site in status(played, "owner").sites} == {"north", "south"}


@SCORES
def test_a_site_marks_its_own_part_of_a_round_done(played: Play) -> None:
    done = f"{played.address}/rounds/0/done"
    played.put("site", played.upload(4)).raise_for_status()
    answer = played.clients["neighbour"].put(done, json={"answers": 4})
    assert problem_name(answer) == "answers-missing"
    played.clients["neighbour"].put(done, json={"answers": 0}).raise_for_status()
    (open_round,) = status(played, "owner").rounds
    assert (open_round.waiting_sites, open_round.waiting_for) == (1, ("north",))
    (seen,) = status(played, "neighbour").rounds
    assert (seen.waiting_sites, seen.waiting_for) == (1, ())


@SCORES
def test_a_site_cannot_answer_for_more_records_than_it_enrolled_whoever_enrolled_more(
    played: Play,
) -> None:
    answer = played.put("site", played.upload(RECORDS + 1))
    assert problem_name(answer) == "not-enrolled"
    assert of_site(played, "north").records.received == 0


@SCORES
def test_what_everybody_is_asked_is_the_same_and_names_no_site(played: Play) -> None:
    asked = {
        json.dumps(answer["question"], sort_keys=True)
        for who in ("admin", "owner", "site", "neighbour")
        if (answer := played.clients[who].get(f"{played.address}/round").json())
    }
    assert len(asked) == 1
    content = played.clients["neighbour"].get(f"{played.address}/round").text
    assert "north" not in content


@SCORES
def test_a_model_that_no_campaign_of_the_caller_names_is_not_found(
    played: Play, tmp_path: Path
) -> None:
    unnamed = secrets.token_hex(32)
    for who in ("admin", "owner", "site"):
        answer = played.clients[who].get(f"/v1/models/{unnamed}")
        assert problem_name(answer) == "not-found"
    found = played.clients["site"].get(f"/v1/models/{played.model}")
    assert found.headers["content-type"] == "application/octet-stream"
    assert found.content == save_onnx(tmp_path / "again.onnx").read_bytes()


@SCORES
def test_late_answers_are_tallied_for_the_site_that_sent_them(played: Play) -> None:
    done = f"{played.address}/rounds/0/done"
    late = played.upload(3)
    for who in ("site", "neighbour"):
        answers = played.upload(10)
        played.put(who, answers).raise_for_status()
        played.clients[who].put(done, json={"answers": 10}).raise_for_status()
    closed = f"{played.address}/round"
    played.clients["site"].get(closed, params={"after": 0, "wait": 20}).raise_for_status()
    assert problem_name(played.put("neighbour", late)) == "round-closed"
    assert problem_name(played.put("neighbour", late)) == "round-closed"
    assert (of_site(played, "north").records.late, of_site(played, "south").records.late) == (0, 3)
    states = [each.state for each in uploads(played, "neighbour").receipts]
    assert states == [UploadState.COUNTED, UploadState.LATE]
    assert [each.state for each in uploads(played, "site").receipts] == [UploadState.COUNTED]
