"""Labels per second of one peer's k-ary randomized response: `… PEER K EPSILON`, prints JSON.

Runs in the peers' environment and therefore imports nothing from this repository. Every peer takes
one label per call, so each is called in a loop, as its documentation does.
"""

# ruff: noqa: PLC0415  (one peer's imports must not burden another's measurement)

import json
import math
import sys
import time
from collections.abc import Callable

Privatize = Callable[[int], int]

ENOUGH_SECONDS = 0.25
REPEATS = 3


def opendp(k: int, epsilon: float) -> Privatize:
    """OpenDP's randomized response over the categories 0 to k-1."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    keep = math.exp(epsilon) / (math.exp(epsilon) + k - 1)
    measurement = dp.m.make_randomized_response(list(range(k)), keep)
    return lambda label: int(measurement(label))


def pure_ldp(k: int, epsilon: float) -> Privatize:
    """pure-ldp's direct encoding."""
    from pure_ldp.frequency_oracles.direct_encoding import DEClient

    client = DEClient(epsilon, k, index_mapper=lambda label: label)
    privatize: Privatize = client.privatise
    return privatize


def multi_freq_ldpy(k: int, epsilon: float) -> Privatize:
    """multi-freq-ldpy's generalized randomized response, compiled by its first call."""
    from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Client

    return lambda label: int(GRR_Client(label, k, epsilon))


def diffprivlib(k: int, epsilon: float) -> Privatize:
    """The exponential mechanism over categories: diffprivlib has no k-ary randomized response.

    With the same utility for every pair of labels, its channel is that of k-RR.
    """
    from diffprivlib.mechanisms import ExponentialCategorical

    names = [str(label) for label in range(k)]
    pairs = [(first, second, 1) for i, first in enumerate(names) for second in names[:i]]
    mechanism = ExponentialCategorical(epsilon=epsilon, utility_list=pairs)
    return lambda label: int(mechanism.randomise(names[label]))


PEERS: dict[str, Callable[[int, float], Privatize]] = {
    "opendp": opendp,
    "pure-ldp": pure_ldp,
    "multi-freq-ldpy": multi_freq_ldpy,
    "diffprivlib": diffprivlib,
}


def seconds(privatize: Privatize, labels: list[int], k: int) -> float:
    """The time to privatize the labels one by one."""
    start = time.perf_counter()
    reports = [privatize(label) for label in labels]
    elapsed = time.perf_counter() - start
    if not all(0 <= report < k for report in reports):
        raise RuntimeError("A report is not a label.")
    return elapsed


def labels_per_second(privatize: Privatize, k: int) -> float:
    """The best rate of several runs, each long enough to be timed."""
    privatize(0)
    labels = [label % k for label in range(256)]
    while seconds(privatize, labels, k) < ENOUGH_SECONDS:
        labels += labels
    return len(labels) / min(seconds(privatize, labels, k) for _ in range(REPEATS))


def main() -> None:
    """Measure the peer named on the command line."""
    peer, k, epsilon = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    rate = labels_per_second(PEERS[peer](k, epsilon), k)
    print(json.dumps({"labels_per_second": rate}))


if __name__ == "__main__":
    main()
