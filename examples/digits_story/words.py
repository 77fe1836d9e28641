"""What a person is told who has not heard of conformal prediction."""

import math

from examples.digits_story.campaigns import Comparison, Terms
from tacit.conformal import NotCertifiable
from tacit.conformal.corrections import n_for_scores
from tacit_client.demo.data import TRAINING
from tacit_client.demo.figures import Result

USUAL_ALPHA = 0.1


def introduction(accuracy: float, terms: Terms) -> str:
    """Why anyone would want a threshold, and what is in the way."""
    return (
        f"A small model, trained on only {TRAINING} images, names the right digit in "
        f"{accuracy:.0%} of new images. Instead of one guess it can give a set of digits. The sets "
        f"should hold the true digit for at least {1 - terms.alpha:.0%} of new images, and be as "
        "small as that allows. How far to open them is one number, a threshold, learned from "
        "labelled records; and those belong to five sites that do not want to give labels away."
    )


def what_left(comparison: Comparison) -> dict[str, str]:
    """For each method what left the sites and what it could reveal."""
    terms = comparison.terms
    labels, bits = terms.label_mechanism.channel, terms.bit_mechanism.channel
    odds = f"e^{bits.epsilon:g} = {math.exp(bits.epsilon):.3g}"
    return {
        "not private": "Every image and its true label left. Whoever sees them knows them.",
        "LDP-CP-L": (
            "Every image left as it is, with a label that a coin had replaced by a random one "
            f"in {float(labels.beta):.0%} of the cases. A report shifts the odds between two "
            f"labels at most {math.exp(labels.epsilon):.3g}-fold (ε = {labels.epsilon!r}). "
            "The images themselves are not protected."
        ),
        "LDP-CP-L*": _labels_star(comparison.labels_star),
        "LDP-CP-S": (
            "One bit per record left, nothing else: “is your score at most t?”, flipped in "
            f"{float(bits.flip):.1%} of the cases. It shifts the odds between any two records, "
            f"image and label together, at most {odds}-fold (ε = {bits.epsilon!r})."
        ),
        "LDP-CP-S*": _scores_star(comparison.scores_star),
    }


def _labels_star(result: Result) -> str:
    if isinstance(result, NotCertifiable):
        return f"The same reports once more. {result}"
    return (
        f"The same reports once more, which costs no privacy. It aims Δ = {result.correction:.1%} "
        "higher to be safe from bad luck, but the constant in Δ is not proved."
    )


def _scores_star(result: Result) -> str:
    if isinstance(result, NotCertifiable):
        return f"Nothing was asked, so nothing left. {result}"
    return (
        "Bits of the same kind. It lowers the threshold only where the answers prove it, with "
        f"Δ = {result.correction:.1%} to spare. This is the row to rely on, and larger sets are "
        "its price."
    )


def choice(terms: Terms, n: int) -> str:
    """What the usual goal would take."""
    flip = terms.bit_mechanism.channel.flip
    needed = n_for_scores(USUAL_ALPHA, flip, terms.rounds, terms.delta)
    return (
        f"The goal is {1 - terms.alpha:.0%} because the digits leave {n:,} records for "
        f"calibration. To certify the usual {1 - USUAL_ALPHA:.0%} in the same way, LDP-CP-S* needs "
        f"{needed:,} at the very least, and several times that for small sets."
    )


def caveats(comparison: Comparison, held_out: int) -> dict[str, str]:
    """What to keep in mind about the numbers."""
    bits = comparison.terms.bit_mechanism.epsilon
    spent = [comparison.terms.label_mechanism.epsilon, bits]
    if not isinstance(comparison.scores_star, NotCertifiable):
        spent.append(bits)
    total = f"{' + '.join(f'{epsilon:g}' for epsilon in spent)} = {sum(spent):g}"
    return {
        "±": (
            f"is the 95% sampling error, in points, of {held_out} held-out images: the same "
            "images, and so much the same error, in every row."
        ),
        "Coins": (
            "for privacy come from the operating system and cannot be seeded, so the private rows "
            "change a little from run to run. Data and model do not."
        ),
        "Budget": (
            f"A real record would take part once. Here each did in {len(spent)} campaigns (L and "
            f"L* are one), and ε adds up: {total}."
        ),
    }
