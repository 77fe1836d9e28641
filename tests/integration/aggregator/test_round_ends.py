"""How rounds and searches end: deadlines, extensions, late answers, dates, owners."""

from tests.support.aggregator import Aggregator, until
from tests.support.label_campaigns import problem, problem_name
from tests.support.score_campaigns import (
    CERTIFIABLE,
    ScoreScene,
    answer_round,
    bits,
    library,
    score_scene,
)


def close(scene: ScoreScene) -> None:
    scene.owner.post(f"{scene.address}/close").raise_for_status()


def test_a_round_with_enough_answers_closes_at_its_deadline(server: Aggregator) -> None:
    with score_scene(server, least=2) as scene:
        fast, slow = scene.site("fast", 20), scene.site("slow", 20)
        fast.answer(fast.asked(), bits(1, 3))
        assert 500 < scene.status().rounds[0].ends_in <= 600
        scene.pass_deadline()
        assert slow.round(0, 20.0).round == 1
        first, second = scene.status().rounds
        assert (first.state, first.answers, first.extensions) == ("closed", 3, 0)
        assert (second.state, second.waiting_for) == ("open", ("fast", "slow"))


def test_a_round_with_too_few_answers_is_extended_and_says_why(server: Aggregator) -> None:
    with score_scene(server, least=5) as scene:
        site = scene.site(enrol=40)
        question = site.asked()
        site.answer(question, bits(1, 2))
        extensions = 0
        while (extensions := extensions + 1) <= 2:
            scene.pass_deadline()
            until(lambda: scene.status().rounds[0].extensions == extensions)
        status = scene.status()
        (only,) = status.rounds
        assert (only.state, only.answers) == ("open", 2)
        assert only.ends_in > 500
        assert "extended 2 times: 2 answers, at least 5 needed." in status.waiting_for[0]
        assert "at least 5 needed" in site.round().waiting_for
        site.answer(question, bits(1, 3))
        scene.pass_deadline()
        assert site.round(0, 20.0).round == 1
        assert scene.status().rounds[0].answers == 5


def test_a_round_takes_fewer_answers_in_proportion_if_fewer_records_are_enrolled(
    server: Aggregator,
) -> None:
    with score_scene(server, least=10) as scene:
        fast, _ = scene.site("fast", 8), scene.site("silent", 8)
        scene.pass_enrolment()
        fast.answer(fast.asked(), bits(1, 3))
        scene.pass_deadline()
        until(lambda: scene.status().rounds[0].extensions == 1)
        assert "3 answers, at least 4 needed." in scene.status().waiting_for[0]
        fast.answer(fast.asked(), bits(1, 1))
        scene.pass_deadline()
        assert fast.round(0, 20.0).round == 1


def test_who_has_left_before_the_first_question_is_not_among_the_enrolled(
    server: Aggregator,
) -> None:
    with score_scene(server) as scene:
        scene.site("north", 10)
        scene.site("south", 25).leave()
        status = scene.status()
        assert status.enrolled == 10
        assert status.waiting_for[0].startswith("10 of 40 planned records enrolled")


def test_late_answers_are_tallied_once_and_never_counted(server: Aggregator) -> None:
    with score_scene(server) as scene:
        north, south = scene.site("north", 20), scene.site("south", 20)
        question = north.asked()
        early, late = south.answers(question, bits(2, 4)), south.answers(question, bits(3, 3))
        assert south.put(early).json()["state"] == "accepted"
        north.done(0, 0)
        south.done(0, 4)
        north.asked(1)
        refused = [south.put(late), south.put(late)]
        assert [problem_name(one) for one in refused] == ["round-closed"] * 2
        changed = south.answers(question, bits(0, 3), late.upload)
        assert problem_name(south.put(changed)) == "upload-conflict"
        assert south.put(early).json()["state"] == "counted"
        tally = scene.status().records
        assert (tally.received, tally.counted, tally.late, tally.pending) == (7, 4, 3, 0)
        receipts = south.http.get(f"{south.address}/uploads").json()["receipts"]
        assert [one["state"] for one in receipts] == ["counted", "late"]
        close(scene)
        scene.wait_until("closed")
        found = scene.found()
        assert [(one.ones, one.answers) for one in found.rounds] == [(2, 4), (0, 0)]
        after_the_end = north.answers(question, bits(1, 1))
        assert problem_name(north.put(after_the_end)) == "round-closed"
        assert scene.status().records.late == 4
        scene.assert_balanced()


def test_a_done_mark_of_a_closed_round_has_no_effect(server: Aggregator) -> None:
    with score_scene(server) as scene:
        fast, slow = scene.site("fast", 20), scene.site("slow", 20)
        fast.answer(fast.asked(), bits(1, 3))
        scene.pass_deadline()
        slow.asked(1)
        before = scene.status().rounds[1].waiting_for
        assert slow.done(0, 7).state == "closed"
        assert scene.status().rounds[1].waiting_for == before


def test_at_its_date_a_search_ends_with_what_it_has(server: Aggregator) -> None:
    with score_scene(server, **CERTIFIABLE) as scene:
        site = scene.site(enrol=120)
        answer_round([site], 0, 60, 60)
        question = site.asked(1)
        site.answer(question, bits(3, 5))
        scene.pass_date()
        status = scene.wait_until("closed")
        assert (status.closed_by, status.records.counted) == ("date", 65)
        found = scene.found("starred")
        assert found.result == library(scene.document, 120, [(60, 60), (3, 5)])
        assert site.round(1, 20.0).state == "over"
        assert problem_name(site.put(site.answers(question, [1]))) == "round-closed"


def test_rounds_that_were_not_asked_count_as_unanswered(server: Aggregator) -> None:
    with score_scene(server) as scene:
        site = scene.site(enrol=40)
        answer_round([site], 0, 5, 5)
        site.answer(site.asked(1), bits(1, 3))
        close(scene)
        status = scene.wait_until("closed")
        assert (status.closed_by, status.records.counted) == ("hand", 8)
        unanswered = [(0, 0)] * 2
        assert scene.found().result == library(scene.document, 40, [(5, 5), (1, 3), *unanswered])


def test_closed_by_hand_nothing_is_certified(server: Aggregator) -> None:
    with score_scene(server, **CERTIFIABLE) as scene:
        site = scene.site(enrol=120)
        answer_round([site], 0, 60, 60)
        site.asked(1)
        close(scene)
        status = scene.wait_until("closed")
        assert status.records.counted == 60
        refused = problem(scene.threshold("starred"))
        assert refused.type.endswith("no-threshold")
        assert "by hand" in refused.detail
        assert "by hand" in status.waiting_for[0]


def test_closed_by_hand_before_the_first_question_there_is_no_result(server: Aggregator) -> None:
    with score_scene(server) as scene:
        site = scene.site(enrol=5)
        close(scene)
        assert scene.wait_until("closed").rounds == ()
        assert "before its first question" in problem(scene.threshold()).detail
        assert site.round().state == "over"
        assert problem_name(site.enrol(6)) == "campaign-closed"


def test_without_a_counted_answer_there_is_no_threshold(server: Aggregator) -> None:
    with score_scene(server) as scene:
        scene.site(enrol=40).asked()
        close(scene)
        scene.wait_until("closed")
        assert "without a counted answer" in problem(scene.threshold()).detail


def test_abandoning_drops_the_answers_of_the_open_round(server: Aggregator) -> None:
    with score_scene(server) as scene:
        site = scene.site(enrol=40)
        answer_round([site], 0, 5, 5)
        question = site.asked(1)
        kept = site.answers(question, bits(1, 3))
        site.put(kept).raise_for_status()
        scene.owner.post(f"{scene.address}/abandon").raise_for_status()
        status = scene.status()
        assert status.state == "abandoned"
        tally = status.records
        assert (tally.received, tally.counted, tally.dropped, tally.pending) == (8, 5, 3, 0)
        assert [one.state for one in status.rounds] == ["closed", "closed"]
        assert site.put(kept).json()["state"] == "dropped"
        assert problem_name(site.put(site.answers(question, [1]))) == "campaign-closed"
        assert problem_name(scene.threshold()) == "no-threshold"
        assert site.round(1, 20.0).state == "over"
        scene.assert_balanced()
