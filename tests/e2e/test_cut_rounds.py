"""A round that closes while a site is sending has a random share of that site, not its first rows.

The site's file is sorted: 55 % of its scores are 0.1, and then come those that are 0.9. The one
round asks whether a score is at most 0.5, over a line so slow that it closes long before the last
upload has come: each of 50 takes 60 ms, and the round lasts two seconds.

False alarms. Of m answers of a random share 55 % are "yes", and 0.5 is proved to cover 1-α = 0.8 if
Z ≥ 0.8 + Δ. By Hoeffding, which holds without replacement too, that has the probability
exp(-2m((0.25 + Δ)/c)²) at most, with c < 1.04 and, for δ = 0.001, Δ > 1.94/√m: below 1e-6 for
every m, since the exponent is at least 2(0.25·√m + 1.94)²/1.09, and Z ≤ 1.02 < 0.8 + Δ for m < 75.
"""

from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from tacit.conformal import Calibration, NotCertifiable
from tacit_client.rounds import drawing
from tests.support.scene import service
from tests.support.score_oracle import ScoreOracle
from tests.support.score_scene import create_score_campaign, score_sites, slow_lines

N, PER_UPLOAD = 1000, 20
SCORES = np.repeat([0.1, 0.9], [N * 55 // 100, N * 45 // 100])
ALPHA, DELTA = 0.2, 0.001


def searched(folder: Path) -> Calibration | NotCertifiable:
    """What a campaign finds whose only round closes in the middle of the only site's answers."""
    with service(folder / "aggregator") as stage:
        stage.start()
        with stage.owner() as owner, slow_lines(stage, {"slow": 0.06}) as relays:
            campaign = create_score_campaign(
                *(owner, N),
                rounds=1,
                round_for=timedelta(seconds=2),
                epsilon=4.0,
                alpha=ALPHA,
                delta=DELTA,
            )
            (site,) = score_sites(
                *(stage.aggregator, campaign, folder, {"slow": SCORES}),
                per_upload=PER_UPLOAD,
                relays=relays,
            )
            site.answer_here()
            outcome = ScoreOracle(stage.database_url, campaign, [site]).check(owner)
            records = owner.status(campaign.digest).records
    assert 0 < records.counted < N
    assert records.late == N - records.counted
    return outcome


def check_coverage(found: Calibration | NotCertifiable) -> None:
    if isinstance(found, Calibration):
        assert np.mean(found.threshold >= SCORES) >= 1 - ALPHA


def test_what_came_of_a_sorted_file_before_its_round_closed_certifies_nothing_wrong(
    tmp_path: Path,
) -> None:
    check_coverage(searched(tmp_path))


@pytest.mark.long
def test_a_file_that_answers_from_its_beginning_would_certify_what_covers_half(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ScoreOracle, "_check_coins", lambda *_: None)  # it knows the order
    monkeypatch.setattr(drawing, "order_by_key", lambda _, records: np.arange(len(records)))
    found = searched(tmp_path)
    with pytest.raises(AssertionError):
        check_coverage(found)
