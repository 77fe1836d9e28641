"""Counting the runs in which a guarantee failed."""

from scipy.stats import binom


def too_many_failures(failures: int, runs: int, delta: float, false_alarm: float = 1e-6) -> bool:
    """Whether a method that fails with probability at most δ would fail so often too rarely.

    Exact binomial test: P(Bin(runs, δ) ≥ failures) ≤ false_alarm.
    """
    return bool(binom.sf(failures - 1, runs, delta) <= false_alarm)
