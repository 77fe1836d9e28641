"""The life of a score campaign over HTTP: from the first question to the library's own result."""

from typing import Any

import pytest

from tacit.conformal import Calibration, Guarantee, NotCertifiable
from tacit.protocol import RoundQuestion
from tests.support.aggregator import Aggregator
from tests.support.label_campaigns import problem, problem_name
from tests.support.score_campaigns import (
    CERTIFIABLE,
    answer_round,
    bits,
    library,
    score_scene,
)


def test_a_nominal_search_finds_what_the_library_finds(server: Aggregator) -> None:
    with score_scene(server) as scene:
        sites = [scene.site("north", 20), scene.site("south", 20)]
        given = [(5, 5), (1, 5), (4, 5), (3, 5)]
        for number, (ones, count) in enumerate(given):
            answer_round(sites, number, ones, count)
        status = scene.wait_until("closed")
        found = scene.found()
        both = [(2 * ones, 2 * count) for ones, count in given]
        assert found.result == library(scene.document, 40, both)
        assert [(one.ones, one.answers, one.sites) for one in found.rounds] == [
            (*one, 2) for one in both
        ]
        assert (found.asked_n, found.sites, found.final, found.which) == (40, 2, True, "nominal")
        assert found.certificate is None
        assert "one randomized bit" in found.privacy.unit
        assert (status.closed_by, status.waiting_for, status.method) == ("plan", (), "scores")
        assert (status.records.counted, status.records.received) == (40, 40)
        assert problem_name(scene.threshold("starred")) == "no-threshold"


def test_a_certified_search_finds_what_the_library_finds(server: Aggregator) -> None:
    with score_scene(server, **CERTIFIABLE) as scene:
        sites = [scene.site("north", 60), scene.site("south", 60)]
        answer_round(sites, 0, 30, 30)
        answer_round(sites, 1, 10, 30)
        scene.wait_until("closed")
        found = scene.found("starred")
        assert found.result == library(scene.document, 120, [(60, 60), (20, 60)])
        outcome = found.outcome()
        assert isinstance(outcome, Calibration)
        assert outcome.guarantee is Guarantee.CERTIFIED
        assert found.certificate is not None
        assert (found.certificate.name, found.certificate.valid) == ("hoeffding-union", "at-close")
        # Round 0 decided: its question is the threshold that was found.
        flip = scene.document.channel.flip
        assert found.hostile.shift_per_record == float(1 / ((1 - 2 * flip) * 60))
        assert problem_name(scene.threshold("nominal")) == "no-threshold"


def test_questions_are_signed_narrow_down_and_are_the_same_for_all(server: Aggregator) -> None:
    with score_scene(server) as scene:
        sites = [scene.site("north", 20), scene.site("south", 20)]
        current = [site.round(-1, 20.0) for site in sites]
        assert current[0].question == current[1].question
        assert current[0].question is not None
        opened = current[0].question.open(RoundQuestion, key=server.key)
        opened.document.check(scene.document, scene.digest)
        answer_round(sites, 0, 5, 5)
        following = sites[0].asked(1)
        assert following.threshold < opened.document.threshold
        first, second = scene.status().rounds
        assert (first.state, first.answers, first.threshold) == ("closed", 10, 0.5)
        assert (first.sites, second.sites) == (2, None)
        assert first.coverage is not None
        assert first.coverage > 1
        assert (second.state, second.high, second.coverage) == ("open", 0.5, None)


def test_a_search_within_its_tolerance_stops_early(server: Aggregator) -> None:
    with score_scene(server, tolerance=1.0, epsilon=6.0) as scene:
        site = scene.site(enrol=40)
        answer_round([site], 0, 8, 10)
        assert scene.wait_until("closed").closed_by == "plan"
        found = scene.found()
        assert len(found.rounds) == 1
        assert found.result == library(scene.document, 40, [(8, 10)])
        assert found.result["threshold"] == 0.5


def test_a_round_closes_at_once_when_every_site_is_done(server: Aggregator) -> None:
    with score_scene(server, round_seconds=86_400) as scene:
        north, south = scene.site("north", 20), scene.site("south", 20)
        question = north.asked()
        north.answer(question, bits(1, 3))
        assert north.done(0, 3).waiting_sites == 1
        (status,) = scene.status().rounds
        assert (status.state, status.answers, status.waiting_for) == ("open", 3, ("south",))
        assert south.done(0, 0).round == 0
        assert north.asked(1).round == 1
        assert scene.status().records.counted == 3


def test_whom_a_round_waits_for_is_shown_to_who_may_see_it(server: Aggregator) -> None:
    with score_scene(server) as scene:
        north = scene.site("north", 20)
        scene.site("south", 20).asked()
        assert scene.status().rounds[0].waiting_for == ("north", "south")
        (as_seen,) = north.status().rounds
        assert (as_seen.waiting_for, as_seen.waiting_sites) == (("north",), 2)
        north.done(0, 0)
        assert north.status().rounds[0].waiting_for == ()
        assert "waits for 1 of 2 sites" in north.status().waiting_for[0]


def test_a_site_that_leaves_is_not_waited_for(server: Aggregator) -> None:
    with score_scene(server) as scene:
        north, south = scene.site("north", 20), scene.site("south", 20)
        question = north.asked()
        south.answer(question, bits(1, 2))
        north.answer(question, bits(1, 3))
        north.done(0, 3)
        south.leave()
        assert north.asked(1).round == 1
        assert scene.status().records.counted == 5
        assert problem_name(south.put(south.answers(question, [1]))) == "not-enrolled"
        scene.assert_balanced()


def test_when_all_sites_have_left_the_search_ends(server: Aggregator) -> None:
    with score_scene(server) as scene:
        site = scene.site(enrol=40)
        site.answer(site.asked(), bits(1, 2))
        site.leave()
        scene.wait_until("closed")
        assert scene.found().result == library(scene.document, 40, [(1, 2), *[(0, 0)] * 3])


def test_sites_enrol_before_the_campaign_opens_and_until_the_first_question(
    server: Aggregator,
) -> None:
    with score_scene(server, opens_in=600) as scene:
        north, south = scene.site("north", 15), scene.site("south", 25)
        assert north.enrol(20).status_code == 200
        waiting = scene.status()
        assert waiting.state == "waiting"
        assert "45 of 40 planned records enrolled" in waiting.waiting_for[0]
        assert north.round().state == "enrolling"
        scene.pass_opening()
        north.asked()
        assert problem_name(north.enrol(30)) == "enrolment-closed"
        assert problem_name(north.enrol(19)) == "enrolment-closed"
        assert problem_name(scene.site("east").enrol(5)) == "enrolment-closed"
        assert south.enrol(25).status_code == 200


def test_too_few_records_to_certify_end_the_campaign_before_anybody_answers(
    server: Aggregator,
) -> None:
    with score_scene(server, **CERTIFIABLE) as scene:
        scene.site(enrol=50)
        scene.pass_enrolment()
        status = scene.wait_until("closed")
        assert (status.rounds, status.waiting_for) == ((), ())
        found = scene.found("starred")
        outcome = found.outcome()
        assert isinstance(outcome, NotCertifiable)
        assert (found.asked_n, found.rounds, outcome.n) == (50, (), 50)
        assert found.hostile.shift_per_record == 0


@pytest.mark.parametrize(("enrolled", "terms"), [(None, {}), (3, {}), (None, CERTIFIABLE)])
def test_without_enough_records_to_ask_there_is_no_result(
    server: Aggregator, enrolled: int | None, terms: dict[str, Any]
) -> None:
    with score_scene(server, **terms) as scene:
        scene.site("site", enrolled)
        scene.pass_enrolment()
        status = scene.wait_until("closed")
        refused = problem(scene.threshold("starred" if terms else "nominal"))
        assert refused.type.endswith("no-threshold")
        assert ("Nobody" if enrolled is None else "3 records enrolled") in refused.detail
        assert refused.detail in status.waiting_for[0]


def test_who_leaves_before_the_first_question_is_not_counted_on(server: Aggregator) -> None:
    with score_scene(server) as scene:
        stays, leaves = scene.site("stays", 10), scene.site("leaves", 20)
        leaves.leave()
        scene.pass_enrolment()
        stays.asked()
        answer_round([stays], 0, 1, 2)
        scene.owner.post(f"{scene.address}/close").raise_for_status()
        scene.wait_until("closed")
        assert scene.found().asked_n == 10


def test_before_the_end_a_threshold_says_what_it_waits_for(server: Aggregator) -> None:
    with score_scene(server) as scene:
        north = scene.site("north", 10)
        before = scene.threshold()
        assert problem_name(before) == "not-ready"
        assert "10 of 40 planned records enrolled" in problem(before).detail
        assert int(before.headers["retry-after"]) <= 30
        scene.site("south", 30)
        north.asked()
        assert "Round 1 of 4 waits for 2 of 2 sites" in problem(scene.threshold()).detail
