"""A record answers one question, once, in its own round, with coins of its own."""

import math
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from tacit.errors import Untrusted, WrongKey
from tacit.mechanisms import BinaryRandomizedResponse, RecordCoins
from tacit.protocol import CurrentRound, RoundQuestion, Signed, SigningKey, order_by_key
from tacit_client import Network, Outbox, Policy
from tacit_client.errors import NotYetOpen, QuestionRefused, SecondQuestion
from tacit_client.ledger import spending
from tacit_client.rounds import drawing as drawing_module
from tacit_client.rounds.dealing import Hand, deal, hand_of
from tacit_client.rounds.drawing import checked_question, draw_answers
from tacit_client.rounds.records import ScoreRecords
from tests.support.client_world import OPENS
from tests.support.score_world import (
    ROUNDS,
    ScoreWorld,
    answer,
    dealt,
    joined_part,
    names,
    part_of,
    score_world,
    scores,
    waiting_answers,
)

N = 60


def test_answers_are_those_of_the_scores_the_campaign_key_and_the_record(tmp_path: Path) -> None:
    world = score_world()
    with joined_part(world, tmp_path / "home") as part:
        hand = dealt(part, N)
        assert answer(part, hand, world.asked(1, 0.25)) == N // ROUNDS
        (upload,) = waiting_answers(part)
        rows = np.flatnonzero(hand.rounds == 1)
        rows = rows[order_by_key(part.joined.usable_key(), hand.records[rows])]
        coins = RecordCoins(part.joined.usable_key(), hand.records[rows], purpose="answers")
        mechanism = BinaryRandomizedResponse.from_channel(world.campaign.channel)
        expected = mechanism.privatize(scores(N)[rows] <= 0.25, coins)
        assert upload.answers().tolist() == expected.astype(int).tolist()
        assert (upload.campaign, upload.round) == (world.campaign.digest, 1)
        assert upload.question == checked_question(part, *world.asked(1, 0.25)).digest
        assert spending(part.ledger).persons == N // ROUNDS


def test_nothing_but_bits_is_in_an_upload(tmp_path: Path) -> None:
    world = score_world()
    with joined_part(world, tmp_path / "home") as part:
        answer(part, dealt(part, N), world.asked(0))
        outbox = Outbox(part.ledger, part.joined.number)
        (upload,) = waiting_answers(part)
        fields = set(upload.model_dump())
        assert fields == {"version", "campaign", "upload", "round", "question", "bits"}
        body = outbox.body(upload.upload)
        assert not any(name.encode() in body for name in names(N)[10:])
        assert len(body) < 400 + 2 * N


def test_asked_again_a_round_draws_nothing_new(tmp_path: Path) -> None:
    world = score_world()
    with joined_part(world, tmp_path / "home") as part:
        hand = dealt(part, N)
        for number in range(ROUNDS):
            assert answer(part, hand, world.asked(number)) == N // ROUNDS
        before = waiting_answers(part)
        sequence = part.ledger.meta.sequence
        for number in range(ROUNDS):
            assert answer(part, hand, world.asked(number)) == 0
        assert waiting_answers(part) == before
        assert part.ledger.meta.sequence == sequence
        drawn = part.ledger.read("SELECT count(*), count(DISTINCT record) FROM records")
        assert drawn == [(N, N)]


def test_a_second_question_for_a_round_is_refused_and_draws_nothing(tmp_path: Path) -> None:
    world = score_world()
    with joined_part(world, tmp_path / "home") as part:
        hand = dealt(part, N)
        answer(part, hand, world.asked(2, 0.5))
        stored = part.ledger.read("SELECT * FROM questions")
        with pytest.raises(SecondQuestion, match="second, different question"):
            answer(part, hand, world.asked(2, 0.6))
        assert part.ledger.read("SELECT * FROM questions") == stored
        assert len(Outbox(part.ledger, part.joined.number).waiting()) == 1


def test_a_question_is_stored_where_none_of_its_records_is_at_hand(tmp_path: Path) -> None:
    world = score_world()
    with joined_part(world, tmp_path / "home") as part:
        hand = dealt(part, N)
        rows = np.flatnonzero(hand.rounds != 0)
        absent = Hand(
            hand.records[rows], hand.persons[rows], hand.rounds[rows], hand.dealings[rows]
        )
        assert answer(part, absent, world.asked(0, 0.5)) == 0
        with pytest.raises(SecondQuestion):
            answer(part, hand, world.asked(0, 0.4))
        assert answer(part, hand, world.asked(0, 0.5)) == N // ROUNDS


def other_campaign(world: ScoreWorld) -> tuple[CurrentRound, Signed]:
    return world.told(RoundQuestion(campaign="0" * 64, round=0, threshold=0.5), 0)


def other_key(world: ScoreWorld) -> tuple[CurrentRound, Signed]:
    question = RoundQuestion(campaign=world.campaign.digest, round=0, threshold=0.5)
    return world.told(question, 0, SigningKey.generate())


def other_round(world: ScoreWorld) -> tuple[CurrentRound, Signed]:
    question = RoundQuestion(campaign=world.campaign.digest, round=1, threshold=0.5)
    return world.told(question, 0)


@pytest.mark.parametrize(
    ("lie", "error"),
    [
        (lambda world: world.asked(0, 1.5), QuestionRefused),
        (lambda world: world.asked(0, -0.1), QuestionRefused),
        (lambda world: world.asked(ROUNDS, 0.5), QuestionRefused),
        (other_campaign, QuestionRefused),
        (other_round, QuestionRefused),
        (other_key, WrongKey),
    ],
    ids=["above", "below", "no such round", "another campaign", "another round", "another key"],
)
def test_a_question_that_the_campaign_cannot_ask_is_refused(
    tmp_path: Path,
    lie: Callable[[ScoreWorld], tuple[CurrentRound, Signed]],
    error: type[Exception],
) -> None:
    world = score_world()
    with joined_part(world, tmp_path / "home") as part:
        hand = dealt(part, N)
        with pytest.raises(error):
            answer(part, hand, lie(world))
        assert issubclass(error, Untrusted)
        assert part.ledger.read("SELECT * FROM questions") == []
        assert Outbox(part.ledger, part.joined.number).entries() == []


def test_a_drawing_that_fails_on_its_way_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    world = score_world()
    with joined_part(world, tmp_path / "home") as part:
        hand = dealt(part, N)
        monkeypatch.setattr(drawing_module, "spend", fail)
        with pytest.raises(KeyboardInterrupt):
            answer(part, hand, world.asked(0))
        assert part.ledger.read("SELECT * FROM questions") == []
        assert Outbox(part.ledger, part.joined.number).entries() == []
        monkeypatch.undo()
        assert answer(part, hand, world.asked(0)) == N // ROUNDS


def test_answers_are_cut_into_uploads_and_together_answer_for_every_record(tmp_path: Path) -> None:
    world = score_world(shares=(1,))
    small = Network(records_per_upload=25)
    with joined_part(world, tmp_path / "home", network=small) as part:
        answer(part, dealt(part, N), world.asked(0))
        uploads = waiting_answers(part)
        assert [upload.records for upload in uploads] == [25, 25, 10]
        found = np.concatenate([upload.answers() for upload in uploads])
    with joined_part(world, tmp_path / "home") as part:
        key = part.joined.usable_key()
        hand = dealt(part, N)
        order = order_by_key(key, hand.records)
        at_most = scores(N)[order] <= 0.5
        expected = drawing_module.randomize(world.campaign, key, hand.records[order], at_most)
    assert found.tolist() == expected.astype(int).tolist()


GENEROUS = Policy(max_epsilon=30.0)
SORTED, FIRST = 2000, 500
FAR = math.sqrt(math.log(2 / 1e-6) * FIRST / 2)
"""Hoeffding: of FIRST records at random, those that say yes are so far from what is expected with
probability 1e-6 at most."""


def yes_in_first_upload(home: Path) -> int:
    """How many of the first answers that leave are "at most", of a file sorted by its scores."""
    world = score_world(planned_n=SORTED, shares=(1,), epsilon=30.0)  # no coin flips a bit
    network = Network(records_per_upload=FIRST)
    with joined_part(world, home, GENEROUS, network) as part:
        given = ScoreRecords.of(
            part.campaign, None, names(SORTED), scores=np.linspace(0.0, 1.0, SORTED)
        )
        hand = deal(part, hand_of(part, given), begun=False)
        current, signed = world.asked(0, 0.5)
        assert given.scores is not None
        draw_answers(part, hand, given.scores, checked_question(part, current, signed), signed)
        return int(waiting_answers(part)[0].answers().sum())


def test_the_first_answers_of_a_sorted_file_are_of_a_random_share_of_it(tmp_path: Path) -> None:
    assert abs(yes_in_first_upload(tmp_path) - FIRST / 2) < FAR


def test_answers_in_the_order_of_the_file_would_be_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drawing_module, "order_by_key", lambda _, records: np.arange(len(records)))
    assert abs(yes_in_first_upload(tmp_path) - FIRST / 2) > FAR


def test_a_score_that_equals_the_question_is_at_most_it(tmp_path: Path) -> None:
    world = score_world(shares=(1,), epsilon=30.0)
    with joined_part(world, tmp_path / "home", GENEROUS) as part:
        hand = dealt(part, N)
        question = checked_question(part, *world.asked(0, 0.5))
        draw_answers(part, hand, np.full(N, 0.5), question, world.asked(0, 0.5)[1])
        (upload,) = waiting_answers(part)
    assert upload.answers().all()  # one of 60 coins flips with a probability below 1e-11


def test_nothing_is_drawn_before_the_campaign_opens_whoever_asks(tmp_path: Path) -> None:
    world = score_world()
    with world.join_at(OPENS - timedelta(days=1), tmp_path / "home") as contributor:
        part = part_of(contributor, world.campaign)
        hand = dealt(part, N)
        with pytest.raises(NotYetOpen):
            answer(part, hand, world.asked(0))
        assert part.ledger.read("SELECT * FROM questions") == []
