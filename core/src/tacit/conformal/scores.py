"""LDP-CP-S from one end to the other: put the questions of a search, or answer them oneself."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.conformal.questions import Answers, Question
from tacit.conformal.results import Calibration, NotCertifiable
from tacit.conformal.search import BinarySearch, CertifiedSearch
from tacit.mechanisms import BinaryRandomizedResponse, Coins, FreshCoins
from tacit.scores import Score


def run(
    search: BinarySearch | CertifiedSearch, ask: Callable[[Question], Answers]
) -> Calibration | NotCertifiable:
    """Put questions to `ask` until the search has its result."""
    step: Question | Calibration | NotCertifiable = search.start()
    while isinstance(step, Question):
        step = search.advance(step, ask(step))
    return step


def ldp_cp_s(
    probabilities: ArrayLike,
    labels: ArrayLike,
    *,
    mechanism: BinaryRandomizedResponse,
    score: Score,
    alpha: float,
    delta: float | None = None,
    rounds: int = 10,
    tolerance: float = 0.0,
    uniforms: ArrayLike | None = None,
    coins_for: Callable[[NDArray[np.int64]], Coins] = lambda _: FreshCoins(),
) -> Calibration | NotCertifiable:
    """LDP-CP-S on records held in one place; with δ, the certified LDP-CP-S*.

    For trying the method out: in a campaign the records answer at their sites. `coins_for` gives
    the coins of a batch of rows. Without δ, the search stops where an estimate is within
    `tolerance`/2 of 1-α.
    """
    scores = score.of_labels(probabilities, labels, uniforms)
    plan = (score, np.shape(probabilities)[1], mechanism.channel, alpha, len(scores), rounds)
    search = BinarySearch(*plan, tolerance) if delta is None else CertifiedSearch(*plan, delta)
    batches = search.batches()

    def ask(question: Question) -> Answers:
        rows = batches[question.round]
        bits: NDArray[np.bool_] = scores[rows] <= question.threshold
        return Answers.of(mechanism.privatize(bits, coins_for(rows)))

    return run(search, ask)
