"""What a person is told who has not heard of conformal prediction."""

import math

from tacit.conformal import NotCertifiable
from tacit_client.demo.data import TRAINING
from tacit_client.demo.figures import Result
from tacit_client.demo.sites import Crash
from tacit_client.demo.story import CRASHES, Outcome


def introduction(outcome: Outcome) -> str:
    """Why anyone would want a threshold, and what is in the way."""
    terms = outcome.terms
    return (
        f"A small network, trained on only {TRAINING} images, names the right digit in "
        f"{outcome.setting.accuracy():.0%} of new images. Instead of one guess it can give a set "
        f"of digits that should hold the true one for at least {1 - terms.alpha:.0%} of new "
        "images. How far to open the sets is one number, a threshold, learned from labelled "
        f"records. {terms.planned_n:,} of them lie at five sites, which sent randomized labels to "
        "an aggregator that none of them trusts with the true ones."
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
        "LDP-CP-L*": _starred(outcome.starred.outcome),
        "ε": _epsilon(outcome),
        "not protected": (
            "The images: they left as they are, because the sites' policies let features leave. "
            "Several records of one person add up. The coins come from a cipher, so ε holds "
            "against everyone who cannot break it."
        ),
    }


def _starred(result: Result) -> str:
    if isinstance(result, NotCertifiable):
        return f"{result} It was worked out once, at the planned end."
    return (
        f"Aims Δ = {result.correction:.1%} higher, to be safe from bad luck; but the constant in Δ "
        "is not proved, so this is a comparison and no certificate. Worked out once, at the "
        "planned end, from the same reports: it costs no privacy, but larger sets."
    )


def _epsilon(outcome: Outcome) -> str:
    channel = outcome.campaign.document.channel
    return (
        f"Each label was replaced by a random digit with probability {float(channel.beta):.0%}. "
        f"So a report shifts the odds between two labels of a record at most "
        f"{math.exp(channel.epsilon):.3g}-fold (ε = {channel.epsilon:g}), whoever reads it. That "
        "holds, whatever the aggregator does."
    )


def crash(told: Crash, counted: int) -> list[str]:
    """The site that died, from its ledger and from the server."""
    lost = "byte for byte as it was" if told.resent_alike else "CHANGED"
    return [
        (
            f"{told.site}'s process was killed (SIGKILL) when {told.drawn} labels were drawn: "
            f"{told.acknowledged} had a receipt, {told.stored_unseen} were stored by the server "
            f"but the receipt never arrived, {told.unsent} had not been sent."
        ),
        (
            f"The same command once more: {told.drawn_again} records drawn, {told.already} found "
            f"in the ledger, and the upload without a receipt went out again {lost}. In the end "
            f"the ledger holds {told.drawn_in_all} records, each drawn once, and the server "
            f"counted {counted}."
        ),
    ]


def seen(outcome: Outcome) -> dict[str, str]:
    """What each party got to see."""
    n, left = outcome.terms.planned_n, outcome.images_left
    return {
        "a site": (
            "Its own records, and how many of them were counted. It verified the campaign's "
            "signature against its invitation before anything was drawn. Its ledger keeps what "
            f"each person spent; {outcome.keys_erased} of 5 sites have learnt that all is counted "
            "and erased the key of their coins."
        ),
        "aggregator": (
            f"{n:,} images with randomized labels, which site each came from, no record ids. "
            "Counted, they are erased: counts per site stay, and a hash of each upload. A search "
            f"of its database files finds {left} of the {n:,} images."
        ),
        "owner": (
            "How many records each site sent, and two signed thresholds. No image, no label, not "
            "even a randomized one."
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


def headline_of_crash() -> str:
    """What the part about the crash is called."""
    return f"{CRASHES} crashed in the middle"
