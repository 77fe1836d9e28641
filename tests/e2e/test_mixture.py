"""Every round is a random share of every site: so the certified threshold covers their mixture.

Two sites that have nothing in common: the scores of the fast one are uniform on (0, ½), those of
the slow one on (½, 1). Their mixture is uniform on (0, 1): its coverage at t is t.

False alarms. The records are drawn once, from a seed, so only dealing and coins are random. G is
the share of the given records with scores of at most 1-α. A round's part of each site is off by
less than one record, so that of m records in a round the expected share is at most G + 2/m, and
`given` sees that this is no more than 1-α. The threshold is below 1-α only if a round has moved it
to a t below 1-α. That t depends on earlier rounds does not matter: with coins as likely there were
no more ones than at 1-α itself, which depends on nothing; and there the records are samples without
replacement, to which Hoeffding's inequality applies. Z ≥ 1-α+Δ was off by Δ or more: that has the
probability exp(-2mΔ²/c²) = δ/2T at most in each of T rounds, as Δ = c·sqrt(log(2T/δ)/2m), and so
δ/2 = 5e-7 in all. That every round has its share is certain.

First come, first served: of the fast site's 2500 records in round 0 every score is at most ½, and
that is not proved with exp(-2·2500·((α-Δ)/c)²) < 1e-30 at most, where Δ < 0.06 and c < 1.04.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tacit.conformal import Calibration, Guarantee
from tacit_client.rounds import dealing
from tests.support.aggregator import until
from tests.support.scene import service
from tests.support.score_oracle import ScoreOracle
from tests.support.score_scene import (
    answering_here,
    create_score_campaign,
    score_sites,
    slow_lines,
)

EACH = 10_001
ROUNDS = 8
ALPHA = 0.2
DELTA = 1e-6
"""δ of the campaign."""
FAST, SLOW = "fast", "slow"


def given() -> dict[str, NDArray[np.float64]]:
    """The scores of both sites: in any round a share of 1-α, or less, is expected up to 1-α."""
    generator = np.random.default_rng(7)
    scores = {FAST: generator.uniform(0, 0.5, EACH), SLOW: generator.uniform(0.5, 1, EACH)}
    answers = 2 * (EACH // ROUNDS)
    covered = np.mean(np.concatenate(list(scores.values())) <= 1 - ALPHA)
    assert covered + 2 / answers <= 1 - ALPHA
    return scores


def searched(folder: Path) -> tuple[Calibration, ScoreOracle]:
    """The threshold of a campaign of both sites, through the real services."""
    with service(folder / "aggregator") as stage:
        stage.start()
        with stage.owner() as owner, slow_lines(stage, {SLOW: 0.03}) as relays:
            campaign = create_score_campaign(
                *(owner, 2 * EACH), rounds=ROUNDS, epsilon=4.0, alpha=ALPHA, delta=DELTA
            )
            sites = score_sites(
                stage.aggregator, campaign, folder, given(), per_upload=1000, relays=relays
            )
            with answering_here(sites[:1]):
                until(lambda: owner.status(campaign.digest).enrolled == EACH)
                with answering_here(sites[1:]):
                    pass
            oracle = ScoreOracle(stage.database_url, campaign, sites)
            outcome = oracle.check(owner)
    assert isinstance(outcome, Calibration)
    assert outcome.guarantee is Guarantee.CERTIFIED
    return outcome, oracle


def check_coverage(found: Calibration) -> None:
    """The mixture's own law is known: no sample is needed to see what the threshold covers."""
    assert found.threshold >= 1 - ALPHA


def check_shares(oracle: ScoreOracle) -> None:
    """Every round has its share of every site, up to one record."""
    answers: Counter[tuple[str, int]] = Counter()
    for taken in oracle.counted:
        answers[taken.site, taken.round] += taken.records
    for site in (FAST, SLOW):
        for number in range(ROUNDS):
            assert abs(answers[site, number] - EACH / ROUNDS) < 1


def test_the_certified_threshold_covers_the_mixture_of_two_sites_that_have_nothing_in_common(
    tmp_path: Path,
) -> None:
    found, oracle = searched(tmp_path)
    check_coverage(found)
    check_shares(oracle)


def test_first_come_first_served_rounds_would_not_cover_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def early_or_late(
        _: bytes, record_keys: NDArray[np.uint8], shares: Sequence[int]
    ) -> NDArray[np.int64]:
        """The site that comes first answers the first half of the rounds, the other the second."""
        half = len(shares) // 2
        first = half * len(dealt)
        dealt.append(len(record_keys))
        return first + np.arange(len(record_keys)) % half

    dealt: list[int] = []
    monkeypatch.setattr(dealing, "deal_by_key", early_or_late)
    found, oracle = searched(tmp_path)
    assert dealt == [EACH, EACH]
    with pytest.raises(AssertionError):
        check_coverage(found)
    with pytest.raises(AssertionError):
        check_shares(oracle)
    # Whoever answers first decides: all that the fast site knows lies below a half.
    assert found.threshold <= 0.5
