"""Score campaigns from end to end: real sites that are slow, crash, leave and come back."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from tacit.conformal import Answers
from tacit.protocol import (
    AnswerUpload,
    CampaignState,
    Receipt,
    ScoreThreshold,
    replay,
)
from tacit_client import Contributor, Membership, Policy, ReportState
from tacit_client.api import Api
from tacit_client.errors import (
    AlreadyLeft,
    CampaignEnded,
    NoThreshold,
    Unreachable,
)
from tests.integration.client.score_scenes import (
    HALF,
    HELD_BACK,
    SMALL_UPLOADS,
    Stage,
    contributed,
    is_asked,
    staged,
)
from tests.support.aggregator import until
from tests.support.score_world import names, scores


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with staged(tmp_path_factory.mktemp("aggregator")) as made:
        yield made


def broken(*_: object) -> None:
    raise Unreachable


@pytest.mark.parametrize("delta", [None, 0.4])
def test_two_sites_find_what_the_librarys_search_finds_in_their_answers(
    stage: Stage, tmp_path: Path, delta: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = stage.create(delta=delta, epsilon=4.0, planned_n=4000, alpha=0.2)
    sent: dict[str, AnswerUpload] = {}
    send = Api.upload

    def noted(api: Api, digest: str, upload: str, body: bytes) -> Receipt:
        sent[upload] = AnswerUpload.model_validate_json(body)
        return send(api, digest, upload, body)

    monkeypatch.setattr(Api, "upload", noted)

    def run(name: str, seed: int, patience: float | bool) -> None:
        with stage.join(campaign, tmp_path / name, name) as site:
            done = None
            while site.membership is Membership.JOINED:
                done = site.contribute(
                    ids=names(2000, name), scores=scores(2000, seed), wait=patience
                )
            assert done is not None
            assert (done.drawn + done.already, done.missed, done.late) == (2000, 0, 0)
            assert site.outbox.counts()[ReportState.COUNTED] == 2000

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(run, ("slow", "fast"), (1, 2), (0.1, True)))
    found = stage.owner.threshold(campaign.digest, wait=30)
    document = found.document
    assert isinstance(document, ScoreThreshold)
    counted = [Answers(0, 0)] * 4
    for upload in sent.values():
        before, now = counted[upload.round], Answers.of(upload.answers())
        counted[upload.round] = Answers(before.ones + now.ones, before.count + now.count)
    assert [Answers(one.ones, one.answers) for one in document.rounds] == counted
    assert document.asked_n == 4000
    assert found.outcome == replay(campaign.document, 4000, document.rounds)
    tally = stage.owner.status(campaign.digest).records
    assert (tally.received, tally.counted, tally.late) == (4000, 4000, 0)


def test_a_site_answers_what_is_asked_now_and_goes_on_a_day_later(
    stage: Stage, tmp_path: Path
) -> None:
    campaign = stage.create()
    north, south = stage.two(campaign, tmp_path)
    with north, south:
        early = contributed(north, "n", wait=False)
        assert (early.drawn, early.unasked) == (0, HALF)
        drawn = {"n": 0, "s": 0}

        def called() -> bool:
            for site, prefix in ((south, "s"), (north, "n")):
                if site.membership is Membership.JOINED:
                    done = contributed(site, prefix, wait=False)
                    drawn[prefix] += done.drawn
                    assert done.records == done.drawn + done.already + done.unasked
            return {north.membership, south.membership} == {Membership.ENDED}

        until(called)
        assert drawn == {"n": HALF, "s": HALF}
        for site in (north, south):
            assert site.outbox.counts()[ReportState.COUNTED] == HALF
        with pytest.raises(CampaignEnded):
            contributed(south, "s")


KILLED = """
import os, signal, sys
from tacit_client import Contributor, Policy
from tests.integration.client.score_scenes import SMALL_UPLOADS
from tests.support.score_world import names, scores

invitation, home, deadly = sys.argv[1:]

def on_progress(done, total, what):
    if deadly in f"{done} {what}":
        os.kill(os.getpid(), signal.SIGKILL)

with Contributor.join(invitation, home, Policy(), network=SMALL_UPLOADS) as site:
    site.contribute(ids=names(120), scores=scores(120), on_progress=on_progress)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
@pytest.mark.parametrize("deadly", ["0 records sent", "20 records sent", "1 rounds: Round 2"])
def test_a_killed_site_goes_on_with_the_same_answers(
    stage: Stage, tmp_path: Path, deadly: str
) -> None:
    campaign = stage.create()
    invitation = stage.invitation(campaign).to_text()
    command = [sys.executable, "-c", KILLED, invitation, str(tmp_path / "home"), deadly]
    assert subprocess.run(command, check=False, timeout=120).returncode == -signal.SIGKILL
    with Contributor.open(None, tmp_path / "home", Policy(), network=SMALL_UPLOADS) as site:
        before = {e.upload: site.outbox.body(e.upload) for e in site.outbox.entries()}
        done = site.contribute(ids=names(120), scores=scores(120)[::-1])
        assert (done.drawn + done.already, done.missed, done.late) == (120, 0, 0)
        entries = {e.upload for e in site.outbox.entries()}
        assert before.keys() <= entries
        records = site.ledger.read("SELECT count(*), count(DISTINCT record) FROM records")
        assert records == [(120, 120)]
        assert site.outbox.counts()[ReportState.COUNTED] == 120
    tally = stage.owner.status(campaign.digest).records
    assert (tally.received, tally.counted) == (120, 120)


def test_a_site_that_comes_back_after_its_rounds_closed_has_missed_them(
    stage: Stage, tmp_path: Path
) -> None:
    campaign = stage.create(round_for=timedelta(seconds=1))
    north, south = stage.two(campaign, tmp_path)
    with north, south:
        contributed(north, "n", wait=False)
        contributed(south, "s")  # a round without any answer is extended
        done = contributed(north, "n")
        assert (done.drawn, done.missed, done.late, done.accepted) == (0, HALF, 0, 0)
        assert north.membership is Membership.ENDED
    tally = stage.owner.status(campaign.digest).records
    assert (tally.received, tally.counted) == (HALF, HALF)


def test_answers_that_were_drawn_in_time_and_sent_too_late_are_late(
    stage: Stage,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    campaign = stage.create(planned_n=HELD_BACK, rounds=2)

    north, south = stage.two(campaign, tmp_path)
    with north, south:
        contributed(north, "n", wait=False)
        contributed(south, "s", wait=False)
        stage.ask_first(campaign)
        with monkeypatch.context() as patch:
            patch.setattr(Api, "upload", broken)
            with pytest.raises(Unreachable):
                contributed(north, "n", wait=False)
        assert contributed(south, "s", wait=False).accepted == HALF // 2
        stage.pass_deadline(campaign)
        until(lambda: is_asked(south, 1))
        late = contributed(north, "n", wait=False)
        assert (late.late, late.already) == (HALF // 2, HALF // 2)
        assert late.accepted == HALF // 2
        assert contributed(south, "s").accepted == HALF // 2
        until(lambda: stage.owner.status(campaign.digest).state is CampaignState.CLOSED)
        north.refresh()
        counts = north.outbox.counts()
        assert (counts[ReportState.LATE], counts[ReportState.COUNTED]) == (HALF // 2, HALF // 2)
    tally = stage.owner.status(campaign.digest).records
    assert (tally.received, tally.counted, tally.late) == (120, 90, 30)


def test_a_site_that_leaves_is_not_waited_for(stage: Stage, tmp_path: Path) -> None:
    campaign = stage.create(planned_n=HELD_BACK)
    north, south = stage.two(campaign, tmp_path)
    with north, south:
        contributed(north, "n", wait=False)
        contributed(south, "s", wait=False)
        stage.ask_first(campaign)
        assert contributed(north, "n", wait=False).accepted == HALF // 4
        north.leave()
        assert north.membership is Membership.LEFT
        contributed(south, "s")
        assert south.outbox.counts()[ReportState.COUNTED] == HALF
        with pytest.raises(AlreadyLeft):
            contributed(north, "n")
        assert north.ledger.read("SELECT count(*) FROM dealt") == [(HALF,)]
    assert stage.owner.status(campaign.digest).records.counted == HALF + HALF // 4


def test_a_campaign_that_was_abandoned_or_closed_by_hand_ends_for_the_site(
    stage: Stage, tmp_path: Path
) -> None:
    for name, end in (("abandoned", stage.owner.abandon), ("closed", stage.owner.close)):
        campaign = stage.create(delta=0.4, epsilon=4.0, planned_n=4000, alpha=0.3)
        with (
            stage.join(campaign, tmp_path / name, "a") as site,
            stage.join(campaign, tmp_path / (name + "-other"), "b") as other,
        ):
            for each, prefix in ((other, "b"), (site, "a")):
                each.contribute(ids=names(2000, prefix), scores=scores(2000), wait=False)
            until(partial(is_asked, site, 0))
            site.contribute(ids=names(2000, "a"), scores=scores(2000), wait=False)
            end(campaign.digest)
            done = site.contribute(ids=names(2000, "a"), scores=scores(2000))
            assert (done.already, done.unasked) == (500, 1500)
            assert site.membership is Membership.ENDED
            state = ReportState.COUNTED if name == "closed" else ReportState.DROPPED
            assert site.outbox.counts()[state] == 500
        with pytest.raises(NoThreshold):
            stage.owner.threshold(campaign.digest)


def test_what_waits_can_be_sent_again_without_the_records(
    stage: Stage,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    campaign = stage.create(planned_n=HALF, rounds=2)

    with stage.join(campaign, tmp_path / "home") as site:
        with monkeypatch.context() as patch:
            patch.setattr(Api, "upload", broken)
            with pytest.raises(Unreachable):
                until(lambda: contributed(site, "n", wait=False).drawn)
        assert site.resend().accepted == HALF // 2
        assert site.resend().uploads == 0
        until(lambda: is_asked(site, 1))
        assert contributed(site, "n").accepted == HALF // 2
    assert stage.owner.status(campaign.digest).records.counted == HALF
