"""A client that is killed goes on with the same reports; nothing is drawn twice."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tacit_client import Contributor, Owner, ReportState
from tacit_client.testing import RunningAggregator
from tests.integration.client.scenes import closed, create
from tests.support.client_world import ALLOWING, given
from tests.support.nimble import NimbleAggregator

RECORDS = 50

CONTRIBUTE = """
import os, signal, sys
from tacit_client import Contributor, Network
from tests.support.client_world import ALLOWING, given

invitation, home, deadly = sys.argv[1], sys.argv[2], int(sys.argv[3])
network = Network(records_per_upload=10)

def on_progress(done, total, what):
    if done == deadly:
        os.kill(os.getpid(), signal.SIGKILL)

with Contributor.join(invitation, home, ALLOWING, network=network) as site:
    site.contribute(**given(50).arguments(), on_progress=on_progress)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
@pytest.mark.parametrize("again", ["contribute", "resend"])
@pytest.mark.parametrize("sent", [0, 20])
def test_a_killed_client_goes_on_with_the_same_reports(
    aggregator: RunningAggregator, owner: Owner, tmp_path: Path, sent: int, again: str
) -> None:
    campaign = create(owner)
    invitation = aggregator.invitation(campaign.digest, "a site")
    command = [sys.executable, "-c", CONTRIBUTE, invitation.to_text(), str(tmp_path / "home")]
    killed = subprocess.run([*command, str(sent)], check=False, timeout=120)
    assert killed.returncode == -signal.SIGKILL

    with Contributor.open(None, tmp_path / "home", ALLOWING) as site:
        drawn = {e.upload: site.outbox.body(e.upload) for e in site.outbox.entries()}
        counts = site.outbox.counts()
        assert (counts[ReportState.DRAWN], counts[ReportState.ACCEPTED]) == (RECORDS - sent, sent)
        if again == "contribute":
            done = site.contribute(**given(RECORDS).arguments())
            assert (done.drawn, done.already) == (0, RECORDS)
        else:
            done = site.resend()
        assert done.accepted == RECORDS - sent
        assert {e.upload: site.outbox.body(e.upload) for e in site.outbox.entries()} == drawn
    owner.close(campaign.digest)
    assert closed(owner, campaign.digest).records.counted == RECORDS


def test_an_aggregator_that_was_killed_has_what_it_acknowledged(tmp_path: Path) -> None:
    with NimbleAggregator(tmp_path) as aggregator, aggregator.owner() as owner:
        campaign = create(owner)
        invitation = aggregator.invitation(campaign.digest, "a site")
        with Contributor.join(invitation, tmp_path / "home", ALLOWING) as site:
            site.contribute(**given(30).arguments())
            aggregator.kill()
            assert aggregator.pid is None
            aggregator.start()
            site.contribute(**given(40).arguments())
        owner.close(campaign.digest)
        assert closed(owner, campaign.digest).records.counted == 40
