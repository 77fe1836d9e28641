"""Messages are shown as they are, but for what is long."""

import json

from tacit_client.demo.messages import LONGEST, one_of_each, shortened, spread
from tacit_client.demo.wire import Exchange

LABELS, SCORES = "ab" * 32, "cd" * 32
SIGNED = {"payload": '{"tacit":"campaign"}', "public_key": "k", "signature": "s"}
ENROLLING = {"state": "enrolling", "question": None}
OPEN = {"state": "open", "question": {**SIGNED, "payload": '{"tacit":"question"}'}}


def exchange(method: str, path: str, body: object = None, answer: object = None) -> Exchange:
    return Exchange(
        "Fir", method, path, json.dumps(body).encode(), 200, json.dumps(answer).encode()
    )


def seen() -> list[Exchange]:
    """Two campaigns, whose messages went by in turns."""
    labels, scores = f"/v1/campaigns/{LABELS}", f"/v1/campaigns/{SCORES}"
    upload = f"uploads/{'1' * 32}"
    return [
        exchange("PUT", scores, {}, SIGNED),
        exchange("GET", f"{labels}/status"),
        exchange("PUT", f"{scores}/enrolment", {"records": 3}),
        exchange("PUT", f"{labels}/enrolment", {"records": 2}),
        exchange("PUT", labels, {}, SIGNED),
        exchange("GET", f"{scores}/round?after=-1&wait=25", None, ENROLLING),
        exchange("GET", f"{scores}/round?after=-1&wait=25", None, OPEN),
        exchange("PUT", f"{scores}/{upload}", {"bits": 0}, {"state": "accepted"}),
        exchange("PUT", f"{labels}/{upload}", {"labels": 0}, {"state": "accepted"}),
        exchange("PUT", f"{scores}/rounds/0/done", {"answers": 3}, {"round": 0}),
        exchange("GET", f"{labels}/thresholds/nominal", None, SIGNED),
    ]


def test_long_texts_and_lists_are_cut_short_and_say_so() -> None:
    cut = shortened({"data": "A" * 1000, "short": "as it is", "many": list(range(100)), "n": 7})
    assert cut["data"] == "A" * (LONGEST - 1) + "…"
    assert cut["many"] == [*range(12), "…"]
    assert (cut["short"], cut["n"]) == ("as it is", 7)


def test_what_is_spread_out_is_the_same_json() -> None:
    value: dict[str, object] = {
        "a": {"b": [1, 2, {"c": "d" * 30}], "empty": {}},
        "e": [],
        "f": None,
        "ε": "α" * 30,
    }
    for width in (1, 20, 40, 80, 1000):
        assert json.loads(spread(value, width)) == value
    assert spread(value, 1000).count("\n") == 0


def test_what_is_spread_out_keeps_to_the_width_where_it_can() -> None:
    value = {"outer": {"inner": {"name": "x" * 20, "other": "y" * 20}}, "list": list(range(30))}
    assert max(map(len, spread(value, 40).splitlines())) <= 40


def test_each_kind_of_message_is_shown_once_from_the_campaign_that_has_it() -> None:
    told = {message.what: message for message in one_of_each(seen(), "Fir", LABELS, SCORES)}
    of_labels = ["campaign", "enrolment", "upload", "receipt", "threshold"]
    assert list(told) == [*of_labels, "question", "answers", "done"]
    assert told["enrolment"].content == {"records": 2}
    assert told["upload"].content == {"labels": 0}
    assert told["receipt"].content == {"state": "accepted"}
    assert told["answers"].content == {"bits": 0}
    assert told["done"].content == {"answers": 3}


def test_payloads_are_read_also_where_a_signed_document_is_part_of_an_answer() -> None:
    told = {message.what: message for message in one_of_each(seen(), "Fir", LABELS, SCORES)}
    assert told["campaign"].content["payload"] == {"tacit": "campaign"}
    assert told["question"].content["state"] == "open"
    assert told["question"].content["question"]["payload"] == {"tacit": "question"}


def test_addresses_are_shown_without_whole_digests() -> None:
    told = one_of_each(seen(), "Fir", LABELS, SCORES)
    assert all("/v1/campaigns/" in message.travelled for message in told)
    assert not any(digest in message.travelled for message in told for digest in (LABELS, SCORES))
