"""What a person is told who has not heard of conformal prediction."""

import math

from tacit.conformal import NotCertifiable
from tacit.planning import n_for_scores
from tacit_client.demo.data import SIZES, TRAINING
from tacit_client.demo.figures import Result
from tacit_client.demo.story import Outcome


def introduction(outcome: Outcome) -> str:
    """Why anyone would want a threshold, and what is in the way."""
    terms = outcome.terms
    return (
        f"A small network, trained on only {TRAINING} images, names the right digit in "
        f"{outcome.setting.accuracy():.0%} of new images. Instead of one guess it can give a set "
        f"of digits that should hold the true one for at least {1 - terms.alpha:.0%} of new "
        "images. How far to open the sets is one number, a threshold, learned from labelled "
        f"records. {terms.planned_n:,} of them lie at five sites, and an aggregator that none of "
        "them trusts learned it twice: in a label campaign (L) the images went to the model, with "
        "randomized labels; in a score campaign (S) the model went to the images, and one "
        "randomized bit of each record came back."
    )


def guaranteed(outcome: Outcome) -> dict[str, str]:
    """What each row promises, and what it does not."""
    goal = f"{1 - outcome.terms.alpha:.0%}"
    return {
        "not private": (
            f"Coverage of at least {goal}, on average over calibration sets. It takes every image "
            "and every true label; only a demo can compare with it."
        ),
        "LDP-CP-L": (
            f"Aims at {goal}; for finitely many records nothing is guaranteed about the coverage. "
            "To be had at any time while a campaign goes on."
        ),
        "LDP-CP-L*": _labels_star(outcome.labels.starred.outcome),
        "LDP-CP-S": (
            f"Aims at {goal} too, and guarantees as little: one round with bad luck sends the "
            f"search to the wrong side. {_scores_star(outcome)}"
        ),
        "ε in L": _epsilon_of_labels(outcome),
        "ε in S": _epsilon_of_scores(outcome),
        "not protected": (
            "In L the images: they left as they are, because the sites' policies let features "
            "leave. What one person has adds up, over records and campaigns: here "
            f"{outcome.spent:g} for each record, of {outcome.terms.most_epsilon:g} that the "
            "policies allow. The coins come from a cipher, so ε holds against everyone who cannot "
            "break it."
        ),
    }


def _labels_star(result: Result) -> str:
    if isinstance(result, NotCertifiable):
        return f"{result} It was worked out once, at the planned end."
    return (
        f"Aims Δ = {result.correction:.1%} higher, to be safe from bad luck; but the constant in Δ "
        "is not proved, so this is a comparison and no certificate. Worked out once, at the "
        "planned end, from the same reports: it costs no privacy, but larger sets."
    )


def _scores_star(outcome: Outcome) -> str:
    """What the certified search would have taken."""
    terms, flip = outcome.terms, outcome.scores.campaign.document.channel.flip
    needed = n_for_scores(terms.alpha, flip, terms.rounds, terms.delta)
    verdict = "so it was not asked for"
    if needed <= terms.planned_n:
        verdict = "which would do, for larger sets than these"
    return (
        f"A search that certifies {1 - terms.alpha:.0%}, {1 - terms.delta:.0%} sure, is LDP-CP-S*: "
        f"with this ε and {terms.rounds} rounds it needs {needed:,} records at the very least, and "
        f"several times that for small sets. Here are {terms.planned_n:,}, {verdict}."
    )


def _epsilon_of_labels(outcome: Outcome) -> str:
    channel = outcome.labels.campaign.document.channel
    return (
        f"Each label was replaced by a random digit with probability {float(channel.beta):.0%}. "
        f"So a report shifts the odds between two labels of a record at most "
        f"{math.exp(channel.epsilon):.3g}-fold (ε = {channel.epsilon:g}), whoever reads it. That "
        "holds, whatever the aggregator does."
    )


def _epsilon_of_scores(outcome: Outcome) -> str:
    channel = outcome.scores.campaign.document.channel
    return (
        f"Each bit was flipped with probability {float(channel.flip):.1%}. So it shifts the odds "
        "between any two records, image and label together, at most "
        f"{math.exp(channel.epsilon):.3g}-fold (ε = {channel.epsilon:g}): the whole record is "
        "protected, whatever the aggregator asks, since a record answers once."
    )


def seen(outcome: Outcome) -> dict[str, str]:
    """What each party got to see."""
    n, left = outcome.terms.planned_n, outcome.images_left
    return {
        "a site": (
            "Its own records, and how many of them were counted; in S also the model and every "
            "question. It verified the campaigns against its invitations, the model by its digest "
            "and the questions by their signatures before anything was drawn. Its ledger keeps "
            f"what each person spent; {outcome.keys_erased} of {len(SIZES)} sites have learnt that "
            "all is counted and erased the keys of their coins."
        ),
        "aggregator": (
            f"In L {n:,} images with randomized labels, which site each came from, no record ids. "
            "Counted, they are erased: counts per site stay, and a hash of each upload. A search "
            f"of its database files finds {left} of the {n:,} images. In S {outcome.scores.bits:,} "
            "randomized bits, which site each came from and in which round; of an upload it keeps "
            "the number of ones. No image, no label, no score."
        ),
        "owner": (
            "How many records each site sent, three signed thresholds, and of each round how many "
            "randomized bits were 1. No image, no label, not even a randomized one."
        ),
        "the wire": (
            "Plain http, since it never leaves this machine, and the demo listens to it. To "
            "anywhere else the client sends its token over https only."
        ),
    }


def caveats(outcome: Outcome) -> dict[str, str]:
    """What to keep in mind about the numbers."""
    held_out = len(outcome.setting.digits.held_out)
    return {
        "±": (
            f"is the 95% sampling error, in points, of {held_out} held-out images: the same "
            "images, and so much the same error, in every row."
        ),
        "Coins": (
            "for privacy come from the operating system and cannot be seeded, so the private rows "
            "change a little from run to run. Data and model do not."
        ),
        "Digits": "are a toy: real campaigns have more records, and models worth calibrating.",
    }


ABOUT_MESSAGES = (
    "Long texts are cut short (…). A payload travels as one line of canonical JSON, which the "
    "signature is of; here it is spread out. Tokens travel in a header and are not shown."
)

NEXT = {
    "tacit --help": "every command; tacit doctor checks a site's installation",
    "make demo ARGS=--keep": "leaves the service up, to try the commands on",
    "README.md": "what is protected and what is promised; the API on one page",
    "docs/README.md": "the tutorial, how-to pages, the protocol and its proofs",
    "examples/digits.py": "the library alone: five methods, with a picture",
}
