"""Coins from a key and record keys: what another implementation must reproduce."""

import hashlib
import hmac
import subprocess
import sys

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tacit.errors import InvalidCoins
from tacit.mechanisms import RandomizedResponse, RecordCoins
from tacit.mechanisms.record_coins import _may_repeat

KEY = bytes(range(32))


def record_keys(*numbers: int) -> NDArray[np.uint8]:
    joined = b"".join(number.to_bytes(16, "little") for number in numbers)
    return np.frombuffer(joined, dtype=np.uint8).reshape(-1, 16)


def expected_block(key: bytes, record_key: bytes, purpose: str, attempt: int) -> bytes:
    """HKDF (RFC 5869) written out, then one AES block."""
    extracted = hmac.digest(bytes(32), key, hashlib.sha256)
    info = b"tacit coins v1" + purpose.encode() + attempt.to_bytes(4, "big")
    subkey = hmac.digest(extracted, info + b"\x01", hashlib.sha256)
    encryptor = Cipher(algorithms.AES(subkey), modes.ECB()).encryptor()  # noqa: S305 one block
    return encryptor.update(record_key)


@pytest.mark.parametrize(("purpose", "attempt"), [("report", 0), ("report", 1), ("round ρ", 300)])
def test_a_block_is_aes_of_the_record_key_under_a_subkey_of_purpose_and_attempt(
    purpose: str, attempt: int
) -> None:
    keys = record_keys(0, 1, 2**128 - 1, 12345)
    blocks = RecordCoins(KEY, keys, purpose).blocks(1, 4, attempt)
    expected = [expected_block(KEY, key.tobytes(), purpose, attempt) for key in keys[1:]]
    assert blocks.astype("<u8").tobytes() == b"".join(expected)
    assert [int(word) for word in blocks[0]] == [
        int.from_bytes(expected[0][:8], "little"),
        int.from_bytes(expected[0][8:], "little"),
    ]


def test_the_coins_of_version_1_never_change() -> None:
    blocks = RecordCoins(KEY, [bytes(range(16))]).blocks(0, 1, 0)
    assert blocks.astype("<u8").tobytes().hex() == "edd4ba42ae1746a207ed8dd3b45390b0"
    blocks = RecordCoins(KEY, [bytes(range(16))], "rounds").blocks(0, 1, 2)
    assert blocks.astype("<u8").tobytes().hex() == "e0934f65e5929a0f74489e6f763cf787"


def test_a_record_gets_the_same_report_in_any_order_and_any_batch() -> None:
    mechanism = RandomizedResponse(10, 1.0)
    keys, labels = record_keys(*range(5000)), np.arange(5000) % 10
    reports = mechanism.privatize(labels, RecordCoins(KEY, keys))
    order = np.random.default_rng(0).permutation(5000)
    shuffled = mechanism.privatize(labels[order], RecordCoins(KEY, keys[order]))
    np.testing.assert_array_equal(shuffled, reports[order])
    part = mechanism.privatize(labels[700:900], RecordCoins(KEY, keys[700:900]))
    np.testing.assert_array_equal(part, reports[700:900])


def test_a_record_gets_the_same_report_in_another_process() -> None:
    program = (
        "import numpy as np; from tacit.mechanisms import *;"
        "keys = [n.to_bytes(16, 'little') for n in range(2000)];"
        "coins = RecordCoins(bytes(range(32)), keys);"
        "reports = RandomizedResponse(10, 1.0).privatize(np.arange(2000) % 10, coins);"
        "print(''.join(map(str, reports)))"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    coins = RecordCoins(KEY, record_keys(*range(2000)))
    here = RandomizedResponse(10, 1.0).privatize(np.arange(2000) % 10, coins)
    assert run.stdout.decode().strip() == "".join(map(str, here))


def test_record_keys_may_be_bytes_an_array_or_a_strided_view_of_one() -> None:
    keys = record_keys(*range(20))
    expected = RecordCoins(KEY, keys[::2]).blocks(0, 10, 0)
    as_bytes = [key.tobytes() for key in keys[::2]]
    np.testing.assert_array_equal(RecordCoins(KEY, as_bytes).blocks(0, 10, 0), expected)
    wide = np.zeros((20, 40), dtype=np.uint8)
    wide[:, 3:19] = keys
    np.testing.assert_array_equal(RecordCoins(KEY, wide[::2, 3:19]).blocks(0, 10, 0), expected)


def test_neither_key_shows_in_the_representation() -> None:
    coins = RecordCoins(b"k" * 32, [b"r" * 16])
    assert repr(coins) == "RecordCoins(1 records, purpose='report')"


@pytest.mark.parametrize("key", [b"", bytes(31), bytes(33), "k" * 32, bytearray(32), None])
def test_a_campaign_key_that_is_not_32_bytes_is_refused(key: bytes) -> None:
    with pytest.raises(InvalidCoins):
        RecordCoins(key, record_keys(1))


@pytest.mark.parametrize(
    "keys",
    [
        [bytes(15)],
        ["x" * 16],
        [bytes(16), bytes(17)],
        np.zeros((3, 15), dtype=np.uint8),
        np.zeros(16, dtype=np.uint8),
        np.zeros((1, 16), dtype=np.int8),
        np.zeros((1, 2), dtype=np.uint64),
        7,
    ],
)
def test_record_keys_that_are_not_16_bytes_each_are_refused(keys: NDArray[np.uint8]) -> None:
    with pytest.raises(InvalidCoins):
        RecordCoins(KEY, keys)


def test_a_purpose_that_is_not_text_is_refused() -> None:
    with pytest.raises(InvalidCoins):
        RecordCoins(KEY, record_keys(1), b"report")  # type: ignore[arg-type]


def test_no_records_need_no_keys() -> None:
    assert RecordCoins(KEY, []).rows == 0
    assert RecordCoins(KEY, np.empty((0, 16), dtype=np.uint8)).rows == 0


@given(
    st.lists(st.integers(0, 2**128 - 1), unique=True, min_size=1, max_size=40),
    st.data(),
)
def test_distinct_record_keys_are_accepted_and_a_repeated_one_is_named(
    numbers: list[int], data: st.DataObject
) -> None:
    assert RecordCoins(KEY, record_keys(*numbers)).rows == len(numbers)
    repeated = data.draw(st.sampled_from(numbers))
    place = data.draw(st.integers(0, len(numbers)))
    twice = [*numbers[:place], repeated, *numbers[place:]]
    second = [row for row, number in enumerate(twice) if number == repeated][1]
    with pytest.raises(InvalidCoins, match=f"row {second} "):
        RecordCoins(KEY, record_keys(*twice))


@pytest.mark.parametrize("step", [1, 2**32, 2**63, 2**64, 2**100])
def test_a_repeated_record_key_is_found_among_many_that_are_alike(step: int) -> None:
    numbers = [number * step % 2**128 for number in range(50_000)]
    distinct = list(dict.fromkeys(numbers))
    assert RecordCoins(KEY, record_keys(*distinct)).rows == len(distinct)
    with pytest.raises(InvalidCoins, match="twice"):
        RecordCoins(KEY, record_keys(*distinct, distinct[len(distinct) // 2]))


def test_record_keys_that_only_look_alike_to_the_check_are_accepted() -> None:
    # Under odd multipliers both top bits cancel: these two always share their hash.
    alike = record_keys(5, 5 + 2**63 + 2**127)
    assert _may_repeat(alike.view("<u8"))
    assert RecordCoins(KEY, alike).rows == 2
