"""The vectors hold: for a reader that knows nothing of Tacit, and for Tacit in both directions."""

import json
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from rfc8785 import dumps

from tacit.errors import (
    InvalidDocument,
    TacitError,
    UpgradeRequired,
    WrongDigest,
    WrongKey,
    WrongSignature,
)
from tacit.mechanisms import (
    BinaryChannel,
    BinaryRandomizedResponse,
    RandomizedResponse,
    RecordCoins,
    UniformChannel,
)
from tacit.protocol import (
    AnswerUpload,
    Campaign,
    Column,
    Invitation,
    LabelCampaign,
    Reports,
    RoundQuestion,
    ScoreCampaign,
    ScoreThreshold,
    Signed,
    SigningKey,
    Threshold,
    Upload,
    deal_by_key,
    order_by_key,
)
from tacit.protocol.versions import check_version
from tests.vectors import check

REFUSED = check.read("refused.json")
READER_ERRORS: dict[str, type[TacitError]] = {
    "invalid-document": InvalidDocument,
    "upgrade-required": UpgradeRequired,
    "wrong-key": WrongKey,
    "wrong-signature": WrongSignature,
    "wrong-digest": WrongDigest,
}


def why(case: Any) -> str:
    return str(case["why"])


def the_campaign(kind: str) -> LabelCampaign:
    return LabelCampaign.from_bytes(check.read("campaign.json")[kind]["canonical"].encode())


def the_score_campaign(kind: str) -> ScoreCampaign:
    return ScoreCampaign.from_bytes(check.read("score-campaign.json")[kind]["canonical"].encode())


def keys_of(case: Any) -> Any:
    content = b"".join(bytes.fromhex(record_key) for record_key in case["record_keys"])
    return np.frombuffer(content, dtype=np.uint8).reshape(-1, 16)


@pytest.mark.parametrize("vector", check.CHECKS, ids=lambda vector: vector.__name__)
def test_a_plain_reader_agrees_with_the_vectors(vector: Callable[[], None]) -> None:
    vector()


def test_the_plain_reader_runs_alone_and_without_tacit() -> None:
    program = Path(check.__file__)
    assert "import tacit" not in program.read_text()
    assert "from tacit" not in program.read_text()
    finished = subprocess.run([sys.executable, program], check=True, capture_output=True, text=True)
    assert len(finished.stdout.splitlines()) == len(check.CHECKS)


@given(st.floats(-(2**53 - 1), 2**53 - 1) | st.floats(-1e-4, 1e-4))
def test_the_plain_reader_writes_numbers_as_rfc_8785_does(value: float) -> None:
    assert check.number(value).encode() == dumps(value)


@pytest.mark.parametrize("kind", ["probabilities", "features"])
def test_a_campaign_is_written_and_read_as_in_the_vector(kind: str) -> None:
    vector = check.read("campaign.json")[kind]
    made = LabelCampaign.model_validate_json(json.dumps(vector["fields"]))
    assert made.to_bytes().decode() == vector["canonical"]
    assert made.digest == vector["digest"]
    assert LabelCampaign.from_bytes(vector["canonical"].encode()) == made


def test_a_campaign_is_signed_and_opened_as_in_the_vector() -> None:
    vector = check.read("signed-campaign.json")
    seed = bytes.fromhex(vector["private_key_seed"])
    key = SigningKey(Ed25519PrivateKey.from_private_bytes(seed))
    signed = Signed.model_validate_json(json.dumps(vector["signed"]))
    opened = signed.open(LabelCampaign, key=vector["fingerprint"], digest=vector["digest"])
    assert opened.digest == vector["digest"]
    assert key.fingerprint == vector["fingerprint"]
    assert key.sign(opened.document) == signed


@pytest.mark.parametrize("kind", ["probabilities", "features"])
def test_an_upload_is_read_and_written_as_in_the_vector(kind: str) -> None:
    vector = check.read("upload.json")[kind]
    upload = Upload.model_validate_json(vector["body"])
    reports = Reports.of(upload, the_campaign(kind))
    found = {"labels": reports.labels.tolist(), kind: reports.evidence.tolist()}
    if reports.uniforms is not None:
        found["uniforms"] = reports.uniforms.tolist()
    assert found == vector["arrays"]
    assert upload.to_bytes().decode() == vector["body"]


@pytest.mark.parametrize(
    "case", check.read("upload.json")["columns"], ids=lambda case: case["column"]["dtype"]
)
def test_a_column_is_read_and_written_as_in_the_vector(case: Any) -> None:
    column = Column.model_validate_json(json.dumps(case["column"]))
    assert column.array().tolist() == case["array"]
    assert Column.of(np.array(case["array"]), column.dtype) == column


@pytest.mark.parametrize("which", ["nominal", "starred"])
def test_a_threshold_is_opened_and_follows_from_the_upload_of_the_vector(which: str) -> None:
    vector = check.read("threshold.json")
    signed = Signed.model_validate_json(json.dumps(vector[which]["signed"]))
    found = signed.open(Threshold, key=vector["fingerprint"], digest=vector[which]["digest"])
    campaign = the_campaign("probabilities")
    upload = Upload.model_validate_json(check.read("upload.json")["probabilities"]["body"])
    reports = Reports.of(upload, campaign)
    site = campaign.empty_sketch().add(reports.evidence, reports.labels, uniforms=reports.uniforms)
    delta = campaign.delta if which == "starred" else None
    expected = (site + site).calibrate(campaign.channel, campaign.alpha, delta)
    assert found.document.outcome() == expected
    beta = campaign.channel.beta
    shift = (1 + beta - 2 * beta / campaign.k) / ((1 - beta) * (site + site).n)
    assert math.isclose(found.document.hostile.shift_per_record, shift, rel_tol=1e-15)


def test_an_invitation_is_read_and_written_as_in_the_vector() -> None:
    vector = check.read("invitation.json")
    invitation = Invitation.from_text(vector["text"])
    assert invitation.to_text() == vector["text"]
    assert json.loads(invitation.model_dump_json()) == vector["fields"]


@pytest.mark.parametrize("case", check.read("randomized-labels.json")["cases"], ids=why)
def test_labels_are_randomized_as_in_the_vector(case: Any) -> None:
    key = bytes.fromhex(case["campaign_key"])
    record_keys = [bytes.fromhex(record_key) for record_key in case["record_keys"]]
    channel = UniformChannel(case["k"], int(case["threshold"]))
    coins = RecordCoins(key, record_keys, purpose="labels")
    reports = RandomizedResponse.from_channel(channel).privatize(case["labels"], coins)
    assert reports.tolist() == case["reports"]
    words = RecordCoins(key, record_keys, purpose="uniforms").blocks(0, len(record_keys), 0)[:, 0]
    assert ((words >> np.uint64(11)) * 2.0**-53).tolist() == case["uniforms"]


@pytest.mark.parametrize("kind", ["certified", "nominal"])
def test_a_score_campaign_is_written_and_read_as_in_the_vector(kind: str) -> None:
    vector = check.read("score-campaign.json")[kind]
    made = ScoreCampaign.model_validate_json(json.dumps(vector["fields"]))
    assert made.to_bytes().decode() == vector["canonical"]
    assert made.digest == vector["digest"]
    assert Campaign.from_bytes(vector["canonical"].encode()) == made


def test_a_question_is_signed_and_opened_as_in_the_vector() -> None:
    vector, campaign = check.read("question.json"), the_score_campaign("certified")
    seed = bytes.fromhex(check.read("signed-campaign.json")["private_key_seed"])
    signed = Signed.model_validate_json(json.dumps(vector["signed"]))
    opened = signed.open(RoundQuestion, key=vector["fingerprint"], digest=vector["digest"])
    opened.document.check(campaign, campaign.digest)
    assert json.loads(opened.document.to_bytes()) == vector["fields"]
    key = SigningKey(Ed25519PrivateKey.from_private_bytes(seed))
    assert key.sign(opened.document) == signed


@pytest.mark.parametrize("case", check.read("dealing.json")["cases"], ids=why)
def test_records_are_dealt_out_as_in_the_vector(case: Any) -> None:
    key = bytes.fromhex(case["campaign_key"])
    assert order_by_key(key, keys_of(case)).tolist() == case["order"]
    assert deal_by_key(key, keys_of(case), case["shares"]).tolist() == case["rounds"]


@pytest.mark.parametrize("case", check.read("answers.json")["cases"], ids=why)
def test_bits_are_randomized_as_in_the_vector(case: Any) -> None:
    coins = RecordCoins(bytes.fromhex(case["campaign_key"]), keys_of(case), purpose="answers")
    mechanism = BinaryRandomizedResponse.from_channel(BinaryChannel(int(case["threshold"])))
    bits = np.array(case["scores"]) <= case["asked"]
    assert mechanism.privatize(bits, coins).tolist() == case["bits"]


def test_the_vectors_of_a_round_are_of_one_campaign() -> None:
    campaign, case = the_score_campaign("certified"), check.read("answers.json")["cases"][0]
    dealt = check.read("dealing.json")["cases"][0]
    assert tuple(dealt["shares"]) == campaign.rounds.shares
    pairs = zip(dealt["record_keys"], dealt["rounds"], strict=True)
    assert [key for key, number in pairs if number == 0] == case["record_keys"]
    assert case["threshold"] == campaign.mechanism.threshold
    assert case["asked"] == check.read("question.json")["fields"]["threshold"]


def test_answers_are_read_and_written_as_in_the_vector() -> None:
    vector = check.read("answers.json")["upload"]
    upload = AnswerUpload.model_validate_json(vector["body"])
    assert upload.answers().tolist() == vector["bits"]
    assert upload.to_bytes().decode() == vector["body"]


@pytest.mark.parametrize("name", ["certified", "nominal", "not_certifiable", "too_few_enrolled"])
def test_a_score_threshold_is_opened_and_follows_from_its_rounds(name: str) -> None:
    vector = check.read("score-threshold.json")
    signed = Signed.model_validate_json(json.dumps(vector[name]["signed"]))
    found = signed.open(Threshold, key=vector["fingerprint"], digest=vector[name]["digest"])
    assert isinstance(found.document, ScoreThreshold)
    found.document.check_replay(the_score_campaign("nominal" if name == "nominal" else "certified"))


@pytest.mark.parametrize("case", REFUSED["campaigns"], ids=why)
def test_a_campaign_that_must_be_refused_is(case: Any) -> None:
    with pytest.raises(READER_ERRORS[case["refused_as"]]):
        LabelCampaign.from_bytes(case["payload"].encode())


@pytest.mark.parametrize("case", REFUSED["score_campaigns"], ids=why)
def test_a_score_campaign_that_must_be_refused_is(case: Any) -> None:
    with pytest.raises(READER_ERRORS[case["refused_as"]]):
        Campaign.from_bytes(case["payload"].encode())


@pytest.mark.parametrize("case", REFUSED["questions"], ids=why)
def test_a_question_that_must_be_refused_is(case: Any) -> None:
    campaign = the_score_campaign("certified")
    with pytest.raises(READER_ERRORS[case["refused_as"]]):
        RoundQuestion.from_bytes(case["payload"].encode()).check(campaign, campaign.digest)


@pytest.mark.parametrize("case", REFUSED["signed_questions"], ids=why)
def test_a_signed_question_that_must_be_refused_is(case: Any) -> None:
    signed = Signed.model_validate_json(json.dumps(case["signed"]))
    with pytest.raises(READER_ERRORS[case["refused_as"]]):
        signed.open(RoundQuestion, key=REFUSED["fingerprint"])


@pytest.mark.parametrize("case", REFUSED["answers"], ids=why)
def test_answers_that_must_be_refused_are(case: Any) -> None:
    if case["refused_as"] == "upgrade-required":
        with pytest.raises(UpgradeRequired):
            check_version(json.loads(case["body"])["version"])
    with pytest.raises((ValidationError, TacitError)):
        AnswerUpload.model_validate_json(case["body"]).answers()


@pytest.mark.parametrize("case", REFUSED["score_thresholds"], ids=why)
def test_a_score_threshold_that_must_be_refused_is(case: Any) -> None:
    which = json.loads(case["payload"])["which"]
    campaign = the_score_campaign("nominal" if which == "nominal" else "certified")
    with pytest.raises(READER_ERRORS[case["refused_as"]]):
        ScoreThreshold.from_bytes(case["payload"].encode()).check_replay(campaign)


@pytest.mark.parametrize("case", REFUSED["signed"], ids=why)
def test_a_signed_document_that_must_be_refused_is(case: Any) -> None:
    signed = case["signed"]
    with pytest.raises((READER_ERRORS[case["refused_as"]], ValidationError)) as caught:
        Signed.model_validate_json(json.dumps(signed)).open(
            LabelCampaign, key=REFUSED["fingerprint"], digest=REFUSED["digest"]
        )
    # Only what is no signed document at all is refused before it is opened.
    assert isinstance(caught.value, ValidationError) <= (case["refused_as"] == "invalid-document")


@pytest.mark.parametrize("case", REFUSED["uploads"], ids=why)
def test_an_upload_that_must_be_refused_is(case: Any) -> None:
    body = case["body"]
    if case["refused_as"] == "upgrade-required":
        with pytest.raises(UpgradeRequired):
            check_version(json.loads(body)["version"])
    with pytest.raises((ValidationError, TacitError)):
        Reports.of(Upload.model_validate_json(body), the_campaign("probabilities"))


def test_what_is_refused_differs_from_what_is_accepted_only_in_its_fault() -> None:
    good = check.read("upload.json")["probabilities"]["body"]
    assert len(Reports.of(Upload.model_validate_json(good), the_campaign("probabilities"))) == 12
    assert the_campaign("probabilities").digest == REFUSED["digest"]
