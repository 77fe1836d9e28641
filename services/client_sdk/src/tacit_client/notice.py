"""The notice: what a campaign takes from a site, to be read before anything is sent."""

from tacit.protocol import Campaign, Features, LabelCampaign, ScoreCampaign


def notice(campaign: Campaign, url: str) -> str:
    """What leaves the site and what ε protects, in sentences."""
    if isinstance(campaign, ScoreCampaign):
        return _of_scores(campaign, url)
    if isinstance(campaign, LabelCampaign):
        return _of_labels(campaign, url)
    raise TypeError


def _of_labels(campaign: LabelCampaign, url: str) -> str:
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


def _of_scores(campaign: ScoreCampaign, url: str) -> str:
    flip = float(campaign.channel.flip)
    return (
        f"For each record one randomized bit leaves this site, to {url}, and nothing else of it: in"
        f" one of {campaign.round_count} rounds, whether its score is at most the number that is"
        f" asked about. With probability {flip:.3g} the bit is flipped: ε ="
        f" {campaign.channel.epsilon:g} for each record, and it protects the whole record. Several"
        " records of one person add up. How many records this site has is told too; labels,"
        f" features, probabilities, scores, record ids and persons never leave.{_of_time(campaign)}"
    )


def _of_time(campaign: ScoreCampaign) -> str:
    if campaign.model is None:
        return ""
    return (
        " If the campaign's model scores features here, how long that takes can be seen, may depend"
        " on the records, and is not protected by ε. If that is too much, give probabilities or"
        " scores instead."
    )
