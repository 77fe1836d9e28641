"""The methods on tables of real model outputs, where a folder with them is at hand.

The figures are those of a plain reference implementation: ε = 4, α = 0.1, T = 10, δ = 0.001, half
of all records for calibration, 40 splits.
"""

import os
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tacit.conformal import Calibration, NotCertifiable, ldp_cp_l, ldp_cp_s, split
from tacit.mechanisms import BinaryRandomizedResponse, FreshCoins, RandomizedResponse
from tacit.scores import APS, HPS, Score, softmax

SPLITS, ALPHA, DELTA, EPSILON = 40, 0.1, 0.001, 4.0

Figures = dict[str, tuple[float, float]]
REFERENCE: dict[str, Figures] = {
    "hps": {
        "split": (0.924, 0.901),
        "l": (0.925, 0.901),
        "l*": (0.972, 0.931),
        "s": (0.926, 0.901),
    },
    "aps": {"split": (3.13, 0.900), "l": (3.13, 0.900), "l*": (3.52, 0.929), "s": (1.65, 0.667)},
}
SIZE_TOLERANCE = {"hps": 0.02, "aps": 0.08}
COVERAGE_TOLERANCE = 0.015


def table(name: str) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    folder = os.environ.get("TACIT_DATA")
    if not folder:
        pytest.skip("TACIT_DATA is not set")
    path = Path(folder, name)
    if not path.exists():
        pytest.skip(f"TACIT_DATA has no {name}")
    with np.load(path, allow_pickle=False) as arrays:
        return softmax(arrays["logits"].astype(np.float64)), arrays["labels"].astype(np.int64)


def figures(probabilities: NDArray[np.float64], labels: NDArray[np.int64], score: Score) -> Figures:
    """Mean set size and coverage of each method over the splits."""
    client = RandomizedResponse(probabilities.shape[1], EPSILON)
    bits = BinaryRandomizedResponse(EPSILON)
    seen: dict[str, list[tuple[float, float]]] = {"split": [], "l": [], "l*": [], "s": []}
    for seed in range(SPLITS):
        order = np.random.default_rng(seed).permutation(len(labels))
        fit, test = np.split(order, [len(order) // 2])
        rows, truth = probabilities[fit], labels[fit]
        reports = client.privatize(truth, FreshCoins())
        results: dict[str, Calibration | NotCertifiable] = {
            "split": split(rows, truth, score=score, alpha=ALPHA),
            "l": ldp_cp_l(rows, reports, channel=client.channel, score=score, alpha=ALPHA),
            "l*": ldp_cp_l(
                rows, reports, channel=client.channel, score=score, alpha=ALPHA, delta=DELTA
            ),
            "s": ldp_cp_s(rows, truth, mechanism=bits, score=score, alpha=ALPHA),
        }
        scores = score.of_all(probabilities[test])
        for method, result in results.items():
            assert isinstance(result, Calibration)
            sets = scores <= result.threshold
            covered = sets[np.arange(len(test)), labels[test]].mean()
            seen[method].append((float(sets.sum(axis=1).mean()), float(covered)))
    return {
        method: (float(np.mean([s for s, _ in runs])), float(np.mean([c for _, c in runs])))
        for method, runs in seen.items()
    }


@pytest.mark.parametrize("score", [HPS(), APS()], ids=["hps", "aps"])
def test_pathology_images_give_the_reference_figures(score: Score) -> None:
    """False-alarm probability below 1e-6.

    Both sides are means of 40 splits. Over 40 splits the largest s.d. of one were 0.010 of size and
    0.008 of coverage for HPS (S), 0.056 of size and 0.006 of coverage for APS (L* and L). After the
    rounding of the reference, every tolerance is at least 6.0 times √(2/40) of these.
    """
    measured = figures(*table("pathmnist.npz"), score)
    for method, (size, coverage) in REFERENCE[score.name].items():
        assert measured[method][0] == pytest.approx(size, abs=SIZE_TOLERANCE[score.name]), method
        assert measured[method][1] == pytest.approx(coverage, abs=COVERAGE_TOLERANCE), method
