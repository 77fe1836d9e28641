"""Score campaigns over HTTP, as an owner and its sites run them, without the SDK."""

import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import numpy as np
from numpy.typing import ArrayLike
from sqlalchemy import Update, update

from tacit.conformal import Answers
from tacit.conformal.scores import run
from tacit.protocol import (
    AnswerUpload,
    CampaignStatus,
    Column,
    CurrentRound,
    Receipt,
    RoundQuestion,
    RoundStatus,
    ScoreCampaign,
    ScoreThreshold,
    SiteStatus,
    Threshold,
)
from tacit.protocol.signatures import Signed
from tacit.scores import HPS
from tacit_aggregator.database.engine import Database
from tacit_aggregator.database.tables import campaigns, rounds
from tests.support.aggregator import Aggregator
from tests.support.label_campaigns import JSON, CampaignScene, created


def score_document(
    *,
    owner: str = "owner",
    k: int = 4,
    planned_n: int = 40,
    round_count: int = 4,
    opens_in: float = -60,
    enrol_in: float = 1800,
    closes_in: float = 3600,
    now: float | None = None,
    **more: Any,
) -> ScoreCampaign:
    """A campaign that asks as soon as all planned records are enrolled, unless told otherwise."""
    at = datetime.fromtimestamp(int(time.time() if now is None else now), UTC)
    chosen = {"epsilon": 2.0, "alpha": 0.2, "round_seconds": 600, "least": 1, **more}
    return ScoreCampaign.of(
        title="Digits",
        owner=owner,
        classes=[f"class {number}" for number in range(k)],
        score=HPS(),
        planned_n=planned_n,
        opens=at + timedelta(seconds=opens_in),
        enrol_until=at + timedelta(seconds=enrol_in),
        closes=at + timedelta(seconds=closes_in),
        shares=(1,) * round_count,
        **chosen,
    )


@dataclass
class ScoreSite:
    """A site with its token."""

    name: str
    digest: str
    http: httpx.Client

    @property
    def address(self) -> str:
        """Where its campaign is."""
        return f"/v1/campaigns/{self.digest}"

    def enrol(self, records: int) -> httpx.Response:
        """Say how many records there are."""
        return self.http.put(f"{self.address}/enrolment", json={"records": records})

    def leave(self) -> None:
        """Take no further part."""
        self.http.delete(f"{self.address}/enrolment").raise_for_status()

    def round(self, after: int = -1, wait: float = 0.0) -> CurrentRound:
        """What is asked now."""
        query = {"after": after, "wait": wait}
        answer = self.http.get(f"{self.address}/round", params=query)
        assert answer.status_code == 200, answer.text
        return CurrentRound.model_validate_json(answer.content)

    def asked(self, number: int = 0) -> RoundQuestion:
        """The question of a round, once that is open."""
        current = self.round(number - 1, 20.0)
        assert (current.round, current.question is not None) == (number, True), current
        assert current.question is not None
        return question_of(current.question)

    def answers(
        self, question: RoundQuestion, bits: ArrayLike, upload: str | None = None
    ) -> AnswerUpload:
        """Bits as an upload."""
        return AnswerUpload(
            campaign=self.digest,
            upload=upload or secrets.token_hex(16),
            round=question.round,
            question=question.digest,
            bits=Column.of(np.asarray(bits, dtype=np.uint8)),
        )

    def put(self, upload: AnswerUpload) -> httpx.Response:
        """Send answers."""
        address = f"{self.address}/uploads/{upload.upload}"
        return self.http.put(address, content=upload.to_bytes(), headers=JSON)

    def answer(self, question: RoundQuestion, bits: Sequence[int]) -> Receipt:
        """Send answers that must be accepted."""
        answer = self.put(self.answers(question, bits))
        assert answer.status_code == 200, answer.text
        return Receipt.model_validate_json(answer.content)

    def put_done(self, number: int, answers: int) -> httpx.Response:
        """Mark a round done."""
        return self.http.put(f"{self.address}/rounds/{number}/done", json={"answers": answers})

    def done(self, number: int, answers: int) -> RoundStatus:
        """Mark a round done, which must be taken."""
        answer = self.put_done(number, answers)
        assert answer.status_code == 200, answer.text
        return RoundStatus.model_validate_json(answer.content)

    def status(self) -> CampaignStatus:
        """Where the campaign stands, as this site sees it."""
        answer = self.http.get(f"{self.address}/status").raise_for_status()
        return CampaignStatus.model_validate_json(answer.content)


@dataclass
class ScoreScene(CampaignScene[ScoreCampaign]):
    """A score campaign on a running aggregator."""

    sites: dict[str, ScoreSite] = field(default_factory=dict)

    def site(self, name: str = "site", enrol: int | None = None) -> ScoreSite:
        """A new site; with a number, enrolled."""
        site = self.sites[name] = ScoreSite(name, self.digest, self.invited(name))
        if enrol is not None:
            answer = site.enrol(enrol).raise_for_status()
            assert SiteStatus.model_validate_json(answer.content).enrolled == enrol
        return site

    def assert_balanced(self) -> None:
        """Every answer that was received is counted, late, pending or dropped."""
        tally = self.status().records
        assert tally.received == tally.counted + tally.late + tally.pending + tally.dropped

    def pass_date(self) -> None:
        """Have the campaign's last moment be over, without waiting for it."""
        pass_date(self.aggregator.settings.database_url, self.digest)

    def pass_opening(self) -> None:
        """Have the campaign be open."""
        self._pass(opens_at=1)

    def pass_enrolment(self) -> None:
        """Have the time be over in which sites enrol."""
        self._pass(enrol_until=1)

    def pass_deadline(self) -> None:
        """Have the time of the open round be over."""
        pass_deadline(self.aggregator.settings.database_url, self.digest)

    def _pass(self, **moments: int) -> None:
        _pass(self.aggregator.settings.database_url, self.digest, **moments)

    def found(self, which: str = "nominal") -> ScoreThreshold:
        """The threshold, which must be there and be what its rounds lead to."""
        answer = self.threshold(which)
        assert answer.status_code == 200, answer.text
        signed = Signed.model_validate_json(answer.content)
        threshold = signed.open(Threshold, key=self.aggregator.key)
        assert isinstance(threshold.document, ScoreThreshold)
        threshold.document.check_replay(self.document)
        return threshold.document


def pass_date(url: str, campaign: str) -> None:
    """Have a campaign's last moment be over, in an aggregator's database."""
    _pass(url, campaign, closes_at=1)


def _pass(url: str, campaign: str, **moments: int) -> None:
    _write(url, update(campaigns).where(campaigns.c.digest == campaign).values(**moments))


def pass_deadline(url: str, campaign: str) -> None:
    """Have the time of a campaign's open round be over, in an aggregator's database."""
    is_open = (rounds.c.campaign == campaign) & (rounds.c.state == "open")
    _write(url, update(rounds).where(is_open).values(ends_at=1))


def _write(url: str, statement: Update) -> None:
    database = Database(url)
    with database.transaction("test") as connection:
        assert connection.execute(statement).rowcount == 1
    database.close()


def question_of(signed: Signed) -> RoundQuestion:
    """A question, whoever has signed it."""
    return RoundQuestion.from_bytes(signed.payload.encode())


@contextmanager
def score_scene(
    aggregator: Aggregator, document: ScoreCampaign | None = None, **terms: Any
) -> Iterator[ScoreScene]:
    """A score campaign that its owner has created; with these terms, if there is no document."""
    document = document or score_document(**terms)
    with created(aggregator, document) as (owner, stack):
        yield ScoreScene(aggregator, document, owner, stack)


CERTIFIABLE: dict[str, Any] = {"delta": 0.1, "epsilon": 6.0, "round_count": 2, "planned_n": 120}
"""Terms of a campaign that can be certified with few records."""


def bits(ones: int, count: int) -> list[int]:
    """Answers of which so many are ones."""
    return [1] * ones + [0] * (count - ones)


def answer_round(sites: Sequence[ScoreSite], number: int, ones: int, count: int) -> None:
    """Every site answers with so many ones of so many, and is done."""
    for site in sites:
        site.answer(site.asked(number), bits(ones, count))
    for site in sites:
        site.done(number, count)


def library(
    document: ScoreCampaign, asked_n: int, answers: Sequence[tuple[int, int]]
) -> dict[str, Any]:
    """What the core's state machine makes of these (ones, answers), as a threshold holds it."""
    given = iter(answers)
    search = document.state_machine(asked_n)
    return Threshold.fields_of(run(search, lambda _: Answers(*next(given))))
