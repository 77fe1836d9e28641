"""The notice: what a campaign takes from a site, to be read before anything is sent."""

from tacit.protocol import Campaign, Features


def notice(campaign: Campaign, url: str) -> str:
    """What leaves the site and what ε protects, in sentences."""
    evidence = "features"
    if not isinstance(campaign.evidence, Features):
        evidence = "probabilities that the model gives each class"
    epsilon = campaign.channel.epsilon
    beta = float(campaign.channel.beta)
    return (
        f"For each record the {evidence} leave this site as they are, to {url}, where they can be"
        f" read; with them goes the record's label, randomized. With probability {beta:.3g} a label"
        f" is replaced by one of the {campaign.k} classes at random: ε = {epsilon:g} for each"
        " record. Only the label is protected, and several records of one person add up. Record ids"
        " and persons never leave."
    )
