"""The picture of a search shows each bracket where it lies."""

from io import StringIO
from itertools import pairwise

from rich.console import Console

from tacit.conformal import Answers, BinarySearch, Question
from tacit.mechanisms import BinaryChannel
from tacit.protocol import RoundState, RoundStatus
from tacit.scores import APS
from tacit_client.demo.narrowing import WIDTH, bracket, narrowing

WHOLE = (0.0, 1.0)


def asked(number: int, low: float, high: float, coverage: float | None = 0.5) -> RoundStatus:
    return RoundStatus(
        round=number,
        state=RoundState.CLOSED,
        threshold=(low + high) / 2,
        low=low,
        high=high,
        answers=125,
        sites=2,
        coverage=coverage,
        ends_in=0,
        extensions=0,
        waiting_sites=0,
        waiting_for=(),
    )


def searched(rounds: int) -> list[RoundStatus]:
    """The brackets of a real search whose answers say that F(t) = t."""
    search = BinarySearch(APS(), 10, BinaryChannel.for_epsilon(3), 0.1, 1250, rounds)
    told, step = [], search.start()
    while isinstance(step, Question):
        told.append(asked(step.round, step.low, step.high, step.threshold))
        following = search.advance(step, Answers(round(125 * step.threshold), 125))
        if not isinstance(following, Question):
            break
        step = following
    return told


def test_a_bracket_is_drawn_where_it_lies_in_the_range() -> None:
    first = bracket(asked(0, 0.0, 1.0), WHOLE)
    assert (first[0], first[WIDTH // 2], first[-1]) == ("├", "┼", "┤")
    assert set(first) == set("├─┼┤")
    upper = bracket(asked(1, 0.5, 1.0), WHOLE)
    assert upper[: WIDTH // 2] == "·" * (WIDTH // 2)
    assert (upper[WIDTH // 2], upper[WIDTH * 3 // 4], upper[-1]) == ("├", "┼", "┤")
    elsewhere = bracket(asked(0, -4.0, 4.0), (-4.0, 4.0))
    assert elsewhere == first


def test_every_bracket_lies_within_the_one_before_and_has_its_question() -> None:
    pictures = [bracket(each, WHOLE) for each in searched(10)]
    assert len(pictures) == 10
    for picture in pictures:
        assert len(picture) == WIDTH
        assert len([mark for mark in picture if mark in "┼│"]) == 1
    for before, after in pairwise(pictures):
        inside = {i for i, mark in enumerate(before) if mark != "·"}
        assert {i for i, mark in enumerate(after) if mark != "·"} <= inside


def test_the_table_fits_80_columns_and_a_narrow_terminal_goes_without_brackets() -> None:
    rounds = [*searched(10)[:9], asked(9, 0.9, 0.91, None)]
    for width, wide in ((80, True), (40, False)):
        shown = StringIO()
        Console(width=width, file=shown).print(narrowing(rounds, wide=wide))
        lines = shown.getvalue().splitlines()
        assert len(lines) == 1 + len(rounds)
        assert max(len(line.rstrip()) for line in lines) <= width
        assert ("├" in lines[1]) is wide
        assert lines[1].split()[:4] == ["1", "0.5000", "125", "50.0%"]
        assert lines[10].split()[3] == "–"
