"""Check the vectors without Tacit, as another implementation would: python tests/vectors/check.py.

Only the standard library and Ed25519 and AES of `cryptography`. Read it beside docs/protocol.md.
"""

import base64
import hashlib
import hmac
import json
import math
import struct
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

HERE = Path(__file__).parent
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


def check_campaigns() -> None:
    for case in read("campaign.json").values():
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
        assert canonical(case["fields"]) == case["signed"]["payload"]
        found = verdict(case["signed"], "threshold", vector["fingerprint"], case["digest"])
        assert found == "good"
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


def check_refused_signatures() -> None:
    vector = read("refused.json")
    for case in vector["signed"]:
        found = verdict(case["signed"], "campaign", vector["fingerprint"], vector["digest"])
        assert found == case["refused_as"], case["why"]


CHECKS = (
    check_campaigns,
    check_signed_campaign,
    check_uploads,
    check_thresholds,
    check_invitation,
    check_randomized_labels,
    check_refused_signatures,
)

if __name__ == "__main__":
    for check in CHECKS:
        check()
        print(check.__name__.removeprefix("check_").replace("_", " "), "agree")
