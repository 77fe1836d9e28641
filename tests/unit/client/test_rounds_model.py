"""A campaign's model: fetched by its digest, verified before it is in place, run here."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tacit.protocol import Model, Problems, sha256_hex
from tacit.scores import softmax
from tacit_client import Home, Network
from tacit_client.api import Api
from tacit_client.errors import (
    AnswerTooLarge,
    ModelRefused,
    NotFound,
    RuntimeMissing,
    TacitClientError,
    WrongModel,
)
from tacit_client.rounds.model import load_model
from tests.support import hostile_models
from tests.support.small_server import Reply, Request, problem, small_server
from tests.support.tiny_models import CLASSES, SHAPE, expected_logits, save_onnx

HASTY = Network(attempts=2, longest_wait=0.01)


def asked_for(content: bytes, **changes: object) -> Model:
    terms = {"digest": sha256_hex(content), "dtype": "uint8", "shape": SHAPE, "outputs": "logits"}
    return Model.model_validate(terms | changes)


def batch(rows: int) -> "np.ndarray[tuple[int, ...], np.dtype[np.uint8]]":
    return np.random.default_rng(2).integers(0, 256, (rows, *SHAPE), dtype=np.uint8)


@pytest.fixture
def content(tmp_path: Path) -> bytes:
    return save_onnx(tmp_path / "m.onnx", dtype=TensorProto.UINT8).read_bytes()


def test_a_model_is_fetched_once_and_run(tmp_path: Path, content: bytes) -> None:
    asked, home = asked_for(content), Home(tmp_path / "home")
    with small_server(lambda *_: Reply(body=content)) as server:
        for _ in range(2):
            with Api(server.url, "token", HASTY) as api:
                predict = load_model(home, api, asked, CLASSES)
    (request,) = server.requests
    assert request.path == f"/v1/models/{asked.digest}"
    features = batch(1000)
    np.testing.assert_allclose(predict(features), softmax(expected_logits(features)), atol=1e-6)
    assert [file.name for file in (home.path / "models").iterdir()] == [f"{asked.digest}.onnx"]


def test_a_file_that_is_another_one_is_deleted_and_refused(tmp_path: Path, content: bytes) -> None:
    asked, home = asked_for(content), Home(tmp_path / "home")
    with (
        small_server(lambda *_: Reply(body=content + b"\0")) as server,
        Api(server.url, "token", HASTY) as api,
        pytest.raises(WrongModel),
    ):
        load_model(home, api, asked, CLASSES)
    assert list((home.path / "models").iterdir()) == []


def test_a_file_that_was_damaged_here_is_fetched_again(tmp_path: Path, content: bytes) -> None:
    asked, home = asked_for(content), Home(tmp_path / "home")
    place = home.model(asked.digest)
    place.parent.mkdir(parents=True)
    place.write_bytes(content[:-1])
    with (
        small_server(lambda *_: Reply(body=content)) as server,
        Api(server.url, "token", HASTY) as api,
    ):
        load_model(home, api, asked, CLASSES)
    assert place.read_bytes() == content


def test_a_broken_line_is_tried_again_from_the_beginning(tmp_path: Path, content: bytes) -> None:
    def answer(index: int, _: Request) -> Reply | None:
        return None if index == 0 else Reply(body=content)

    with small_server(answer) as server, Api(server.url, "token", HASTY) as api:
        load_model(Home(tmp_path / "home"), api, asked_for(content), CLASSES)
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("network", "reply", "error"),
    [
        (Network(attempts=1, most_model_bytes=100), None, AnswerTooLarge),
        (HASTY, problem(Problems.NOT_FOUND), NotFound),
    ],
)
def test_a_model_that_is_too_large_or_not_there_is_an_error(
    tmp_path: Path,
    content: bytes,
    network: Network,
    reply: Reply | None,
    error: type[TacitClientError],
) -> None:
    with (
        small_server(lambda *_: reply or Reply(body=content)) as server,
        Api(server.url, "token", network) as api,
        pytest.raises(error),
    ):
        load_model(Home(tmp_path / "home"), api, asked_for(content), CLASSES)


def outside(folder: Path) -> bytes:
    return save_onnx(folder / "o.onnx", outside=True).read_bytes()


def with_an_operator_of_its_own(folder: Path) -> bytes:
    model = onnx.load_model(save_onnx(folder / "c.onnx", dtype=TensorProto.UINT8))
    model.graph.node[-1].op_type = "RunThis"
    model.graph.node[-1].domain = "somebody.else"
    model.opset_import.append(helper.make_opsetid("somebody.else", 1))
    return bytes(model.SerializeToString())


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (outside, "external data"),
        (with_an_operator_of_its_own, "the operator somebody.else.RunThis"),
        (lambda _: b"no model", "cannot be run by onnxruntime"),
    ],
)
def test_a_model_that_is_more_or_less_than_one_onnx_file_is_refused(
    tmp_path: Path, make: Callable[[Path], bytes], says: str
) -> None:
    content = make(tmp_path)
    with (
        small_server(lambda *_: Reply(body=content)) as server,
        Api(server.url, "token", HASTY) as api,
        pytest.raises(ModelRefused, match=says),
    ):
        load_model(Home(tmp_path / "home"), api, asked_for(content), CLASSES)


@pytest.mark.parametrize(
    ("classes", "outputs", "says"), [(4, "logits", "3 classes"), (3, "probabilities", "not prob")]
)
def test_a_model_that_does_not_give_what_was_agreed_on_is_refused(
    tmp_path: Path, content: bytes, classes: int, outputs: str, says: str
) -> None:
    with (
        small_server(lambda *_: Reply(body=content)) as server,
        Api(server.url, "token", HASTY) as api,
        pytest.raises(ModelRefused, match=says),
    ):
        load_model(
            Home(tmp_path / "home"), api, asked_for(content, outputs=outputs), classes
        )  # before it saw any record


def test_what_is_run_is_what_was_verified(
    tmp_path: Path, content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = save_onnx(tmp_path / "other.onnx", dtype=TensorProto.UINT8, softmax=True).read_bytes()
    put = Path.replace

    def put_another(self: Path, target: Path) -> Path:
        self.write_bytes(other)  # as somebody else on this machine could, at the worst moment
        return put(self, target)

    monkeypatch.setattr(Path, "replace", put_another)
    with (
        small_server(lambda *_: Reply(body=content)) as server,
        Api(server.url, "token", HASTY) as api,
    ):
        predict = load_model(Home(tmp_path / "home"), api, asked_for(content), CLASSES)
    np.testing.assert_allclose(predict(batch(5)), softmax(expected_logits(batch(5))), atol=1e-6)


def test_what_a_model_does_with_one_record_shows_in_no_other_and_is_no_error(
    tmp_path: Path,
) -> None:
    features = hostile_models.records(20)
    features[:, 1] = 0
    features[0] = 5
    for hostile, fails in ((hostile_models.mixing(), False), (hostile_models.failing(), True)):
        asked = asked_for(hostile, dtype="float32", shape=hostile_models.SHAPE)
        with (
            small_server(lambda *_, body=hostile: Reply(body=body)) as server,
            Api(server.url, "token", HASTY) as api,
        ):
            predict = load_model(Home(tmp_path / "home"), api, asked, hostile_models.CLASSES)
        found = predict(features)
        assert np.isnan(found[0]).all() == fails
        np.testing.assert_array_equal(found[1:], predict(features[1:]))


def test_without_onnxruntime_it_is_said_what_to_install(
    tmp_path: Path, content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with Api("http://127.0.0.1:9", "token", HASTY) as api, pytest.raises(RuntimeMissing) as caught:
        load_model(Home(tmp_path / "home"), api, asked_for(content), CLASSES)
    assert "tacit-client[onnx]" in str(caught.value)


def test_the_client_imports_no_runtime_before_it_needs_one() -> None:
    program = (
        "import sys, tacit_client;"
        "sys.exit(any(name in sys.modules for name in ('onnx', 'onnxruntime', 'torch')))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False, timeout=60).returncode == 0
