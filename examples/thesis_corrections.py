"""Print the thesis's table of corrections Δ beside what its formulas give.

The size n_* of the least common class, which ACNL needs, is that of a random half of a balanced set
of 2n records, after the noise; the mean over simulated halves stands for the one that was drawn.
"""

from dataclasses import dataclass

import numpy as np

from tacit.command import forgiving_stdout
from tacit.conformal.corrections import delta_acnl_uniform, delta_crcp_uniform, delta_labels

DELTA = 0.001
HALVES = 200


@dataclass(frozen=True)
class Printed:
    """One row of the thesis's table, at one noise level."""

    dataset: str
    n: int
    k: int
    beta: float
    nacp: float
    acnl: float
    crcp: float


TABLE = (
    Printed("CIFAR-10", 5000, 10, 0.1, 0.035, 0.031, 0.016),
    Printed("CIFAR-10", 5000, 10, 0.2, 0.043, 0.059, 0.036),
    Printed("CIFAR-100", 10000, 100, 0.1, 0.025, 0.077, 0.039),
    Printed("CIFAR-100", 10000, 100, 0.2, 0.030, 0.163, 0.088),
    Printed("TinyImagenet", 5000, 200, 0.1, 0.035, 0.175, 0.078),
    Printed("TinyImagenet", 5000, 200, 0.2, 0.043, 0.382, 0.176),
    Printed("ImageNet", 25000, 1000, 0.1, 0.016, 0.194, 0.079),
    Printed("ImageNet", 25000, 1000, 0.2, 0.019, 0.466, 0.177),
)


def least_common_class(n: int, k: int, beta: float) -> float:
    """Mean size of the smallest noisy class in a random half of a balanced set of 2n records."""
    generator = np.random.default_rng(0)
    counts = generator.multivariate_hypergeometric([2 * n // k] * k, n, HALVES, method="marginals")
    kept = generator.binomial(counts, 1 - beta)
    replaced = generator.multinomial(n - kept.sum(axis=1), np.full(k, 1 / k))
    return float((kept + replaced).min(axis=1).mean())


def line(row: Printed) -> str:
    """The computed corrections of a row, the printed ones in brackets."""
    smallest = least_common_class(row.n, row.k, row.beta)
    nacp = delta_labels(row.n, row.beta, DELTA)
    crcp = delta_crcp_uniform(row.n, row.k, row.beta)
    balanced = delta_acnl_uniform(row.n, row.k, row.beta)
    drawn = delta_acnl_uniform(row.n, row.k, row.beta, smallest)
    return (
        f"{row.dataset:<12} {row.n:>6} {row.k:>5} {row.beta:>4}"
        f"  {nacp:.4f} ({row.nacp:.3f})  {crcp:.4f} ({row.crcp:.3f})"
        f"  {row.n // row.k:>5}  {balanced:.4f}  {smallest:>5.0f}  {drawn:.3f} ({row.acnl:.3f})"
    )


def main() -> None:
    """Print the table."""
    both = "Δ    (printed)"
    print(f"{'':<30}  {'NACP':<14}  {'CRCP':<14}  {'ACNL, n/k':<13}  ACNL, random half")
    print(
        f"{'dataset':<12} {'n':>6} {'k':>5} {'β':>4}  {both}  {both}"
        f"  {'n_*':>5}  {'Δ':<6}  {'n_*':>5}  Δ   (printed)"
    )
    for row in TABLE:
        print(line(row))


if __name__ == "__main__":
    with forgiving_stdout():
        main()
