"""Check the vectors without Tacit, as another implementation would: python tests/vectors/check.py.

Only the standard library and Ed25519 and AES of `cryptography`. Read it beside docs/protocol.md.
"""

import base64
import hashlib
import hmac
import json
import math
import struct
from datetime import datetime, timedelta
from fractions import Fraction
from itertools import accumulate
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

HERE = Path(__file__).parent
CERTIFICATE = {"name": "hoeffding-union", "valid": "at-close"}
RANGES = {"hps": (0.0, 1.0)}
"""Of the scores that the vectors of searches use."""
FORMATS = {
    "uint8": "B",
    "uint16": "H",
    "uint32": "I",
    "int8": "b",
    "int16": "h",
    "int32": "i",
    "int64": "q",
    "float16": "e",
    "float32": "f",
    "float64": "d",
}


def read(name: str) -> Any:
    return json.loads((HERE / name).read_text(encoding="utf-8"))


def number(value: float) -> str:
    """A double as ECMAScript writes it: shortest digits, with an exponent below 1e-6.

    No number of a document is beyond 2^53 - 1, where ECMAScript has further rules.
    """
    if value == int(value):
        return str(int(value))
    mantissa, _, exponent = repr(float(value)).partition("e")
    if not exponent:
        return mantissa
    if int(exponent) < -6:
        return f"{mantissa}e{int(exponent)}"
    sign = "-" if value < 0 else ""
    return f"{sign}0." + "0" * (-int(exponent) - 1) + mantissa.lstrip("-").replace(".", "")


def canonical(value: Any) -> str:
    """RFC 8785. Names of fields are ASCII here, so any way to sort them is the right one."""
    if isinstance(value, dict):
        pairs = (f"{canonical(name)}:{canonical(value[name])}" for name in sorted(value))
        return "{" + ",".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return number(value)
    return json.dumps(value, ensure_ascii=False)


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def verdict(
    signed: dict[str, str], kind: str, fingerprint: str, expected: str | None = None
) -> str:
    """What a reader that has pinned a key, and knows the digest, says of a signed document."""
    try:
        public_key = base64.b64decode(signed["public_key"], validate=True)
        signature = base64.b64decode(signed["signature"], validate=True)
    except ValueError:
        return "invalid-document"
    if hashlib.sha256(public_key).hexdigest() != fingerprint:
        return "wrong-key"
    message = f"tacit signature v1\n{kind}\n{signed['payload']}".encode()
    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, message)
    except InvalidSignature:
        return "wrong-signature"
    if expected not in {None, digest(signed["payload"])}:
        return "wrong-digest"
    return "good"


def array(column: dict[str, Any]) -> Any:
    """The nested lists that a column is."""
    content = base64.b64decode(column["data"], validate=True)
    count = math.prod(column["shape"])
    values: list[Any] = list(struct.unpack(f"<{count}{FORMATS[column['dtype']]}", content))
    for extent in reversed(column["shape"][1:]):
        values = [values[start : start + extent] for start in range(0, len(values), extent)]
    return values


def block(key: bytes, purpose: str, attempt: int, record_key: bytes) -> tuple[int, int]:
    """Two words of 64 random bits: AES-256 of the record key under a subkey from HKDF-SHA256."""
    info = b"tacit coins v1" + purpose.encode() + attempt.to_bytes(4, "big")
    extracted = hmac.digest(bytes(32), key, "sha256")
    subkey = hmac.digest(extracted, info + b"\x01", "sha256")
    cipher = Cipher(algorithms.AES(subkey), modes.ECB()).encryptor()  # noqa: S305 -- one block
    word0, word1 = struct.unpack("<QQ", cipher.update(record_key))
    return word0, word1


def report(key: bytes, record_key: bytes, label: int, k: int, threshold: int) -> int:
    """The randomized label of a record."""
    coin, word = block(key, "labels", 0, record_key)
    attempt = 0
    while (product := (word % 2**32) * k) % 2**32 < 2**32 % k:
        attempt += 1
        word = block(key, "labels", attempt, record_key)[1]
    return product >> 32 if coin < threshold else label


def uniform(key: bytes, record_key: bytes) -> float:
    """The u of a record, for randomized scores."""
    return (block(key, "uniforms", 0, record_key)[0] >> 11) * 2.0**-53


def answer(key: bytes, record_key: bytes, score: float, asked: float, threshold: int) -> int:
    """The randomized answer of a record to "is your score at most the one asked for?"."""
    return (score <= asked) ^ (block(key, "answers", 0, record_key)[0] < threshold)


def ordered(key: bytes, record_keys: list[bytes]) -> list[int]:
    """The rows of the records in the order in which they are dealt out, and answer."""
    rows = range(len(record_keys))
    return sorted(rows, key=lambda row: block(key, "rounds", 0, record_keys[row]))


def dealt(key: bytes, record_keys: list[bytes], shares: list[int]) -> list[int]:
    """The round of each record."""
    n, total = len(record_keys), sum(shares)
    order = ordered(key, record_keys)
    start = block(key, "start", 0, record_keys[order[0]])[0] * total >> 64
    ends = [n * end for end in accumulate(shares)]
    rounds = [0] * n
    for rank, row in enumerate(order):
        rounds[row] = next(j for j, end in enumerate(ends) if rank * total + start < end)
    return rounds


def exactly(value: float) -> Fraction:
    """The decimal number that a double is written as."""
    return Fraction(repr(float(value)))


def flip(campaign: dict[str, Any]) -> Fraction:
    """How likely an answer is turned round."""
    return Fraction(int(campaign["mechanism"]["threshold"]), 2**64)


def margin(campaign: dict[str, Any], answers: int) -> float:
    """Δ of a round with so many answers."""
    logarithm = math.log(2 * len(campaign["rounds"]["shares"])) - math.log(campaign["delta"])
    return math.sqrt(logarithm / (2 * answers)) / float(1 - 2 * flip(campaign))


def replayed(
    campaign: dict[str, Any], rounds: list[dict[str, Any]]
) -> tuple[dict[str, Any], int | None]:
    """What a search of these rounds found, and the last round that put it at its own question.

    A ValueError if the search would not have asked them.
    """
    low, high = RANGES[campaign["score"]["name"]]
    turned, decided = flip(campaign), None
    target, certified = 1 - exactly(campaign["alpha"]), campaign["delta"] is not None
    found: dict[str, Any] = {"threshold": high, "coverage": 1.0, "correction": None, "n": 0}
    over = False
    for number, each in enumerate(rounds):
        asked, count = (low + high) / 2, each["answers"]
        if over or each["threshold"] != asked or not 0 <= each["ones"] <= count:
            raise ValueError("The search does not ask this, or nobody can have answered so.")
        found["n"] += count
        if not count:
            continue
        estimate = (Fraction(each["ones"], count) - turned) / (1 - 2 * turned)
        correction = margin(campaign, count) if certified else None
        at_most = estimate >= target + exactly(correction or 0) if certified else estimate > target
        if at_most or not certified:
            here = {"threshold": asked, "coverage": float(estimate), "correction": correction}
            found.update(here)
            decided = number
        low, high = (low, asked) if at_most else (asked, high)
        tolerance = exactly(campaign["search"]["tolerance"])
        over = not certified and abs(estimate - target) <= tolerance / 2
    return found, decided


def too_few(campaign: dict[str, Any], n: int) -> dict[str, Any] | None:
    """The result that n records cannot be certified, unless they can."""
    batch = n // len(campaign["rounds"]["shares"])
    correction = margin(campaign, batch) if batch else None
    if correction is not None and correction < campaign["alpha"]:
        return None
    return {"tacit": "not-certifiable", "n": n, "correction": correction}


def result_of(campaign: dict[str, Any], asked_n: int, rounds: list[dict[str, Any]]) -> Any:
    """The part of a threshold's result that depends on the answers."""
    planned, certified = len(campaign["rounds"]["shares"]), campaign["delta"] is not None
    unasked = too_few(campaign, asked_n) if certified else None
    if len(rounds) > planned or (rounds and unasked) or (asked_n < planned and not certified):
        raise ValueError("There are more rounds than this search has.")
    found, _ = replayed(campaign, rounds)
    if certified and found["correction"] is None:
        unproved = unasked or too_few(campaign, found["n"])
        if unproved:
            return unproved
        found["correction"] = margin(campaign, found["n"] // planned)
    return {"tacit": "calibration", **found}


def statements(threshold: dict[str, Any], campaign: dict[str, Any]) -> dict[str, Any]:
    """What a threshold of these rounds states beside its result."""
    texts, rounds, sites = read("statements.json"), threshold["rounds"], threshold["sites"]
    certified, (_, number) = campaign["delta"] is not None, replayed(campaign, rounds)
    calibrated = threshold["result"]["tacit"] == "calibration"
    n = min((each["answers"] for each in rounds if each["answers"]), default=0)
    said = texts["undecided"]
    if number is not None:
        n = rounds[number]["answers"]
        numbers = {"round": number + 1, "rounds": len(campaign["rounds"]["shares"]), "answers": n}
        said = texts["decided"].format(sites=rounds[number]["sites"], all_sites=sites, **numbers)
    independent = [texts["assumption_of_certified"]] if certified else []
    return {
        "assumptions": [*texts["assumptions"], *independent] if calibrated else None,
        "certificate": {**CERTIFICATE, "statement": said} if certified and calibrated else None,
        "privacy": {
            "epsilon": campaign["epsilon"],
            "unit": texts["unit"],
            "conditions": texts["conditions"],
        },
        "hostile": {"shift_per_record": float(1 / ((1 - 2 * flip(campaign)) * n)) if n else 0},
    }


def possible(threshold: dict[str, Any], campaign: dict[str, Any]) -> bool:
    """Whether the numbers that the rounds do not determine can have been counted."""
    counts = [(each["answers"], each["sites"]) for each in threshold["rounds"]]
    answers, sites = (sum(column) for column in zip(*counts, strict=True)) if counts else (0, 0)
    early = datetime.fromisoformat(campaign["opens"]) - timedelta(minutes=5)
    return (
        answers <= threshold["asked_n"]
        and all(there <= given and (given == 0) == (there == 0) for given, there in counts)
        and max((there for _, there in counts), default=0) <= threshold["sites"] <= sites
        and (answers > 0 or threshold["result"]["tacit"] == "not-certifiable")
        and datetime.fromisoformat(threshold["as_of"]) >= early
    )


def replays(threshold: dict[str, Any], campaign: dict[str, Any], campaign_digest: str) -> bool:
    """Whether a threshold is what its rounds lead to, and stated as such a one must be."""
    try:
        result = result_of(campaign, threshold["asked_n"], threshold["rounds"])
    except ValueError:
        return False
    said = {**threshold, "assumptions": threshold["result"].get("assumptions")}
    return (
        threshold["campaign"] == campaign_digest
        and threshold["classes"] == campaign["classes"]
        and threshold["final"] is True
        and threshold["which"] == ("nominal" if campaign["delta"] is None else "starred")
        and result.items() <= threshold["result"].items()
        and statements(threshold, campaign).items() <= said.items()
        and possible(threshold, campaign)
    )


def asks(question: Any, campaign: dict[str, Any], campaign_digest: str) -> bool:
    """Whether a question is one that a site of this campaign answers."""
    low, high = RANGES[campaign["score"]["name"]]
    fields = {"tacit", "version", "campaign", "round", "threshold"}
    return (
        question.keys() == fields
        and (question["tacit"], question["version"]) == ("question", "1.1")
        and question["campaign"] == campaign_digest
        and 0 <= question["round"] < len(campaign["rounds"]["shares"])
        and isinstance(question["threshold"], int | float)
        and low <= question["threshold"] <= high
    )


def check_signed(case: dict[str, Any], kind: str, fingerprint: str) -> None:
    """The fields are signed as their canonical text."""
    assert canonical(case["fields"]) == case["signed"]["payload"]
    assert verdict(case["signed"], kind, fingerprint, case["digest"]) == "good"


def check_campaigns() -> None:
    for case in (*read("campaign.json").values(), *read("score-campaign.json").values()):
        assert canonical(case["fields"]) == case["canonical"]
        assert json.loads(case["canonical"]) == case["fields"]
        assert digest(case["canonical"]) == case["digest"]


def check_signed_campaign() -> None:
    vector = read("signed-campaign.json")
    private = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(vector["private_key_seed"]))
    public = private.public_key().public_bytes_raw()
    assert public.hex() == vector["public_key"]
    assert hashlib.sha256(public).hexdigest() == vector["fingerprint"]
    message = (vector["context"] + vector["signed"]["payload"]).encode()
    assert base64.b64encode(private.sign(message)).decode() == vector["signed"]["signature"]
    found = verdict(vector["signed"], "campaign", vector["fingerprint"], vector["digest"])
    assert found == "good"


def check_uploads() -> None:
    vector = read("upload.json")
    for kind in ("probabilities", "features"):
        body = json.loads(vector[kind]["body"])
        assert digest(vector[kind]["body"]) == vector[kind]["sha256"]
        assert body["campaign"] == read("campaign.json")[kind]["digest"]
        columns = {name: part for name, part in body.items() if isinstance(part, dict)}
        found = {name: array(column) for name, column in columns.items()}
        assert found == vector[kind]["arrays"]
    for case in vector["columns"]:
        assert array(case["column"]) == case["array"]


def check_thresholds() -> None:
    vector = read("threshold.json")
    for which in ("nominal", "starred"):
        case = vector[which]
        check_signed(case, "threshold", vector["fingerprint"])
        assert case["fields"]["campaign"] == read("campaign.json")["probabilities"]["digest"]


def check_invitation() -> None:
    vector = read("invitation.json")
    encoded = vector["text"].removeprefix("tacit-invitation.")
    content = base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4))
    assert json.loads(content) == vector["fields"]


def check_randomized_labels() -> None:
    vector = read("randomized-labels.json")
    named = vector["record_key"]
    secret, identifier = bytes.fromhex(named["secret"]), named["record_id"].encode()
    hashed = hashlib.blake2b(identifier, digest_size=16, key=secret)
    assert hashed.hexdigest() == named["key"]
    for case in vector["cases"]:
        key, k, threshold = bytes.fromhex(case["campaign_key"]), case["k"], int(case["threshold"])
        record_keys = [bytes.fromhex(record_key) for record_key in case["record_keys"]]
        pairs = zip(record_keys, case["labels"], strict=True)
        assert [report(key, *pair, k, threshold) for pair in pairs] == case["reports"]
        assert [uniform(key, record_key) for record_key in record_keys] == case["uniforms"]


def check_dealing() -> None:
    for case in read("dealing.json")["cases"]:
        record_keys = [bytes.fromhex(record_key) for record_key in case["record_keys"]]
        key, shares = bytes.fromhex(case["campaign_key"]), case["shares"]
        assert ordered(key, record_keys) == case["order"]
        assert dealt(key, record_keys, shares) == case["rounds"]


def check_answers() -> None:
    vector = read("answers.json")
    for case in vector["cases"]:
        key, threshold = bytes.fromhex(case["campaign_key"]), int(case["threshold"])
        records = zip(map(bytes.fromhex, case["record_keys"]), case["scores"], strict=True)
        found = [answer(key, *record, case["asked"], threshold) for record in records]
        assert found == case["bits"]
    upload = json.loads(vector["upload"]["body"])
    assert digest(vector["upload"]["body"]) == vector["upload"]["sha256"]
    assert array(upload["bits"]) == vector["upload"]["bits"] == vector["cases"][0]["bits"]
    question = read("question.json")
    assert (upload["question"], upload["round"]) == (
        question["digest"],
        question["fields"]["round"],
    )
    assert upload["campaign"] == question["fields"]["campaign"]


def check_question() -> None:
    vector, campaign = read("question.json"), read("score-campaign.json")["certified"]
    check_signed(vector, "question", vector["fingerprint"])
    assert asks(vector["fields"], campaign["fields"], campaign["digest"])


def check_score_thresholds() -> None:
    vector, campaigns = read("score-threshold.json"), read("score-campaign.json")
    for name in ("certified", "nominal", "not_certifiable", "too_few_enrolled"):
        case, campaign = vector[name], campaigns["nominal" if name == "nominal" else "certified"]
        check_signed(case, "threshold", vector["fingerprint"])
        assert replays(case["fields"], campaign["fields"], campaign["digest"])


def check_refused_signatures() -> None:
    vector, question = read("refused.json"), read("question.json")
    for case in vector["signed"]:
        found = verdict(case["signed"], "campaign", vector["fingerprint"], vector["digest"])
        assert found == case["refused_as"], case["why"]
    for case in vector["signed_questions"]:
        found = verdict(case["signed"], "question", vector["fingerprint"], question["digest"])
        assert found == case["refused_as"], case["why"]


def check_refused_rounds() -> None:
    vector, campaigns = read("refused.json"), read("score-campaign.json")
    certified, nominal = campaigns["certified"], campaigns["nominal"]
    for case in vector["questions"]:
        payload = json.loads(case["payload"])
        good = asks(payload, certified["fields"], certified["digest"])
        assert not (good and canonical(payload) == case["payload"]), case["why"]
    for case in vector["score_thresholds"]:
        payload = json.loads(case["payload"])
        campaign = nominal if payload["which"] == "nominal" else certified
        assert not replays(payload, campaign["fields"], campaign["digest"]), case["why"]


CHECKS = (
    check_campaigns,
    check_signed_campaign,
    check_uploads,
    check_thresholds,
    check_invitation,
    check_randomized_labels,
    check_dealing,
    check_question,
    check_answers,
    check_score_thresholds,
    check_refused_signatures,
    check_refused_rounds,
)

if __name__ == "__main__":
    for check in CHECKS:
        check()
        print(check.__name__.removeprefix("check_").replace("_", " "), "agree")
