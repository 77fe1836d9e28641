"""The parts of the story that happened on the way: rounds that narrow, and sites that crash."""

from tacit_client.demo.crash import Crash
from tacit_client.demo.labels import LabelPart
from tacit_client.demo.scores import ScorePart

HEADLINE_OF_CRASHES = "Two sites crashed in the middle"


def before_rounds(part: ScorePart) -> str:
    """What a round is."""
    terms = part.campaign.document
    return (
        "In the score campaign every site fetched the model, an ONNX file, and worked out at home "
        "the score of each record: how far its set must open to hold the true digit. It dealt its "
        f"records out to {terms.round_count} rounds, at random, before anything was asked. A round "
        "asks its records one question, “is your score at most t?”, and each of them answers with "
        "one randomized bit, once."
    )


def after_rounds(part: ScorePart) -> str:
    """What the table says, and who checked it."""
    document, terms = part.document, part.campaign.document
    return (
        "The estimate is of the share of scores at most t, without what the coins added; so it may "
        f"pass 100%. Above {1 - terms.alpha:.0%} the search goes on below t, otherwise above, and "
        f"ends with the last t. {part.bits:,} bits left the sites, for {document.asked_n:,} "
        "records. The signed threshold holds the count of every round: the owner's client replayed "
        "the search from them, and it leads to the same t."
    )


def crash_of_labels(part: LabelPart) -> list[str]:
    """The site that died in the label campaign, from its ledger and from the server."""
    told = part.crash
    return [
        (
            f"In L {told.site}'s process was killed (SIGKILL) when {told.drawn} labels were drawn: "
            f"{told.acknowledged} had a receipt, {told.stored_unseen} were stored by the server "
            f"but the receipt never arrived, {told.unsent} had not been sent."
        ),
        (
            f"The same command once more: {told.drawn_again} records drawn, {told.already} found "
            f"in the ledger, and the upload without a receipt went out again {_alike(told)}. In "
            f"the end the ledger holds {told.drawn_in_all} records, each drawn once, and the "
            f"server counted {counted_at_site(part)}."
        ),
    ]


def crash_of_scores(part: ScorePart) -> list[str]:
    """The site that died in the score campaign, and the round that waited for it."""
    told = part.crash
    return [
        (
            f"In S {told.site}'s process was killed in round {(told.round or 0) + 1}: the server "
            f"had stored its {told.stored_unseen} answers, but the receipt never arrived. The "
            f"others waited, and the campaign said why: “{part.waited}”"
        ),
        (
            f"The same command once more: {told.already} answers found in the ledger, the upload "
            f"without a receipt sent again {_alike(told)}, and {told.drawn_again} answers drawn in "
            f"the rounds that followed. In the end the ledger holds {told.drawn_in_all} records, "
            f"each drawn once, and the server counted {counted_at_site(part)}."
        ),
    ]


def counted_at_site(part: LabelPart | ScorePart) -> int:
    """How many records of the site that crashed the server counted."""
    return sum(site.records.counted for site in part.status.sites if site.site == part.crash.site)


def _alike(told: Crash) -> str:
    return "byte for byte as it was" if told.resent_alike else "CHANGED"
