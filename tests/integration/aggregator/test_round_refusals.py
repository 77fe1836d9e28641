"""What is refused in rounds, with nothing stored."""

import secrets

import pytest

from tacit.protocol import Role
from tests.support.aggregator import Aggregator
from tests.support.label_campaigns import problem, problem_name, scene
from tests.support.score_campaigns import bits, score_scene


def test_answers_to_another_question_are_refused(server: Aggregator) -> None:
    with score_scene(server) as campaign:
        site = campaign.site(enrol=40)
        question = site.asked()
        other = question.model_copy(update={"threshold": 0.25})
        later = question.model_copy(update={"round": 1})
        for wrong in (other, later):
            assert problem_name(site.put(site.answers(wrong, [1]))) == "wrong-question"
        assert campaign.status().records.received == 0


def test_answers_before_the_first_question_are_refused(server: Aggregator) -> None:
    with score_scene(server) as asked, score_scene(server) as campaign:
        question = asked.site(enrol=40).asked()
        site = campaign.site(enrol=5)
        assert problem_name(site.put(site.answers(question, [1]))) == "wrong-question"
        assert problem_name(site.put_done(0, 0)) == "wrong-question"


def test_more_answers_than_records_enrolled_are_refused(server: Aggregator) -> None:
    with score_scene(server) as campaign:
        site, other = campaign.site("site", 5), campaign.site("other", 35)
        question = site.asked()
        site.answer(question, bits(1, 4))
        refused = problem(site.put(site.answers(question, bits(1, 2))))
        assert refused.type.endswith("not-enrolled")
        assert "enrolled 5 records and has sent 4" in refused.detail
        site.answer(question, [1])
        stranger = campaign.site("stranger")
        assert problem_name(stranger.put(stranger.answers(question, [1]))) == "not-enrolled"
        assert problem_name(stranger.put_done(0, 0)) == "not-enrolled"
        assert other.status().records.received == 5


def test_a_round_is_done_with_the_answers_that_are_stored(server: Aggregator) -> None:
    with score_scene(server) as campaign:
        site = campaign.site("site", 20)
        campaign.site("other", 20)
        question = site.asked()
        site.answer(question, bits(1, 4))
        for wrong in (0, 3, 5):
            assert problem_name(site.put_done(0, wrong)) == "answers-missing"
        assert campaign.status().rounds[0].waiting_sites == 2
        for _ in range(2):
            assert site.done(0, 4).waiting_sites == 1
        site.answer(question, [1])
        assert problem_name(site.put_done(0, 4)) == "answers-missing"
        assert site.done(0, 5).answers == 5


@pytest.mark.parametrize("content", [[2], [0, 1, 255]])
def test_answers_are_bits(server: Aggregator, content: list[int]) -> None:
    with score_scene(server) as campaign:
        site = campaign.site(enrol=40)
        refused = problem(site.put(site.answers(site.asked(), content)))
        assert refused.type.endswith("invalid-request")
        assert "bits must be 0 or 1" in refused.detail


def test_the_same_answers_are_stored_once(server: Aggregator) -> None:
    with score_scene(server) as campaign:
        site = campaign.site(enrol=40)
        upload = site.answers(site.asked(), bits(2, 3))
        receipts = [site.put(upload).json() for _ in range(3)]
        assert receipts == [receipts[0]] * 3
        assert receipts[0]["state"] == "accepted"
        other = site.answers(site.asked(), bits(1, 3), upload.upload)
        assert problem_name(site.put(other)) == "upload-conflict"
        assert campaign.status().records.pending == 3


def test_a_label_campaign_has_no_rounds_and_takes_no_answers(server: Aggregator) -> None:
    with score_scene(server) as campaign, scene(server) as of_labels:
        question = campaign.site(enrol=40).asked()
        site = of_labels.site()
        assert problem_name(site.http.get(f"{of_labels.address}/round")) == "not-found"
        done = site.http.put(f"{of_labels.address}/rounds/0/done", json={"answers": 0})
        assert problem_name(done) == "not-found"
        answers = campaign.sites["site"].answers(question, [1])
        moved = answers.model_copy(update={"campaign": of_labels.digest})
        refused = site.put_bytes(moved.upload, moved.to_bytes())
        assert problem_name(refused) == "invalid-request"  # 1.1 is spoken here, but not by labels


def test_rounds_are_for_those_of_the_campaign(server: Aggregator) -> None:
    with score_scene(server) as campaign:
        site = campaign.site(enrol=40)
        site.asked()
        address = f"{campaign.address}/round"
        admin = server.token(Role.ADMIN, "operator")
        others = (
            server.token(Role.OWNER, "somebody"),
            server.token(Role.CONTRIBUTOR, "site", secrets.token_hex(32)),
        )
        with server.client(admin) as operator:
            told = [http.get(address).json() for http in (operator, campaign.owner, site.http)]
        assert [one["question"] for one in told] == [told[0]["question"]] * 3
        for token in others:
            with server.client(token) as stranger:
                assert problem_name(stranger.get(address)) == "not-found"
        done = f"{campaign.address}/rounds/0/done"
        assert problem_name(campaign.owner.put(done, json={"answers": 0})) == "forbidden"
