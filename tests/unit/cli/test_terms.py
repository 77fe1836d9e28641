from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from tacit.protocol import Features
from tacit.scores import APS, HPS, RAPS, SAPS
from tacit_client.cli import terms
from tacit_client.cli.errors import BadOption

NOW = datetime(2026, 3, 1, 12, 0, 0, 500, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "score"),
    [("hps", HPS()), ("aps", APS()), ("raps:0.1,2", RAPS(0.1, 2)), ("saps:0.2", SAPS(0.2))],
)
def test_a_score_is_written_with_its_parameters(text: str, score: object) -> None:
    assert terms.score(text) == score


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("lac", "There are: hps, aps"),
        ("raps", "raps:A,B"),
        ("raps:0.1", "raps:A,B"),
        ("hps:1", "Write the score as hps."),
        ("raps:x,2", "must be a number"),
        ("raps:0.1,2.5", "whole number"),
    ],
)
def test_a_score_that_is_none_is_refused(text: str, says: str) -> None:
    with pytest.raises(BadOption, match=says):
        terms.score(text)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-04-01", "2026-04-01T00:00:00+00:00"),
        ("2026-04-01T12:30Z", "2026-04-01T12:30:00+00:00"),
        ("2026-04-01T12:30+02:00", "2026-04-01T10:30:00+00:00"),
        ("90m", "2026-03-01T13:30:00+00:00"),
        ("12h", "2026-03-02T00:00:00+00:00"),
        ("7d", "2026-03-08T12:00:00+00:00"),
    ],
)
def test_a_date_is_a_date_or_a_time_ahead(text: str, moment: str) -> None:
    assert terms.moment(text, NOW).isoformat() == moment


def test_classes_are_names_or_numbers() -> None:
    assert terms.classes("cat, dog", None) == ("cat", "dog")
    assert terms.classes(None, 3) == ("0", "1", "2")


def test_features_have_a_type_and_a_shape() -> None:
    model = "0" * 64
    asked = Features(model=model, dtype="uint8", shape=(28, 28, 3))
    assert terms.features("uint8:28,28,3", model) == asked
    assert terms.features("float32", model).shape == ()


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: terms.moment("soon", NOW),
        lambda: terms.moment("7w", NOW),
        lambda: terms.classes("cat,dog", 2),
        lambda: terms.classes(None, None),
        lambda: terms.classes(None, 1),
        lambda: terms.features("uint8:28,x", "0" * 64),
        lambda: terms.features("uint8:28", None),
        lambda: terms.whole_number("many"),
        lambda: terms.whole_number("1.5"),
        lambda: terms.whole_number("inf"),
    ],
)
def test_a_term_that_makes_no_sense_is_refused(wrong: Callable[[], object]) -> None:
    with pytest.raises(BadOption):
        wrong()


def test_whole_numbers_may_be_written_with_an_exponent() -> None:
    assert terms.whole_number("2e4") == terms.whole_number("20000") == 20_000
