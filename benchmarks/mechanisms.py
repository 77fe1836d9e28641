"""Labels per second of k-ary randomized response, beside plain numpy and other libraries."""

import os
import secrets
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # to be run by path, too

from benchmarks.harness import Bar, Report, interleaved, main, progress, show_table
from benchmarks.peers.environment import Unavailable, labels_per_second, make_environment
from tacit.mechanisms import FreshCoins, RandomizedResponse, RecordCoins

EPSILON = 1.0
CLASSES = (10, 1000)
LABELS = 2_000_000
REPEATS = 7
FRESH = "tacit, fresh coins"
RECORD = "tacit, record coins"
RECORD_READY = "tacit, record coins made beforehand"
PLAIN = "plain numpy"
AT_LEAST = {FRESH: 3.0, RECORD: 1.5}

RANDOMNESS = {
    FRESH: "AES-256-CTR under keys from the operating system's CSPRNG",
    RECORD: "AES-256 of 16-byte record keys, which are checked to differ, under a secret key",
    RECORD_READY: "the same, without the check",
    PLAIN: "the operating system's CSPRNG, 128 bits a label",
    "opendp": "OpenSSL's CSPRNG",
    "pure-ldp": "Python's random (Mersenne Twister, not cryptographic)",
    "multi-freq-ldpy": "numba's numpy.random (Mersenne Twister, not cryptographic)",
    "diffprivlib": "secrets.SystemRandom; the exponential mechanism, its channel that of k-RR",
}
"""Where each contestant's randomness comes from, as its source says."""

PEERS = ("opendp", "pure-ldp", "multi-freq-ldpy", "diffprivlib")


@dataclass(frozen=True)
class Row:
    """A contestant at one k: its rate, or why there is none."""

    name: str
    rate: float | None
    note: str


def plain_randomized_response(
    labels: NDArray[np.int64], k: int, epsilon: float
) -> NDArray[np.int64]:
    """k-RR as one would write it in numpy, with two 64-bit draws a label from `os.urandom`."""
    beta = k / (k - 1 + np.exp(epsilon))
    draws = np.frombuffer(os.urandom(16 * len(labels)), dtype=np.uint64).reshape(2, -1)
    replaced = draws[0] < np.uint64(beta * 2.0**64)
    return np.where(replaced, (draws[1] % np.uint64(k)).astype(np.int64), labels)


def own_rates(k: int, labels_count: int, repeats: int) -> dict[str, float]:
    """Labels per second of Tacit and of plain numpy, in turns over the same labels."""
    labels = np.random.default_rng(k).integers(k, size=labels_count)
    key = secrets.token_bytes(32)
    record_keys = np.frombuffer(os.urandom(16 * labels_count), dtype=np.uint8).reshape(-1, 16)
    coins = RecordCoins(key, record_keys)
    mechanism = RandomizedResponse(k, EPSILON)
    contestants: dict[str, Callable[[], NDArray[np.int64]]] = {
        FRESH: lambda: mechanism.privatize(labels, FreshCoins()),
        RECORD: lambda: mechanism.privatize(labels, RecordCoins(key, record_keys)),
        RECORD_READY: lambda: mechanism.privatize(labels, coins),
        PLAIN: lambda: plain_randomized_response(labels, k, EPSILON),
    }
    times = interleaved(contestants, repeats)
    return {name: labels_count / measured.seconds for name, measured in times.items()}


def peers_python() -> Path | Unavailable:
    """The Python of the peers' environment, or why there is none."""
    try:
        return make_environment()
    except Unavailable as reason:
        return reason


def peer_rows(k: int, python: Path | Unavailable) -> Iterator[Row]:
    """The other libraries, each in a process of the peers' environment."""
    for peer in PEERS:
        try:
            if isinstance(python, Unavailable):
                raise python
            progress(f"{peer}, k = {k}")
            yield Row(peer, labels_per_second(python, peer, k, EPSILON), RANDOMNESS[peer])
        except Unavailable as reason:
            yield Row(peer, None, f"not available: {reason}")


def show(k: int, rows: list[Row], plain: float) -> None:
    """Print the contestants at one k."""
    cells = [
        (
            row.name,
            f"{row.rate:,.0f}" if row.rate is not None else "-",
            f"{row.rate / plain:.3g}×" if row.rate is not None else "-",
            row.note,
        )
        for row in rows
    ]
    title = f"k-RR, k = {k}, ε = {EPSILON:g} (best of runs in turns)"
    show_table(title, ("mechanism", "labels/s", "of plain numpy", "randomness"), cells)


def measure(quick: bool) -> Report:
    """Measure every contestant at every k; quick leaves out the peers."""
    figures: dict[str, float] = {}
    bars: list[Bar] = []
    python = None if quick else peers_python()
    for k in CLASSES:
        progress(f"tacit and plain numpy, k = {k}")
        rates = own_rates(k, 10_000 if quick else LABELS, 2 if quick else REPEATS)
        rows = [Row(name, rate, RANDOMNESS[name]) for name, rate in rates.items()]
        rows += peer_rows(k, python) if python is not None else []
        show(k, rows, rates[PLAIN])
        for row in rows:
            if row.rate is not None:
                figures[f"k={k}: {row.name}, labels/s"] = row.rate
        for name, at_least in AT_LEAST.items():
            ratio = rates[name] / rates[PLAIN]
            bars.append(Bar(f"k={k}: {name} / {PLAIN}", ratio, at_least=at_least))
    return Report("mechanisms", figures, tuple(bars))


if __name__ == "__main__":
    main(measure)
