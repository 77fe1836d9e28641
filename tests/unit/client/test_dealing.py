"""Every record gets its round before any question, at random by the campaign key, for good."""

import shutil
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from tacit.protocol import deal_by_key
from tacit_client import Contributor, Membership, Policy
from tacit_client.errors import (
    BadRecords,
    BudgetExceeded,
    CampaignEnded,
    EnrolmentClosed,
    LedgerRestored,
    PolicyRefused,
)
from tacit_client.ledger import spending
from tacit_client.ledger.campaigns import finish_campaign
from tacit_client.ledger.dealt import NEVER, dealt_count
from tacit_client.rounds.dealing import check_enrolled, deal, hand_of
from tests.support.client_world import ALLOWING, OPENS, given
from tests.support.client_world import world as label_world
from tests.support.score_world import (
    ROUNDS,
    answer,
    dealt,
    joined_part,
    part_of,
    records_of,
    score_world,
)


def test_records_are_dealt_out_by_the_campaign_key_in_proportion_to_the_shares(
    tmp_path: Path,
) -> None:
    with joined_part(score_world(shares=(1, 1, 2)), tmp_path / "home") as part:
        hand = dealt(part, 100)
        assert np.bincount(hand.rounds).tolist() == [25, 25, 50]
        key = part.joined.usable_key()
        assert hand.rounds.tolist() == deal_by_key(key, hand.records, (1, 1, 2)).tolist()


def test_records_keep_their_rounds_whatever_is_given_later(tmp_path: Path) -> None:
    world = score_world()
    with joined_part(world, tmp_path / "home") as part:
        first = dealt(part, 30).rounds.tolist()
        sequence = part.ledger.meta.sequence
        assert dealt(part, 30).rounds.tolist() == first
        assert part.ledger.meta.sequence == sequence
        assert dealt(part, 50).rounds.tolist()[:30] == first
        assert dealt_count(part.ledger, part.joined.number) == 50
    with joined_part(world, tmp_path / "home") as part:
        assert hand_of(part, records_of(part, 30)).rounds.tolist() == first


def test_records_given_one_by_one_are_spread_over_the_rounds(tmp_path: Path) -> None:
    """With 4 rounds, 40 records miss one of them with probability below 4·0.75⁴⁰ < 5e-5.

    Then another campaign key is tried: three times is below 1e-12.
    """
    for attempt in range(3):
        with joined_part(score_world(), tmp_path / f"home-{attempt}") as part:
            rounds = {int(dealt(part, 1, f"{index}-").rounds[0]) for index in range(40)}
        if rounds == set(range(ROUNDS)):
            return
    raise AssertionError


def test_a_dealing_is_told_to_the_witness(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with joined_part(score_world(), home) as part:
        before = part.ledger.meta.sequence
        dealt(part, 5)
        assert part.ledger.meta.sequence == before + 1
        part.ledger.check_witnessed()


def test_after_the_first_question_no_record_can_be_added(tmp_path: Path) -> None:
    world = score_world()
    with joined_part(world, tmp_path / "home") as part:
        hand = dealt(part, 20)
        answer(part, hand, world.asked(2))
        with pytest.raises(EnrolmentClosed, match="3 of these records were not enrolled before"):
            dealt(part, 3, "new")
        assert dealt_count(part.ledger, part.joined.number) == 20
        assert (dealt(part, 20).rounds == hand.rounds).all()


def test_a_question_asked_of_others_closes_the_enrolment_too(tmp_path: Path) -> None:
    with joined_part(score_world(), tmp_path / "home") as part:
        with pytest.raises(EnrolmentClosed):
            deal(part, hand_of(part, records_of(part, 3)), begun=True)
        assert dealt_count(part.ledger, part.joined.number) == 0


def test_records_that_were_dealt_out_too_late_to_be_enrolled_are_refused(tmp_path: Path) -> None:
    with joined_part(score_world(), tmp_path / "home") as part:
        dealt(part, 10)
        both = dealt(part, 14)
        assert check_enrolled(part, both, 14).size == 0
        with pytest.raises(EnrolmentClosed, match="4 of these records"):
            check_enrolled(part, both, 10)
        some = hand_of(part, records_of(part, 7))
        absent = check_enrolled(part, some, 10)
        assert sorted(absent.tolist()) == sorted(both.rounds[7:10].tolist())
        assert check_enrolled(part, some, 13).size == 3
        assert check_enrolled(part, some, 14).size == 7


def test_a_record_that_has_answered_is_not_absent(tmp_path: Path) -> None:
    world = score_world()
    with joined_part(world, tmp_path / "home") as part:
        hand = dealt(part, 20)
        answer(part, hand, world.asked(2))
        some = hand_of(part, records_of(part, 10))
        expected = [number for number in hand.rounds[10:].tolist() if number != 2]
        assert sorted(check_enrolled(part, some, 20).tolist()) == sorted(expected)


def test_the_budget_of_all_records_that_wait_is_checked_before_any_is_dealt_out(
    tmp_path: Path,
) -> None:
    policy = Policy(max_epsilon=3.5)
    with joined_part(score_world(epsilon=1.0), tmp_path / "home", policy) as part:
        dealt(part, 3, persons=["p"] * 3)
        with pytest.raises(BudgetExceeded) as caught:
            dealt(part, 1, "more", persons=["p"])
        assert (caught.value.persons, caught.value.records) == (1, 1)
        assert dealt_count(part.ledger, part.joined.number) == 3
        assert len(dealt(part, 1, "more", persons=["q"])) == 1


def test_what_was_dealt_out_elsewhere_is_reserved_before_it_answers_and_spent_after(
    tmp_path: Path,
) -> None:
    policy, home = Policy(max_epsilon=3.0), tmp_path / "home"
    one, other = score_world(epsilon=2.0), score_world(epsilon=2.0)
    with joined_part(one, home, policy) as part:
        hand = dealt(part, 40)
    with joined_part(other, home, policy) as part:
        with pytest.raises(BudgetExceeded, match="may still answer") as caught:
            dealt(part, 40)
        assert (caught.value.persons, caught.value.records) == (40, 40)
        assert dealt_count(part.ledger, part.joined.number) == 0
    with joined_part(one, home, policy) as part:
        for number in range(ROUNDS):
            assert answer(part, hand, one.asked(number)) == 10
    with (
        joined_part(other, home, policy) as part,
        pytest.raises(BudgetExceeded, match=r"of each\.$"),
    ):
        dealt(part, 40)


@pytest.mark.parametrize("state", [Membership.LEFT, Membership.ENDED])
def test_a_campaign_that_is_over_reserves_nothing(tmp_path: Path, state: Membership) -> None:
    policy, home = Policy(max_epsilon=3.0), tmp_path / "home"
    other = score_world(epsilon=2.0)
    with joined_part(score_world(epsilon=2.0), home, policy) as part:
        dealt(part, 5)
        with part.ledger.transaction("end") as connection:
            finish_campaign(connection, part.joined.number, state)
    with joined_part(other, home, policy) as part:
        hand = dealt(part, 5)
        assert sum(answer(part, hand, other.asked(number)) for number in range(ROUNDS)) == 5


def test_two_campaigns_that_fit_together_are_both_answered_to_the_end(tmp_path: Path) -> None:
    """A record's own reservation is not counted beside what it spends."""
    policy, home = Policy(max_epsilon=3.0), tmp_path / "home"
    one, other = score_world(epsilon=2.0), score_world(epsilon=1.0)
    for world in (one, other):
        with joined_part(world, home, policy) as part:
            dealt(part, 8)
    for world in (one, other):
        with joined_part(world, home, policy) as part:
            hand = hand_of(part, records_of(part, 8))
            assert sum(answer(part, hand, world.asked(number)) for number in range(ROUNDS)) == 8
            most = spending(part.ledger).most_epsilon
    assert most == 3.0


def test_what_waits_for_its_round_is_reserved_against_labels_too(tmp_path: Path) -> None:
    home = tmp_path / "home"
    policy = replace(ALLOWING, max_epsilon=1.5)
    with joined_part(score_world(epsilon=1.0), home, policy) as part:
        dealt(part, 4)
    with label_world(epsilon=1.0).join(home, policy) as site:
        with pytest.raises(BudgetExceeded) as caught:
            site.export(tmp_path / "bundle", **given(6, prefix="r").arguments())
        assert (caught.value.persons, caught.value.records) == (4, 4)
        others = given(6, prefix="other").arguments()
        assert site.export(tmp_path / "bundle", **others).drawn == 6


def test_a_policy_that_became_stricter_stops_records_that_wait_for_their_round(
    tmp_path: Path,
) -> None:
    world = score_world(epsilon=1.0)
    with joined_part(world, tmp_path / "home", Policy(max_epsilon=2.0)) as part:
        hand = dealt(part, 2, persons=["p", "p"])
        wary = replace(part, policy=Policy(max_epsilon=1.0))
        with pytest.raises(BudgetExceeded):
            answer(wary, hand, world.asked(int(hand.rounds[0])))
        assert part.ledger.read("SELECT * FROM questions") == []


def test_a_record_dealt_out_as_one_persons_is_refused_as_anothers(tmp_path: Path) -> None:
    with joined_part(score_world(), tmp_path / "home") as part:
        dealt(part, 2, persons=["p", "q"])
        with pytest.raises(BadRecords, match=r"row 1 .*\(1 such rows"):
            dealt(part, 2, persons=["p", "z"])


def test_an_old_copy_of_the_ledger_deals_nothing_out(tmp_path: Path) -> None:
    home, world = tmp_path / "home", score_world()
    world.join(home).close()
    shutil.copytree(home, tmp_path / "old")
    with joined_part(world, home) as part:
        dealt(part, 5)
    shutil.rmtree(home)
    shutil.copytree(tmp_path / "old", home)
    with Contributor.open(None, home, Policy()) as contributor, pytest.raises(LedgerRestored):
        dealt(part_of(contributor, world.campaign), 5)


def test_records_may_be_dealt_out_before_the_campaign_opens_but_not_after_it_closed(
    tmp_path: Path,
) -> None:
    world = score_world()
    early, late = OPENS - timedelta(days=3), OPENS + timedelta(days=5000)
    with world.join_at(early, tmp_path / "early") as contributor:
        part = part_of(contributor, world.campaign)
        assert NEVER not in dealt(part, 5).rounds
    with world.join_at(late, tmp_path / "late") as contributor, pytest.raises(CampaignEnded):
        dealt(part_of(contributor, world.campaign), 5)


def test_a_policy_that_was_withdrawn_deals_nothing_out(tmp_path: Path) -> None:
    with joined_part(score_world(), tmp_path / "home") as part:
        wary = replace(part, policy=Policy(methods=frozenset({"labels"})))
        with pytest.raises(PolicyRefused, match='"scores" to methods'):
            dealt(wary, 5)
