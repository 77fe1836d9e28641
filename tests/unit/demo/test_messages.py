"""Messages are shown as they are, but for what is long."""

import json

from tacit_client.demo.messages import LONGEST, one_of_each, shortened, spread
from tacit_client.demo.wire import Exchange

DIGEST = "ab" * 32
CAMPAIGN = f"/v1/campaigns/{DIGEST}"


def exchange(method: str, path: str, body: object = None, answer: object = None) -> Exchange:
    return Exchange(
        "Fir", method, path, json.dumps(body).encode(), 200, json.dumps(answer).encode()
    )


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


def test_addresses_are_shown_without_whole_digests_and_payloads_are_read() -> None:
    signed = {"payload": '{"tacit":"campaign"}', "public_key": "k", "signature": "s"}
    seen = [
        exchange("GET", f"{CAMPAIGN}/status"),
        exchange("PUT", f"{CAMPAIGN}/enrolment", {"records": 2}),
        exchange("PUT", CAMPAIGN, {}, signed),
        exchange("PUT", f"{CAMPAIGN}/uploads/{'1' * 32}", {"labels": 0}, {"state": "accepted"}),
        exchange("GET", f"{CAMPAIGN}/thresholds/nominal", None, signed),
    ]
    told = {message.what: message for message in one_of_each(seen, "Fir")}
    assert list(told) == ["campaign", "enrolment", "upload", "receipt", "threshold"]
    assert told["campaign"].content["payload"] == {"tacit": "campaign"}
    assert told["receipt"].content == {"state": "accepted"}
    assert not any(DIGEST in message.travelled for message in told.values())
