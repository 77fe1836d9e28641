"""The oracle of score campaigns: balanced, nothing drawn twice, and the result of what counted.

It knows every answer that a site ever drew, from the site's own ledger, and compares it with what
is in the aggregator's database and in the signed threshold.
"""

import hashlib
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tacit.conformal import Answers, Calibration, NotCertifiable, Question, run
from tacit.mechanisms import BinaryRandomizedResponse, RecordCoins
from tacit.protocol import (
    AnswerUpload,
    CampaignState,
    Opened,
    RoundQuestion,
    RoundResult,
    ScoreCampaign,
    ScoreThreshold,
    Signed,
    order_by_key,
    replay,
)
from tacit_client import Owner
from tests.support.aggregator import until
from tests.support.exactly_once import rows
from tests.support.postgres import query
from tests.support.score_scene import ScoreSite


def stored(url: str, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
    """What a query, with ? for each parameter, finds in an aggregator's database of either kind."""
    if url.startswith("sqlite"):
        file = url.removeprefix("sqlite:///")
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True, timeout=10)) as connection:
            return connection.execute(statement, parameters).fetchall()
    return query(url, statement.replace("?", "%s"), *parameters)


# Answers that were accepted are counted, or dropped, with their round.
_TAKEN = """
    SELECT uploads.site, upload, body_hash, records,
        CASE WHEN uploads.state <> 'accepted' THEN uploads.state WHEN rounds.state = 'closed'
        THEN 'counted' ELSE rounds.state END,
        uploads.round, uploads.ones
    FROM uploads LEFT JOIN rounds
        ON rounds.campaign = uploads.campaign AND rounds.round = uploads.round
    WHERE uploads.campaign = ? ORDER BY number
"""


@dataclass(frozen=True)
class Taken:
    """An upload as the aggregator has it."""

    site: str
    upload: str
    body_hash: bytes
    records: int
    state: str
    round: int
    ones: int


@dataclass(frozen=True)
class ScoreOracle:
    """What must hold of one score campaign and its sites, whatever happened to them."""

    url: str
    campaign: Opened[ScoreCampaign]
    sites: Sequence[ScoreSite]

    def search_is_over(self) -> bool:
        """Whether the campaign has closed."""
        (state,) = self._stored("SELECT state FROM campaigns WHERE digest = ?")
        return state == ("closed",)

    def opened(self) -> int:
        """How many rounds were opened; all but the last of them have closed."""
        return len(self._stored("SELECT round FROM rounds WHERE campaign = ?"))

    def check(self, owner: Owner) -> Calibration | NotCertifiable:
        """Everything, once the search is over; the result that was signed."""
        until(self.search_is_over)
        self.check_questions()
        for site in self.sites:
            self.check_ledger(site)
            self.check_taken(site)
        self.check_balance(owner)
        self.check_rounds()
        return self.check_result(owner)

    def check_questions(self) -> None:
        """Each round has one question: what the search asks is what was signed, and sites saw."""
        found = self._stored(
            "SELECT round, question, signed, digest FROM rounds WHERE campaign = ?"
        )
        for number, question, signed, digest in found:
            asked = Question.from_json(question)
            assert asked.round == number
            expected = RoundQuestion(
                campaign=self.campaign.digest, round=number, threshold=asked.threshold
            )
            assert self._opened(signed) == Opened(expected, digest), "another question was signed"

    def check_ledger(self, site: ScoreSite) -> None:
        """Every record is in one upload at most, of its own round, and one question per round."""
        assert _elsewhere(site) == [], "a record answered in another round than its own"
        for number, digest, signed in rows(
            site.ledger, "SELECT round, digest, signed FROM questions"
        ):
            seen = self._opened(signed)
            assert (seen.document.round, seen.digest) == (number, digest)
        answers = site.answers()
        drawn = sorted((upload.upload, upload.round, upload.records) for upload in answers)
        assert drawn == sorted(_records_of_uploads(site)), "not every record drawn once"
        questions = site.questions()
        assert {(upload.round, upload.question) for upload in answers} <= set(questions.items())
        asked = self._stored("SELECT round, digest FROM rounds WHERE campaign = ?")
        assert set(questions.items()) <= set(asked), "a site has seen another question"
        for upload in answers:
            self._check_coins(site, upload)

    def check_taken(self, site: ScoreSite) -> None:
        """What the server took is, byte for byte, what the site drew, and was counted or late.

        What the site was told has become of it is what has.
        """
        fate = {one.upload: one.state for one in self.taken if one.site == site.invitation.site}
        promised = {"accepted": "counted", "counted": "counted", "late": "late"}
        for name, told in rows(site.ledger, "SELECT upload, state FROM uploads"):
            if told in promised:
                assert fate.get(name) == promised[told], "a receipt that does not hold"
        drawn = {upload.upload: upload for upload in site.answers()}
        bodies = site.drawn()
        for taken in self.taken:
            if taken.site == site.invitation.site:
                upload = drawn[taken.upload]
                assert taken.body_hash == hashlib.sha256(bodies[taken.upload]).digest()
                expected = (upload.round, upload.records, int(upload.answers().sum()))
                assert (taken.round, taken.records, taken.ones) == expected
                assert taken.state in {"counted", "late"}

    def check_arrived(self, site: ScoreSite) -> None:
        """All that a site drew has reached the server."""
        arrived = {taken.upload for taken in self.taken if taken.site == site.invitation.site}
        assert arrived == set(site.drawn())

    def check_balance(self, owner: Owner) -> None:
        """received = counted + late, of each site and in all; and so the status says."""
        status = owner.status(self.campaign.digest)
        assert status.state is CampaignState.CLOSED
        known = {site.invitation.site for site in self.sites}
        assert {taken.site for taken in self.taken} <= known, "answers of nobody's"
        for site in status.sites:
            of_site = [taken for taken in self.taken if taken.site == site.site]
            tally = site.records
            assert tally.counted == sum(one.records for one in of_site if one.state == "counted")
            assert tally.late == sum(one.records for one in of_site if one.state == "late")
            assert tally.received == tally.counted + tally.late <= site.enrolled
        total = status.records
        assert (total.pending, total.dropped) == (0, 0)
        assert total.received == total.counted + total.late
        for number in ("received", "counted", "late"):
            of_sites = sum(getattr(site.records, number) for site in status.sites)
            assert getattr(total, number) == of_sites, f"{number} in all is not that of the sites"
        assert total.received == sum(taken.records for taken in self.taken)

    def check_rounds(self) -> None:
        """One row per round, one after the other, each with the sum of its counted bodies."""
        found = self._stored(
            "SELECT round, state, ones, answers, sites FROM rounds WHERE campaign = ?"
            " ORDER BY round"
        )
        counted = [(taken.site, self.bodies[taken.upload]) for taken in self.counted]
        expected = []
        for number in range(len(found)):
            of_round = [(site, upload) for site, upload in counted if upload.round == number]
            ones = sum(int(upload.answers().sum()) for _, upload in of_round)
            answers = sum(upload.records for _, upload in of_round)
            expected.append((number, "closed", ones, answers, len({site for site, _ in of_round})))
        assert found == expected

    def check_result(self, owner: Owner) -> Calibration | NotCertifiable:
        """The signed threshold is the library's search on exactly the answers that counted."""
        document = owner.threshold(self.campaign.digest).document
        assert isinstance(document, ScoreThreshold)
        terms = self.campaign.document
        results = self._results()
        assert document.rounds == results
        assert document.asked_n == self._asked_n(), "a search for other records than were asked"
        assert document.sites == len({taken.site for taken in self.counted})
        assert document.fields_of(replay(terms, document.asked_n, results)) == document.result
        thresholds = []

        def ask(question: Question) -> Answers:
            thresholds.append(question.threshold)
            return self.answers_of(question.round)

        assert run(terms.state_machine(document.asked_n), ask) == document.outcome()
        assert thresholds[: len(results)] == [result.threshold for result in results]
        return document.outcome()

    def answers_of(self, number: int) -> Answers:
        """The answers to a round that counted, from the bodies in the sites' ledgers."""
        uploads = [self.bodies[taken.upload] for taken in self.counted]
        bits = [upload.answers() for upload in uploads if upload.round == number]
        return Answers.of(np.concatenate(bits)) if bits else Answers(0, 0)

    @cached_property
    def taken(self) -> list[Taken]:
        """Every upload that the aggregator has."""
        return [
            Taken(site, upload, bytes(body_hash), *others)
            for site, upload, body_hash, *others in self._stored(_TAKEN)
        ]

    @property
    def counted(self) -> list[Taken]:
        """Those that counted."""
        return [taken for taken in self.taken if taken.state == "counted"]

    @cached_property
    def bodies(self) -> dict[str, AnswerUpload]:
        """Every upload that a site ever drew."""
        return {upload.upload: upload for site in self.sites for upload in site.answers()}

    def _results(self) -> tuple[RoundResult, ...]:
        found = self._stored(
            "SELECT question, ones, answers, sites FROM rounds WHERE campaign = ? ORDER BY round"
        )
        return tuple(
            RoundResult(
                threshold=Question.from_json(question).threshold,
                ones=ones,
                answers=answers,
                sites=sites,
            )
            for question, ones, answers, sites in found
        )

    def _check_coins(self, site: ScoreSite, upload: AnswerUpload) -> None:
        """The bits are those of its records' own coins: drawn again, they would be the same.

        In an upload the records are in the order that the site's key gives them.
        """
        scores = site.score_by_hash
        found = rows(
            site.ledger,
            "SELECT record FROM records JOIN uploads ON uploads.number = records.upload"
            " WHERE uploads.upload = ?",
            upload.upload,
        )
        (question,) = self._stored(
            f"SELECT question FROM rounds WHERE campaign = ? AND round = {upload.round}"  # noqa: S608 -- a number
        )
        asked = Question.from_json(question[0]).threshold
        table = np.frombuffer(b"".join(one for (one,) in found), dtype=np.uint8)
        table = table.reshape(len(found), -1)
        table = table[order_by_key(site.campaign_key, table)]
        coins = RecordCoins(site.campaign_key, table, purpose="answers")
        mechanism = BinaryRandomizedResponse.from_channel(self.campaign.document.channel)
        at_most = np.array([scores[bytes(one)] <= asked for one in table])
        bits = mechanism.privatize(at_most, coins)
        assert np.array_equal(bits, upload.answers()), "bits of other coins"

    def _asked_n(self) -> int:
        """The records of those who had enrolled when the first question was asked."""
        ((enrolled, noted),) = self._stored(
            "SELECT sum(sites.enrolled), max(asked_n) FROM sites"
            " JOIN campaigns ON campaigns.digest = sites.campaign JOIN rounds"
            " ON rounds.campaign = sites.campaign AND rounds.round = 0"
            " WHERE sites.campaign = ? AND (left_at IS NULL OR left_at >= opened_at)"
        )
        assert enrolled == noted
        return int(noted)

    def _opened(self, signed: str) -> Opened[RoundQuestion]:
        """A question that the campaign's key has signed."""
        key = self.sites[0].invitation.key
        return Signed.model_validate_json(signed).open(RoundQuestion, key=key)

    def _stored(self, statement: str) -> list[tuple[Any, ...]]:
        return stored(self.url, statement, self.campaign.digest)


def _elsewhere(site: ScoreSite) -> list[tuple[Any, ...]]:
    """Records that are in an upload of another round than they were dealt to, or dealt to none."""
    return rows(
        site.ledger,
        "SELECT dealt.round, uploads.round FROM records"
        " JOIN uploads ON uploads.number = records.upload"
        " LEFT JOIN dealt ON dealt.record = records.record"
        " WHERE dealt.round IS NOT uploads.round",
    )


def _records_of_uploads(site: ScoreSite) -> list[tuple[Any, ...]]:
    """The round of each upload, and how many distinct records of the ledger are in it."""
    return rows(
        site.ledger,
        "SELECT uploads.upload, uploads.round, count(DISTINCT record) FROM records"
        " JOIN uploads ON uploads.number = records.upload GROUP BY uploads.upload",
    )
