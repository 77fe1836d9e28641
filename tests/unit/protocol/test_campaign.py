"""Campaign documents: one spelling, one digest, and nothing in them that does not make sense."""

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tacit.errors import InvalidDocument, UpgradeRequired
from tacit.mechanisms import UniformChannel
from tacit.protocol import Features, LabelCampaign, Probabilities
from tacit.scores import APS, HPS, RAPS, SAPS, Margin, RandomizedAPS, Score, TopK
from tests.unit.protocol.examples import (
    CLOSES,
    DIGEST,
    OPENS,
    PIXELS,
    campaign,
    check_refused_or_the_same,
    respelled,
)

PRIVATE = "Jane Doe has class 7"
SCORES: list[Score] = [HPS(), APS(), RandomizedAPS(), RAPS(0.25, 2), SAPS(0.1), TopK(), Margin()]

names = st.from_regex(r"[^\W_]([^\W_ ]{0,20} ?[^\W_]{1,9})?", fullmatch=True)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(codec=None), max_size=8)
    | st.just(10**400),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)


@st.composite
def campaigns(draw: st.DrawFn) -> LabelCampaign:
    with_delta = draw(st.booleans())
    known: list[Probabilities | Features] = [Probabilities(), Probabilities(model=DIGEST), PIXELS]
    evidence = draw(
        st.sampled_from(known)
        | st.builds(
            Features,
            model=st.just(DIGEST),
            dtype=st.sampled_from(["uint8", "float64"]),
            shape=st.lists(st.integers(1, 2**31 - 1), max_size=7).map(tuple),
        )
    )
    opens = draw(st.datetimes(datetime(1000, 1, 1), datetime(9998, 1, 1)))
    return campaign(
        classes=draw(st.lists(names, min_size=2, max_size=9, unique=True)),
        title=draw(names),
        owner=draw(names),
        epsilon=draw(st.floats(0.1, 20)),
        alpha=draw(st.floats(0.01, 0.999)),
        delta=draw(st.floats(1e-9, 0.9)) if with_delta else None,
        planned_n=draw(st.integers(1, 2**40)),
        evidence=evidence,
        score=draw(st.sampled_from(SCORES)),
        opens=opens.replace(microsecond=0, tzinfo=UTC),
        closes=datetime(9999, 1, 1, tzinfo=UTC),
    )


@given(campaigns())
def test_a_campaign_survives_the_way_over_the_wire(document: LabelCampaign) -> None:
    read = LabelCampaign.from_bytes(document.to_bytes())
    assert read == document
    assert read.to_bytes() == document.to_bytes()
    assert read.digest == document.digest
    assert read.channel == document.channel
    assert read.conformity_score() == document.conformity_score()


@given(campaigns(), st.data())
def test_any_other_spelling_of_a_campaign_is_refused(
    document: LabelCampaign, data: st.DataObject
) -> None:
    fields = json.loads(document.to_bytes())
    order = data.draw(st.permutations(list(fields)))
    spaced = data.draw(st.booleans())
    text = json.dumps(
        {name: fields[name] for name in order},
        separators=(", ", ": ") if spaced else (",", ":"),
        ensure_ascii=data.draw(st.booleans()),
    ).encode()
    if text != document.to_bytes():
        with pytest.raises(InvalidDocument, match="canonical"):
            LabelCampaign.from_bytes(text)


@given(st.sampled_from(sorted(LabelCampaign.model_fields)), json_values)
def test_a_field_of_any_other_value_gives_an_error_of_tacit_and_no_other(
    field: str, value: Any
) -> None:
    check_refused_or_the_same(campaign(), field, value)


@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_bytes_that_are_no_campaign_give_an_invalid_document(content: bytes) -> None:
    with pytest.raises(InvalidDocument):
        LabelCampaign.from_bytes(content)


@pytest.mark.parametrize(
    "content",
    [
        b"[" * 100_000,
        b'{"tacit":' * 100_000,
        b"9" * 100_000,
        b'{"tacit":' + b"9" * 100_000 + b"}",
        b'{"tacit":"\\ud800"}',
        b'{"\\ud800":1}',
        b'{"tacit":"\xed\xa0\x80"}',
        b"\xef\xbb\xbf{}",
        b"\xff\xfe",
        b'{"tacit":-Infinity}',
    ],
    ids=lambda content: repr(content[:24]),
)
def test_hostile_bytes_give_an_invalid_document(content: bytes) -> None:
    with pytest.raises(InvalidDocument):
        LabelCampaign.from_bytes(content)


@pytest.mark.parametrize(
    "score",
    [
        {"name": "raps", "a": 10**30, "b": 1},
        {"name": "raps", "a": 1e16, "b": 1},
        {"name": "raps", "a": 1, "b": 2**53},
        {"name": "saps", "weight": 10**400},
    ],
    ids=str,
)
def test_a_number_beyond_what_json_keeps_exact_is_refused_where_it_is_made(
    score: dict[str, Any],
) -> None:
    fields = campaign().model_dump() | {"score": score}
    with pytest.raises(ValidationError, match=r"2\^53"):
        LabelCampaign.model_validate(fields)
    with pytest.raises(InvalidDocument, match=r"2\^53"):
        LabelCampaign.from_bytes(json.dumps(fields, default=str).encode())


def test_deep_nesting_inside_a_campaign_is_refused() -> None:
    nested: Any = {"name": "hps"}
    for _ in range(150):
        nested = {"name": "noise-robust", "base": nested, "beta": 0.1}
    with pytest.raises(InvalidDocument):
        LabelCampaign.from_bytes(respelled(campaign(), score=nested))


@pytest.mark.parametrize("version", ["1.2", "0.9", "2.0", "", 1, 1.0, None, ["1.0"]], ids=repr)
def test_another_version_says_to_upgrade_whatever_else_is_wrong(version: Any) -> None:
    with pytest.raises(UpgradeRequired, match="Install"):
        LabelCampaign.from_bytes(respelled(campaign(), version=version, new_field=True))


@pytest.mark.parametrize(
    "fields",
    [
        {"title": PRIVATE + "\n"},
        {"evidence": {"kind": PRIVATE}},
        {"evidence": PRIVATE},
        {"opens": PRIVATE},
        {"guarantee": PRIVATE},
        {"planned_n": PRIVATE},
        {"classes": [PRIVATE, 1]},
        {"classes": [PRIVATE, PRIVATE]},
        {"mechanism": {"name": PRIVATE, "threshold": PRIVATE}},
        {"grid": {"steps_per_octave": PRIVATE, "even_steps": 1}},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_an_error_does_not_repeat_the_value_it_refuses(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidDocument) as caught:
        LabelCampaign.from_bytes(respelled(campaign(), **fields))
    assert next(iter(fields)) in str(caught.value) or "names of the classes" in str(caught.value)
    assert "Jane" not in str(caught.value)


def test_an_error_stays_short_whatever_it_is_about() -> None:
    strange = {f"{number:04}" * 1000: number for number in range(1000)}
    with pytest.raises(InvalidDocument) as caught:
        LabelCampaign.from_bytes(respelled(campaign(), **strange))
    assert len(str(caught.value)) < 10_000
    with pytest.raises(InvalidDocument) as caught:
        LabelCampaign.from_bytes(respelled(campaign(), score={"name": "x" * 10**6}))
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize(
    "name", ["naïve", "粘液", "בריא", "a b", "ε ≤ 1", "x" * 100, "🫁", "\u0301a", "\U0001fae9"]
)
def test_names_may_be_in_any_script(name: str) -> None:
    document = campaign(classes=[name, "other"], title=name, owner=name)
    assert LabelCampaign.from_bytes(document.to_bytes()).classes[0] == name
    assert name in document.to_bytes().decode()


@pytest.mark.parametrize(
    "name",
    [
        *("", " a", "a ", "\u00a0a", "a\nb", "a\tb", "a\x00b", "a\x1b[31m"),
        *("a\u202eb", "a\u2028b", "a\u200bb", "\ue000", chr(0xD800)),
    ],
    ids=ascii,
)
def test_names_that_could_deceive_a_reader_are_refused(name: str) -> None:
    for field in ({"title": name}, {"owner": name}, {"classes": [name, "other"]}):
        with pytest.raises((ValidationError, InvalidDocument)):
            campaign(**field).to_bytes()


def test_a_name_has_at_most_a_hundred_characters() -> None:
    with pytest.raises(ValidationError):
        campaign(title="x" * 101)


def test_two_campaigns_of_the_same_terms_have_different_digests() -> None:
    assert campaign().digest != campaign().digest


def test_a_campaign_names_the_channel_that_is_realized_not_the_one_asked_for() -> None:
    document = campaign(k=7, epsilon=1.234567)
    assert document.channel == UniformChannel.for_epsilon(7, 1.234567)
    assert document.epsilon == document.channel.epsilon <= 1.234567


def test_most_classes_are_two_to_the_sixteen() -> None:
    most = [str(number) for number in range(2**16)]
    assert LabelCampaign.from_bytes(campaign(classes=most).to_bytes()).k == 2**16
    with pytest.raises(ValidationError):
        campaign(classes=[*most, "one more"])


def test_an_epsilon_so_small_that_no_campaign_could_use_it_is_refused() -> None:
    assert campaign(epsilon=2.0**-29).epsilon > 2.0**-30
    with pytest.raises(ValidationError, match=r"2\^-30"):
        campaign(epsilon=2.0**-31)


def test_a_delta_that_no_number_of_records_reaches_is_refused() -> None:
    assert campaign(epsilon=0.01, delta=0.05).delta == 0.05
    with pytest.raises(ValidationError, match="more than 2"):
        campaign(epsilon=1e-6, delta=0.05)


@pytest.mark.parametrize(
    "moment",
    [
        datetime(2026, 1, 1),
        datetime(2026, 1, 1, microsecond=1, tzinfo=UTC),
        datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=1))),
        1767225600,
        "2026-01-01T00:00:00Z",
    ],
    ids=str,
)
def test_a_date_that_is_no_whole_second_of_utc_is_refused(moment: Any) -> None:
    with pytest.raises(ValidationError):
        campaign(opens=moment)


def test_an_early_year_is_written_with_four_digits() -> None:
    document = campaign(opens=datetime(33, 4, 3, tzinfo=UTC))
    assert b'"0033-04-03T00:00:00Z"' in document.to_bytes()
    assert LabelCampaign.from_bytes(document.to_bytes()) == document


def test_a_campaign_cannot_be_changed() -> None:
    with pytest.raises(ValidationError):
        campaign().alpha = 0.2


def test_the_dates_of_the_examples_are_in_order() -> None:
    with pytest.raises(ValidationError, match="open before"):
        campaign(opens=CLOSES, closes=OPENS)
