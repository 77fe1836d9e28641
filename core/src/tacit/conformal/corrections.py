"""Finite-sample corrections Δ: how far a target must rise above 1-α, and the n that lowers Δ.

A method that calibrates at 1-α+Δ is certifiable at n only while 1-α+Δ < 1, that is Δ < α.
"""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.conformal.curve import noise_level
from tacit.conformal.noise import inverse, uniform
from tacit.errors import InvalidNoise, InvalidParameter
from tacit.exact import count, finite, level, positive

_Floats = NDArray[np.float64]

_LARGEST_N_BITS = 1000
"""Larger n would overflow a float; no campaign will miss them."""


def delta_labels(n: int, beta: float | Fraction, delta: float) -> float:
    """Δ_L of NACP and LDP-CP-L*: sqrt(log(4/δ) / (2 n h²)) with h = (1-β)/(1+β).

    A comparison, not a certificate: the thesis applies the constant of the DKW inequality to F̂^r,
    which is no empirical distribution of n independent points (a record gives k dependent ones).
    """
    noise = noise_level(finite(beta, "β"))
    h = float((1 - noise) / (1 + noise))
    return math.sqrt(_log(4, delta) / (2 * count(n, "n"))) / h


def delta_matrix(n: int, matrix: ArrayLike, delta: float) -> float:
    """Δ of NACP with a noise matrix P: ‖P^{-1}‖_∞ · k · sqrt(log(2k²/δ) / (2n)).

    ‖·‖_∞ is the largest absolute row sum. It exceeds 1 at most sizes that occur in practice.
    """
    inverted = inverse(matrix)
    k = len(inverted)
    largest_row = float(np.abs(inverted).sum(axis=1).max())
    return largest_row * k * math.sqrt(_log(2 * k * k, delta) / (2 * count(n, "n")))


def delta_scores(batch: int, flip: float | Fraction, rounds: int, delta: float) -> float:
    """Δ_S of certified LDP-CP-S* for rounds of m answers: c · sqrt(log(2T/δ) / (2m)).

    c = 1/(1-2r) = (e^ε+1)/(e^ε-1) de-biases a bit that is flipped with probability r. Hoeffding and
    a union over T rounds: with probability 1-δ every round's estimate is within Δ_S of the truth.
    n records in T disjoint batches of equal size give m = ⌊n/T⌋. The usual sqrt(T log(2T/δ) / (2n))
    takes T to divide n and is slightly too small when it does not.
    """
    flipped = finite(flip, "The flip probability")
    if not 0 <= flipped < Fraction(1, 2):
        raise InvalidNoise(f"The flip probability must be in [0, 1/2), not {flip!r}.")
    questions = count(rounds, "The number of rounds")
    answers = count(batch, "The number of answers in a round")
    return math.sqrt(_log(2 * questions, delta) / (2 * answers)) / float(1 - 2 * flipped)


def rounds_for(width: float | Fraction, tau: float | Fraction) -> int:
    """The T = ⌈log2(width/τ)⌉ halvings (at least 1) that take an interval of scores down to τ."""
    cells = math.ceil(positive(width, "The width") / positive(tau, "τ"))
    return max(1, (cells - 1).bit_length())


def n_for_labels(wanted: float, beta: float | Fraction, delta: float) -> int:
    """The smallest n with Δ_L < `wanted`; with α it is the n from which L* is certifiable."""
    bound = float(positive(wanted, "The wanted Δ"))
    return _smallest(lambda n: delta_labels(n, beta, delta) < bound)


def n_for_scores(wanted: float, flip: float | Fraction, rounds: int, delta: float) -> int:
    """The smallest n with Δ_S < `wanted`; with α it is the n from which S* is certifiable.

    Only whole batches count, so it is a multiple of the T rounds.
    """
    bound = float(positive(wanted, "The wanted Δ"))
    questions = count(rounds, "The number of rounds")
    return questions * _smallest(lambda batch: delta_scores(batch, flip, rounds, delta) < bound)


def delta_acnl(
    n: int, conditional: ArrayLike, noisy: ArrayLike, smallest: float | None = None
) -> float:
    """Δ of ACNL (Sesia et al. 2023), a guarantee on average over calibration sets.

    c(n) + (2 max_i Σ_{l≠i} |V_il| + Σ_i |ρ_i - ρ̃_i|) / sqrt(n_*)
           · min(k² sqrt(π/2), 1/sqrt(n_*) + sqrt((log(2k²) + log n_*) / 2)),

    with M[i, l] = `conditional` = p(label l | noisy label i), V = M^{-1}, ρ̃ = `noisy` the
    frequencies of noisy labels, ρ = ρ̃M those of clean ones, and n_* = `smallest` the size of the
    least common noisy class in the calibration set (by default n·min ρ̃, no luck of the draw).
    """
    inverted, after, before = _contamination(conditional, noisy)
    k = len(inverted)
    records = count(n, "n")
    least = float(positive(records * after.min() if smallest is None else smallest, "n_*"))
    off_diagonal = np.abs(inverted).sum(axis=1) - np.abs(inverted.diagonal())
    spread = 2 * off_diagonal.max() + np.abs(before - after).sum()
    growth = 1 / math.sqrt(least) + math.sqrt((math.log(2 * k * k) + math.log(least)) / 2)
    factor = min(k * k * math.sqrt(math.pi / 2), growth)
    return expected_excess(records) + float(spread) / math.sqrt(least) * factor


def delta_acnl_uniform(
    n: int, k: int, beta: float | Fraction, smallest: float | None = None
) -> float:
    """Δ of ACNL for uniform noise and balanced classes, where M is the noise matrix itself."""
    return delta_acnl(n, uniform(k, beta), np.full(k, 1 / k), smallest)


def delta_crcp(n: int, conditional: ArrayLike, noisy: ArrayLike) -> float:
    """Δ of CRCP (Clarkson et al. 2024), a guarantee on average over calibration sets.

    Σ_i (|w_i| b(i) + Σ_{j≠i} |w_ij| b(j)), w_i = V_ii ρ_i - ρ̃_i, w_ij = ρ_i V_ij and
    b(j) = (1-ρ̃_j)^n + sqrt(π / (n ρ̃_j)); M, V, ρ̃ and ρ as in `delta_acnl`.
    """
    inverted, after, before = _contamination(conditional, noisy)
    records = count(n, "n")
    weights = np.abs(before[:, None] * inverted)
    np.fill_diagonal(weights, np.abs(inverted.diagonal() * before - after))
    deviations = (1 - after) ** records + np.sqrt(math.pi / (records * after))
    return float((weights @ deviations).sum())


def delta_crcp_uniform(n: int, k: int, beta: float | Fraction) -> float:
    """Δ of CRCP for uniform noise and balanced classes, where M is the noise matrix itself."""
    return delta_crcp(n, uniform(k, beta), np.full(k, 1 / k))


def expected_excess(n: int) -> float:
    """c(n) = E[max_i (i/n - U_(i))] of n uniform draws: (1/2n) Σ_{m=1}^{n} Π_{i<m} (1 - i/n).

    The mean of Smirnov's one-sided statistic; the sum is Ramanujan's Q(n).
    """
    records = count(n, "n")
    # Π_{i<m}(1 - i/n) ≤ exp(-m(m-1)/2n): beyond 40·sqrt(n) the terms vanish even in a float.
    terms = min(records, 40 * math.isqrt(records) + 40)
    return float(np.cumprod(1 - np.arange(terms) / records).sum() / (2 * records))


def _log(numerator: int, delta: float) -> float:
    """log(numerator/δ); the difference of logarithms holds for the smallest δ there is."""
    return math.log(numerator) - math.log(float(level(delta, "δ")))


def _contamination(conditional: ArrayLike, noisy: ArrayLike) -> tuple[_Floats, _Floats, _Floats]:
    """V = M^{-1}, ρ̃ and ρ = ρ̃M, checked."""
    inverted = inverse(conditional)
    try:
        after = np.asarray(noisy, dtype=np.float64)
    except (TypeError, ValueError):
        after = np.empty(0)
    if after.shape != (len(inverted),) or not (after > 0).all() or abs(after.sum() - 1) > 1e-9:
        raise InvalidParameter(
            "The frequencies of noisy labels must be one positive number per class, with sum 1."
        )
    return inverted, after, after @ np.asarray(conditional, dtype=np.float64)


def _smallest(enough: Callable[[int], bool]) -> int:
    """The smallest n that is enough, for a condition that stays true once it is."""
    high = 1
    while not enough(high):
        high *= 2
        if high.bit_length() > _LARGEST_N_BITS:
            raise InvalidParameter("No number of records would do; ask for a larger Δ or ε.")
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
