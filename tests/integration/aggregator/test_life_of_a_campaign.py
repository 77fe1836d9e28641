"""A campaign from its creation to its end, over real sockets."""

import secrets

import numpy as np
import pytest

from tacit.conformal import Calibration, NotCertifiable
from tacit.protocol import (
    CampaignList,
    CampaignStatus,
    Features,
    LabelCampaign,
    Role,
    Signed,
    Threshold,
)
from tacit_aggregator.database.engine import Database
from tacit_aggregator.keys.service import read_secret, rotate
from tests.support.aggregator import Aggregator, in_thread, migrated, until
from tests.support.label_campaigns import (
    JSON,
    Reported,
    Scene,
    campaign_document,
    problem,
    problem_name,
    scene,
)


def test_the_created_campaign_is_signed_and_comes_back_as_it_was_sent(campaign: Scene) -> None:
    answer = campaign.owner.get(campaign.address)
    opened = Signed.model_validate_json(answer.content).open(
        LabelCampaign, key=campaign.aggregator.key, digest=campaign.digest
    )
    assert opened.document == campaign.document
    again = campaign.owner.get(campaign.address, headers={"If-None-Match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_creating_the_same_campaign_again_gives_the_same_document(campaign: Scene) -> None:
    answer = campaign.owner.put(
        campaign.address, content=campaign.document.to_bytes(), headers=JSON
    )
    assert answer.status_code == 200
    assert answer.content == campaign.owner.get(campaign.address).content


def test_a_campaign_under_another_address_is_refused(campaign: Scene) -> None:
    other = campaign_document()
    answer = campaign.owner.put(campaign.address, content=other.to_bytes(), headers=JSON)
    assert problem_name(answer) == "wrong-digest"
    assert campaign.owner.get(f"/v1/campaigns/{other.digest}").status_code == 404


@pytest.mark.parametrize(
    ("document", "status", "name"),
    [
        (campaign_document(owner="somebody else"), 403, "forbidden"),
        (campaign_document(opens_in=-100, closes_in=-50), 422, "invalid-request"),
    ],
    ids=["of another owner", "that is over"],
)
def test_a_campaign_that_cannot_be_is_refused(
    campaign: Scene, document: LabelCampaign, status: int, name: str
) -> None:
    answer = campaign.owner.put(
        f"/v1/campaigns/{document.digest}", content=document.to_bytes(), headers=JSON
    )
    assert (answer.status_code, problem_name(answer)) == (status, name)


def test_a_campaign_whose_model_nobody_registered_is_refused(campaign: Scene) -> None:
    evidence = Features(model=secrets.token_hex(32), dtype="uint8", shape=(4, 2))
    document = campaign_document(evidence=evidence)
    answer = campaign.owner.put(
        f"/v1/campaigns/{document.digest}", content=document.to_bytes(), headers=JSON
    )
    assert problem_name(answer) == "unknown-model"


def test_the_thresholds_are_those_of_the_librarys_sketch_of_the_same_reports(
    aggregator: Aggregator, generator: np.random.Generator
) -> None:
    with scene(aggregator, campaign_document(planned_n=2000)) as made:
        sketch = made.document.empty_sketch()
        for name in ("first", "second"):
            site = made.site(name)
            for n in (1, 499, 500):
                reported = Reported.random(generator, n)
                sketch = sketch.add(reported.probabilities, reported.labels)
                site.send(reported.upload(made.digest))
        status = made.wait_until("closed")
        assert (status.closed_by, status.records.counted, status.site_count) == ("plan", 2000, 2)
        assert status.waiting_for == ()
        channel, alpha = made.document.channel, made.document.alpha
        expected = {
            "nominal": sketch.calibrate(channel, alpha),
            "starred": sketch.calibrate(channel, alpha, made.document.delta),
        }
        for which, outcome in expected.items():
            found = _opened(made, which)
            assert found.outcome() == outcome
            assert (found.final, found.sites, found.which) == (True, 2, which)
            assert found.privacy.epsilon == channel.epsilon
        assert isinstance(expected["nominal"], Calibration)


def test_too_few_records_for_the_starred_threshold_say_how_many_it_takes(
    aggregator: Aggregator, generator: np.random.Generator
) -> None:
    with scene(aggregator, campaign_document(planned_n=20)) as made:
        made.site().send(Reported.random(generator, 20).upload(made.digest))
        made.wait_until("closed")
        outcome = _opened(made, "starred").outcome()
        assert isinstance(outcome, NotCertifiable)
        assert outcome.needed > 20


def test_a_nominal_threshold_is_there_while_the_campaign_is_open_and_is_not_final(
    campaign: Scene, generator: np.random.Generator
) -> None:
    campaign.site().send(Reported.random(generator, 30).upload(campaign.digest))
    campaign.wait_until_counted(30)
    found = campaign.threshold()
    assert not _opened(campaign, "nominal").final
    again = campaign.owner.get(
        f"{campaign.address}/thresholds/nominal", headers={"If-None-Match": found.headers["etag"]}
    )
    assert again.status_code == 304


def test_a_nominal_threshold_that_is_not_there_waits_for_one_record_and_not_for_the_plan(
    campaign: Scene,
) -> None:
    waiting = problem(campaign.threshold())
    assert "from the first one on" in waiting.detail
    assert "planned" not in waiting.detail
    assert "0 of 10000 planned records received" in problem(campaign.threshold("starred")).detail


def test_the_threshold_of_a_campaign_without_features_says_nothing_untrue_about_features(
    campaign: Scene, generator: np.random.Generator
) -> None:
    campaign.site().send(Reported.random(generator, 5).upload(campaign.digest))
    campaign.wait_until_counted(5)
    assumptions = " ".join(_opened(campaign, "nominal").result["assumptions"])
    assert "given what is sent with it" in assumptions
    assert "the features are" not in assumptions


def test_one_lying_record_shifts_the_coverage_by_no_more_than_the_document_says(
    campaign: Scene, generator: np.random.Generator
) -> None:
    reported = Reported.random(generator, 50)
    campaign.site().send(reported.upload(campaign.digest))
    campaign.wait_until_counted(50)
    bound = _opened(campaign, "nominal").hostile.shift_per_record
    beta = campaign.document.channel.beta
    honest = campaign.document.empty_sketch().add(reported.probabilities, reported.labels)
    for row in range(10):
        labels, probabilities = reported.labels.copy(), reported.probabilities.copy()
        labels[row] = (labels[row] + 1) % 4
        probabilities[row] = np.eye(4)[labels[row]]
        lied = campaign.document.empty_sketch().add(probabilities, labels)
        shift = np.abs(honest.curve().coverage(beta) - lied.curve().coverage(beta)).max()
        assert 0 < shift <= bound


def test_the_upload_that_reaches_the_plan_is_taken_whole_and_the_next_is_refused(
    aggregator: Aggregator, generator: np.random.Generator
) -> None:
    with scene(aggregator, campaign_document(planned_n=15)) as made:
        site = made.site()
        site.send(Reported.random(generator, 10).upload(made.digest))
        last = Reported.random(generator, 10).upload(made.digest)
        assert site.send(last).records == 10
        refused = site.put(Reported.random(generator, 1).upload(made.digest))
        assert problem_name(refused) == "campaign-closed"
        assert made.wait_until("closed").records.counted == 20
        assert site.send(last).state == "counted"


def test_closed_by_hand_there_is_a_final_nominal_threshold_and_never_a_starred_one(
    campaign: Scene, generator: np.random.Generator
) -> None:
    site = campaign.site()
    site.send(Reported.random(generator, 10).upload(campaign.digest))
    closing = campaign.owner.post(f"{campaign.address}/close")
    assert CampaignStatus.model_validate_json(closing.content).state in ("closing", "closed")
    status = campaign.wait_until("closed")
    assert (status.closed_by, status.records.counted) == ("hand", 10)
    assert campaign.owner.post(f"{campaign.address}/close").status_code == 200
    assert _opened(campaign, "nominal").final
    assert problem_name(campaign.threshold("starred")) == "no-threshold"
    assert problem_name(site.put(Reported.random(generator, 1).upload(campaign.digest))) == (
        "campaign-closed"
    )
    abandoning = campaign.owner.post(f"{campaign.address}/abandon")
    assert problem_name(abandoning) == "campaign-closed"
    # Not the advice of an upload: nothing was to be stored here.
    assert problem(abandoning).next.startswith("Nothing was stored or changed")


def test_without_delta_there_will_never_be_a_starred_threshold(aggregator: Aggregator) -> None:
    with scene(aggregator, campaign_document(delta=None)) as made:
        answer = made.threshold("starred")
        assert (answer.status_code, problem_name(answer)) == (410, "no-threshold")


def test_an_abandoned_campaign_has_no_results_and_its_records_are_accounted_for(
    campaign: Scene, generator: np.random.Generator
) -> None:
    site = campaign.site()
    upload = Reported.random(generator, 10).upload(campaign.digest)
    site.send(upload)
    for _ in range(2):
        answer = campaign.owner.post(f"{campaign.address}/abandon")
        status = CampaignStatus.model_validate_json(answer.raise_for_status().content)
        assert status.state == "abandoned"
        assert status.records.pending == 0
        assert status.records.counted + status.records.dropped == 10
    assert problem_name(campaign.threshold()) == "no-threshold"
    assert problem_name(campaign.threshold("starred")) == "no-threshold"
    assert site.send(upload).state in ("counted", "dropped")


def test_a_campaign_waits_opens_and_ends_on_its_dates(
    tmp_path_factory: pytest.TempPathFactory, generator: np.random.Generator
) -> None:
    now = [1_800_000_000.0]
    settings = migrated(tmp_path_factory.mktemp("dates"))
    document = campaign_document(opens_in=100, closes_in=200, now=now[0])
    with in_thread(settings, lambda: now[0]) as aggregator, scene(aggregator, document) as made:
        site = made.site()
        upload = Reported.random(generator, 200).upload(made.digest)
        early = site.put(upload)
        assert (problem_name(early), early.headers["retry-after"]) == ("not-open", "100")
        assert (made.status().state, made.status().opens_in) == ("waiting", 100)
        now[0] += 150
        site.send(upload)
        made.wait_until_counted(200)
        missing = made.threshold("starred")
        assert "200 of 10000 planned records received" in problem(missing).detail
        assert missing.headers["retry-after"] == "30"
        now[0] += 50
        late = site.put(Reported.random(generator, 1).upload(made.digest))
        assert problem_name(late) == "campaign-closed"
        assert made.wait_until("closed").closed_by == "date"
        assert _opened(made, "starred").result["n"] == 200


def test_a_campaign_that_ends_without_records_never_has_a_threshold(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    now = [1_800_000_000.0]
    settings = migrated(tmp_path_factory.mktemp("empty"))
    document = campaign_document(now=now[0])
    with in_thread(settings, lambda: now[0]) as aggregator, scene(aggregator, document) as made:
        now[0] += 4000
        made.wait_until("closed")
        for which in ("nominal", "starred"):
            assert problem_name(made.threshold(which)) == "no-threshold"


def test_each_sees_its_own_campaigns(campaign: Scene, aggregator: Aggregator) -> None:
    campaign.site("one")
    two = campaign.site("two")
    with scene(aggregator, campaign_document(owner="another owner")) as other:
        for client, seen in ((campaign.owner, campaign), (other.owner, other)):
            listed = _listed(client.get("/v1/campaigns").content)
            assert seen.digest in listed
            assert {one.owner for one in listed.values()} == {seen.document.owner}
        with aggregator.client(aggregator.token(Role.ADMIN, "operator")) as admin:
            assert {campaign.digest, other.digest} <= set(
                _listed(admin.get("/v1/campaigns").content)
            )
        listed = _listed(two.http.get("/v1/campaigns").content)
        assert set(listed) == {campaign.digest}
        assert [site.site for site in listed[campaign.digest].sites] == ["two"]
        assert listed[campaign.digest].site_count == 2
        assert len(campaign.status().sites) == 2
        for path in ("", "/status", "/thresholds/nominal"):
            assert problem_name(other.owner.get(campaign.address + path)) == "not-found"
            assert problem_name(two.http.get(other.address + path)) == "not-found"


def test_a_site_that_left_is_counted_and_sends_nothing_more(
    campaign: Scene, generator: np.random.Generator
) -> None:
    site = campaign.site()
    first = Reported.random(generator, 10).upload(campaign.digest)
    site.send(first)
    for _ in range(2):
        answer = site.http.delete(f"{campaign.address}/enrolment").raise_for_status()
        assert answer.json()["left"] is True
    refused = site.put(Reported.random(generator, 1).upload(campaign.digest))
    assert problem_name(refused) == "not-enrolled"
    back = site.http.put(f"{campaign.address}/enrolment", json={"records": 100})
    assert problem_name(back) == "not-enrolled"
    campaign.wait_until_counted(10)
    assert site.send(first).state == "counted"


def test_an_enrolment_may_rise_but_not_fall_below_what_was_received(
    campaign: Scene, generator: np.random.Generator
) -> None:
    site = campaign.site(enrol=10)
    site.send(Reported.random(generator, 8).upload(campaign.digest))
    too_many = Reported.random(generator, 3).upload(campaign.digest)
    assert problem_name(site.put(too_many)) == "not-enrolled"
    address = f"{campaign.address}/enrolment"
    assert problem_name(site.http.put(address, json={"records": 7})) == "invalid-request"
    assert site.enrol(11).enrolled == 11
    site.send(too_many)


def test_receipts_come_in_pages_and_follow_the_uploads(
    campaign: Scene, generator: np.random.Generator
) -> None:
    site, other = campaign.site(), campaign.site("other")
    sent = [Reported.random(generator, 1).upload(campaign.digest) for _ in range(5)]
    for upload in sent:
        site.send(upload)
    other.send(Reported.random(generator, 1).upload(campaign.digest))
    campaign.wait_until_counted(6)
    address = f"{campaign.address}/uploads"
    pages, after = [], None
    for _ in range(3):
        parameters = {"limit": "2", **({"after": after} if after else {})}
        page = site.http.get(address, params=parameters).raise_for_status().json()
        pages += page["receipts"]
        after = page["next"]
    assert after is None
    assert [receipt["upload"] for receipt in pages] == [upload.upload for upload in sent]
    assert {receipt["state"] for receipt in pages} == {"counted"}
    unknown = site.http.get(address, params={"after": secrets.token_hex(16)})
    assert problem_name(unknown) == "invalid-request"


def test_after_a_key_was_replaced_a_campaign_keeps_the_one_it_was_signed_with(
    aggregator: Aggregator, campaign: Scene, generator: np.random.Generator
) -> None:
    before = aggregator.key
    database = Database(aggregator.settings.database_url)
    with database.transaction("test rotation") as connection:
        after = rotate(connection, read_secret(aggregator.settings), 1.0e10)
    database.close()
    campaign.site().send(Reported.random(generator, 3).upload(campaign.digest))
    campaign.wait_until_counted(3)
    signed = Signed.model_validate_json(campaign.threshold().content)
    assert signed.key == before != after
    assert until(lambda: campaign.owner.get("/v1/server").json()["keys"])[0] == after


def _opened(made: Scene, which: str) -> Threshold:
    answer = made.threshold(which)
    assert answer.status_code == 200, answer.text
    key = Signed.model_validate_json(made.owner.get(made.address).content).key
    opened = Signed.model_validate_json(answer.content).open(Threshold, key=key)
    assert opened.document.campaign == made.digest
    assert answer.headers["etag"] == f'"{opened.digest}"'
    return opened.document


def _listed(content: bytes) -> dict[str, CampaignStatus]:
    listed = CampaignList.model_validate_json(content)
    return {campaign.campaign: campaign for campaign in listed.campaigns}
