"""Models of score campaigns: checked when a campaign names them, fetched by who may."""

import hashlib
import re
import secrets
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from onnx import TensorProto

from tacit.protocol import Features, Model, Role, ScoreCampaign
from tacit_aggregator.database.engine import Database
from tacit_aggregator.errors import OperatorError
from tacit_aggregator.models.service import RegisteredModel, register, remove
from tests.support.aggregator import Aggregator, AggregatorProcess, as_process, in_thread, migrated
from tests.support.label_campaigns import JSON, campaign_document, problem_name, scene
from tests.support.registering import registered
from tests.support.score_campaigns import ScoreScene, score_document, score_scene
from tests.support.tiny_models import CLASSES, SHAPE, save_onnx, save_safetensors


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def server(place: Path) -> Iterator[Aggregator]:
    with in_thread(migrated(place)) as running:
        yield running


@pytest.fixture(scope="module")
def onnx(place: Path, server: Aggregator) -> RegisteredModel:
    file = save_onnx(place / "tiny.onnx")
    return registered(server.settings, file, dtype="float32", shape=SHAPE)


@pytest.fixture(scope="module")
def weights(place: Path, server: Aggregator) -> RegisteredModel:
    return registered(
        server.settings,
        save_safetensors(place / "tiny.safetensors"),
        dtype="float32",
        shape=SHAPE,
        module="tests.support.tiny_models:Linear",
    )


def named(model: RegisteredModel) -> Model:
    return Model(digest=model.digest, dtype=model.dtype, shape=model.shape, outputs=model.outputs)


@pytest.fixture
def campaign(server: Aggregator, onnx: RegisteredModel) -> Iterator[ScoreScene]:
    with score_scene(server, k=CLASSES, model=named(onnx)) as made:
        yield made


def test_sites_owners_and_admins_fetch_the_model_of_their_campaign(
    server: Aggregator, campaign: ScoreScene, onnx: RegisteredModel
) -> None:
    address = f"/v1/models/{onnx.digest}"
    with server.client(server.token(Role.ADMIN, "operator")) as admin:
        for client in (campaign.site().http, campaign.owner, admin):
            answer = client.get(address)
            assert answer.content == Path(onnx.path).read_bytes()
            assert answer.headers["content-type"] == "application/octet-stream"
            etag = {"If-None-Match": answer.headers["etag"]}
            assert client.get(address, headers=etag).status_code == 304


def test_nobody_else_finds_it(
    server: Aggregator, campaign: ScoreScene, onnx: RegisteredModel
) -> None:
    with (
        score_scene(server) as another,
        server.client(server.token(Role.OWNER, "somebody")) as owner,
        server.client(server.token(Role.CONTRIBUTOR, "s", secrets.token_hex(32))) as stranger,
    ):
        for client in (another.site().http, owner, stranger):
            assert problem_name(client.get(f"/v1/models/{onnx.digest}")) == "not-found"
        assert problem_name(another.owner.get(f"/v1/models/{'0' * 64}")) == "not-found"
    assert campaign.digest


def test_what_is_code_or_not_for_sites_never_leaves(
    server: Aggregator, weights: RegisteredModel
) -> None:
    evidence = Features(model=weights.digest, dtype="float32", shape=SHAPE)
    with scene(server, campaign_document(k=CLASSES, evidence=evidence)) as of_labels:
        address = f"/v1/models/{weights.digest}"
        with server.client(server.token(Role.ADMIN, "operator")) as admin:
            for client in (of_labels.site().http, of_labels.owner, admin):
                assert problem_name(client.get(address)) == "not-found"


def test_a_model_that_is_not_for_sites_is_had_by_no_owner_who_names_it(
    tmp_path: Path, server: Aggregator
) -> None:
    file = save_onnx(tmp_path / "own.onnx", dtype=TensorProto.UINT8)
    own = registered(server.settings, file, dtype="uint8", shape=SHAPE, for_sites=False)
    document = score_document(k=CLASSES, model=named(own))
    with server.client(server.token(Role.OWNER, "owner")) as owner:
        address = f"/v1/campaigns/{document.digest}"
        refused = owner.put(address, content=document.to_bytes(), headers=JSON)
        assert problem_name(refused) == "unknown-model"
        assert "uint8" not in refused.text
        assert problem_name(owner.get(f"/v1/models/{own.digest}")) == "not-found"


def test_a_file_that_has_changed_is_not_sent(
    server: Aggregator, campaign: ScoreScene, onnx: RegisteredModel
) -> None:
    file = Path(onnx.path)
    content = file.read_bytes()
    file.write_bytes(content + b"x")
    try:
        answer = campaign.owner.get(f"/v1/models/{onnx.digest}")
        assert problem_name(answer) == "unavailable"
        assert server.url
    finally:
        file.write_bytes(content)


def test_a_file_that_was_put_back_is_sent_again_and_one_that_was_touched_too(
    campaign: ScoreScene, onnx: RegisteredModel
) -> None:
    address = f"/v1/models/{onnx.digest}"
    file = Path(onnx.path)
    content = file.read_bytes()
    assert campaign.owner.get(address).content == content
    flipped = content[:-1] + bytes([content[-1] ^ 1])
    file.write_bytes(flipped)
    try:
        assert problem_name(campaign.owner.get(address)) == "unavailable"
        file.unlink()
        assert problem_name(campaign.owner.get(address)) == "unavailable"
    finally:
        file.write_bytes(content)
    assert campaign.owner.get(address).content == content


def test_who_fetches_a_large_model_and_does_not_read_takes_no_memory_and_no_descriptor(
    tmp_path: Path,
) -> None:
    size, readers = 64 * 2**20, 8
    file = tmp_path / "large.onnx"
    with file.open("wb") as made:
        made.truncate(size)
    digest = hashlib.sha256(bytes(size)).hexdigest()
    large = RegisteredModel(
        *(digest, "large", "onnx", str(file), None, "float32", SHAPE, CLASSES, "logits"),
        for_sites=True,
    )
    settings = migrated(tmp_path)
    database = Database(settings.database_url)
    with database.transaction("test model") as connection:
        register(connection, large, time.time())
    database.close()
    with (
        as_process(settings) as aggregator,
        score_scene(aggregator, k=CLASSES, model=named(large)) as scene,
        ExitStack() as stack,
    ):
        before = resident_bytes(aggregator)
        token = scene.owner.headers["authorization"]
        head = f"GET /v1/models/{digest} HTTP/1.1\r\nHost: x\r\nAuthorization: {token}\r\n\r\n"
        for _ in range(readers):
            slow = stack.enter_context(socket.create_connection(("127.0.0.1", aggregator.port)))
            slow.sendall(head.encode())
            assert slow.recv(16) == b"HTTP/1.1 200 OK\r"[:16]
        with scene.owner.stream("GET", f"/v1/models/{digest}") as answer:
            got = hashlib.sha256()
            for piece in answer.iter_bytes():
                got.update(piece)
        assert got.hexdigest() == digest
        assert resident_bytes(aggregator) - before < size
        assert aggregator.process is not None
        opened = Path(f"/proc/{aggregator.process.pid}/fd").iterdir()
        assert file not in [Path(link).resolve() for link in opened]


def resident_bytes(aggregator: AggregatorProcess) -> int:
    """How much memory the server has now."""
    assert aggregator.process is not None
    status = Path(f"/proc/{aggregator.process.pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) * 1024


@pytest.mark.parametrize(
    "change",
    [
        {"digest": "0" * 64},
        {"dtype": "uint8"},
        {"shape": (2, 4)},
        {"outputs": "probabilities"},
    ],
)
def test_a_campaign_names_a_model_as_it_is_registered(
    server: Aggregator, onnx: RegisteredModel, change: dict[str, object]
) -> None:
    refuse(server, score_document(k=CLASSES, model=named(onnx).model_copy(update=change)))


def test_a_campaign_has_the_classes_of_its_model_and_the_model_is_onnx(
    server: Aggregator, onnx: RegisteredModel, weights: RegisteredModel
) -> None:
    refuse(server, score_document(k=CLASSES + 1, model=named(onnx)))
    refuse(server, score_document(k=CLASSES, model=named(weights)))


def refuse(server: Aggregator, document: ScoreCampaign) -> None:
    """See that a campaign is not made, because of its model."""
    with server.client(server.token(Role.OWNER, "owner")) as owner:
        address = f"/v1/campaigns/{document.digest}"
        answer = owner.put(address, content=document.to_bytes(), headers=JSON)
        assert problem_name(answer) == "unknown-model"


def test_a_model_stays_while_a_score_campaign_needs_it(server: Aggregator, place: Path) -> None:
    file = save_onnx(place / "other.onnx", softmax=True)
    model = registered(server.settings, file, dtype="float32", shape=SHAPE)
    database = Database(server.settings.database_url)
    with score_scene(server, k=CLASSES, model=named(model)) as needs:
        with (
            pytest.raises(OperatorError, match="needs this model"),
            database.transaction("test") as connection,
        ):
            remove(connection, model.digest)
        needs.owner.post(f"{needs.address}/close").raise_for_status()
        needs.wait_until("closed")
        with database.transaction("test") as connection:
            assert remove(connection, model.digest) == model
    database.close()
