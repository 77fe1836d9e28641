"""Models: examined once, loaded only if unchanged, never believed blindly."""

import hashlib
import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from tacit.protocol import Features, Probabilities
from tacit.protocol.columns import Dtype
from tacit.scores import softmax
from tacit_aggregator.errors import OperatorError
from tacit_aggregator.models import service
from tacit_aggregator.models.loading import load, rows_at_once
from tacit_aggregator.models.registered import (
    Format,
    ModelChanged,
    ModelMisbehaved,
    ModelNotLoadable,
    Outputs,
    RegisteredModel,
)
from tests.support import tiny_models
from tests.unit.aggregator.conftest import Aggregator

MODULE = "tests.support.tiny_models:"


def examined(
    path: Path,
    format: Format,  # noqa: A002 -- its name
    *,
    module: str | None = MODULE + "Linear",
    dtype: Dtype = "uint8",
    shape: tuple[int, ...] = tiny_models.SHAPE,
    outputs: Outputs = "logits",
) -> RegisteredModel:
    return service.examine(
        path, name="tiny", format=format, module=module, dtype=dtype, shape=shape, outputs=outputs
    )


def weights(folder: Path) -> Path:
    return tiny_models.save_safetensors(folder / "m.safetensors")


def saved(folder: Path, format: Format) -> Path:  # noqa: A002 -- its name
    file = folder / f"m.{format}"
    if format == "pt2":
        return tiny_models.save_pt2(file)
    return tiny_models.save_onnx(file) if format == "onnx" else tiny_models.save_safetensors(file)


def features(rows: int) -> NDArray[np.uint8]:
    return np.random.default_rng(7).integers(0, 256, (rows, *tiny_models.SHAPE), dtype=np.uint8)


@pytest.mark.parametrize("format", ["pt2", "onnx", "safetensors"])
def test_a_model_in_every_format_gives_the_softmax_of_its_logits(
    tmp_path: Path,
    format: Format,  # noqa: A002 -- its name
) -> None:
    model = examined(saved(tmp_path, format), format)
    assert model.classes == tiny_models.CLASSES
    assert model.digest == hashlib.sha256(Path(model.path).read_bytes()).hexdigest()
    predict = load(model)
    for rows in (0, 1, 2, 512, 1300):
        batch = features(rows)
        batch.flags.writeable = False  # as columns are
        found = predict(batch)
        assert found.shape == (rows, tiny_models.CLASSES)
        assert found.dtype == np.float64
        if rows:
            np.testing.assert_allclose(
                found, softmax(tiny_models.expected_logits(batch)), atol=1e-6
            )


def test_an_onnx_model_gets_features_in_its_own_type_or_as_float32(tmp_path: Path) -> None:
    own = tiny_models.save_onnx(tmp_path / "own.onnx", dtype=TensorProto.UINT8)
    cast = tiny_models.save_onnx(tmp_path / "cast.onnx", dtype=TensorProto.FLOAT)
    batch = features(5)
    assert np.array_equal(load(examined(own, "onnx"))(batch), load(examined(cast, "onnx"))(batch))
    other = tiny_models.save_onnx(tmp_path / "other.onnx", dtype=TensorProto.INT64)
    with pytest.raises(ModelNotLoadable, match=r"tensor\(int64\)"):
        examined(other, "onnx")


def test_probabilities_are_taken_as_they_are_and_logits_are_not_mistaken_for_them(
    tmp_path: Path,
) -> None:
    normalized = tiny_models.save_onnx(tmp_path / "p.onnx", softmax=True)
    batch = features(9)
    found = load(examined(normalized, "onnx", outputs="probabilities"))(batch)
    np.testing.assert_allclose(found, softmax(tiny_models.expected_logits(batch)), atol=1e-6)
    with pytest.raises(ModelMisbehaved, match="--outputs logits"):
        examined(weights(tmp_path), "safetensors", outputs="probabilities")


def test_onnx_weights_in_another_file_are_refused(tmp_path: Path) -> None:
    file = tiny_models.save_onnx(tmp_path / "m.onnx", outside=True)
    with pytest.raises(ModelNotLoadable, match="external data"):
        examined(file, "onnx")


def test_onnx_weights_in_another_file_are_refused_inside_a_subgraph_too(tmp_path: Path) -> None:
    hidden = numpy_helper.from_array(np.ones(3, dtype=np.float32), "hidden")
    hidden.ClearField("raw_data")
    hidden.data_location = TensorProto.EXTERNAL
    hidden.external_data.add(key="location", value="elsewhere.bin")
    model = onnx.load_model(tiny_models.save_onnx(tmp_path / "m.onnx"))
    outputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3])]
    constant = helper.make_node("Constant", [], ["x"], value=hidden)
    branch = helper.make_graph([constant], "branch", [], outputs)
    condition = helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)
    model.graph.node.append(condition)
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(ModelNotLoadable, match="external data"):
        examined(tmp_path / "m.onnx", "onnx")


@pytest.mark.parametrize("format", ["pt2", "onnx"])
def test_a_model_for_a_fixed_number_of_records_is_refused(
    tmp_path: Path,
    format: Format,  # noqa: A002 -- its name
) -> None:
    if format == "pt2":
        file = tiny_models.save_pt2(tmp_path / "m.pt2", any_number=False)
    else:
        file = tiny_models.save_onnx(tmp_path / "m.onnx", rows=4)
    with pytest.raises(ModelMisbehaved, match="any number of records"):
        examined(file, format)


@pytest.mark.parametrize(
    ("module", "what"),
    [
        ("Undecided", "evaluation mode"),
        ("Undefined", "not finite"),
        ("Flat", r"outputs of shape \[1\]"),
    ],
)
def test_a_model_that_cannot_be_scored_with_is_not_registered(
    tmp_path: Path, module: str, what: str
) -> None:
    with pytest.raises(ModelMisbehaved, match=what):
        examined(weights(tmp_path), "safetensors", module=MODULE + module)


def test_what_a_model_makes_of_features_is_checked_and_never_shown(tmp_path: Path) -> None:
    model = examined(weights(tmp_path), "safetensors", module=MODULE + "OverflowsOnBright")
    batch = np.full((3, *tiny_models.SHAPE), 255, dtype=np.uint8)
    with pytest.raises(ModelMisbehaved) as raised:
        load(model)(batch)
    assert "255" not in str(raised.value)
    assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)  # noqa: S301 -- our own


@pytest.mark.parametrize(
    "module", [None, "Linear", "tests.nothing:Linear", MODULE + "Nothing", MODULE + "save_pt2"]
)
def test_weights_without_an_importable_module_are_refused(
    tmp_path: Path, module: str | None
) -> None:
    with pytest.raises(ModelNotLoadable):
        examined(weights(tmp_path), "safetensors", module=module)


def test_weights_that_do_not_fit_the_module_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelNotLoadable, match="cannot be loaded as safetensors"):
        examined(weights(tmp_path), "safetensors", module="torch.nn:Identity")


@pytest.mark.parametrize("format", ["pt2", "onnx", "safetensors"])
def test_a_file_that_is_no_model_is_refused(tmp_path: Path, format: Format) -> None:  # noqa: A002 -- its name
    (tmp_path / "m").write_bytes(b"this is no model")
    with pytest.raises(ModelNotLoadable, match=f"as {format}"):
        examined(tmp_path / "m", format)


@pytest.mark.parametrize(
    ("shape", "error"),
    [((4, 3), ModelMisbehaved), ((0,), OperatorError), ((1,) * 8, OperatorError)],
)
def test_a_wrong_shape_is_refused(
    tmp_path: Path, shape: tuple[int, ...], error: type[Exception]
) -> None:
    with pytest.raises(error):
        examined(weights(tmp_path), "safetensors", shape=shape)


def test_a_file_that_changed_or_went_away_is_not_loaded(tmp_path: Path) -> None:
    model = examined(weights(tmp_path), "safetensors")
    content = Path(model.path).read_bytes()
    Path(model.path).write_bytes(content + b"\n")
    with pytest.raises(ModelChanged, match="has changed"):
        load(model)
    Path(model.path).write_bytes(content)
    load(model)
    Path(model.path).unlink()
    with pytest.raises(ModelChanged, match="cannot be read"):
        load(model)


def test_large_records_go_to_the_model_few_at_a_time(tmp_path: Path) -> None:
    model = examined(weights(tmp_path), "safetensors")
    assert rows_at_once(model) == 512
    assert rows_at_once(replace(model, shape=(224, 224, 3))) == 27
    assert rows_at_once(replace(model, shape=(10**4, 10**4))) == 1


def test_records_of_many_classes_go_to_the_model_few_at_a_time(tmp_path: Path) -> None:
    model = examined(weights(tmp_path), "safetensors")
    assert rows_at_once(replace(model, classes=20_000)) == 209
    assert rows_at_once(replace(model, classes=2**23)) == 1


def test_a_registered_model_is_found_as_it_was_examined(
    aggregator: Aggregator, tmp_path: Path
) -> None:
    model = examined(weights(tmp_path), "safetensors")
    for _ in range(2):
        with aggregator.database.transaction("register") as connection:
            service.register(connection, model, 1.0)
    with aggregator.database.read() as connection:
        assert service.find(connection, model.digest) == model
        assert service.find(connection, "0" * 64) is None
        assert service.list_models(connection) == (model,)
    assert pickle.loads(pickle.dumps(model)) == model  # noqa: S301 -- our own


def test_the_same_file_with_other_settings_is_refused(
    aggregator: Aggregator, tmp_path: Path
) -> None:
    model = examined(weights(tmp_path), "safetensors")
    with aggregator.database.transaction("register") as connection:
        service.register(connection, model, 1.0)
        with pytest.raises(OperatorError, match="registered already"):
            service.register(connection, replace(model, outputs="probabilities"), 2.0)


def test_a_model_is_kept_while_a_campaign_needs_it(aggregator: Aggregator, tmp_path: Path) -> None:
    model = examined(weights(tmp_path), "safetensors")
    evidence = Features(model=model.digest, dtype="uint8", shape=tiny_models.SHAPE)
    with aggregator.database.transaction("register") as connection:
        service.register(connection, model, 1.0)
    aggregator.add_campaign(Probabilities(model=model.digest))
    aggregator.add_campaign(evidence, state="closed")
    closing = aggregator.add_campaign(evidence, state="closing")
    assert (
        "'Pathology' needs this model"
        in aggregator.run("models", "remove", model.digest[:12]).stderr
    )
    with aggregator.database.transaction("close") as connection:
        connection.exec_driver_sql("UPDATE campaigns SET state='closed' WHERE digest=?", (closing,))
    assert aggregator.run("models", "remove", model.digest[:12]).exit_code == 0
    with aggregator.database.read() as connection:
        assert service.list_models(connection) == ()


def test_a_worker_that_loads_models_imports_no_database() -> None:
    program = (
        "import sys, tacit_aggregator.models.loading;"
        "sys.exit(any(name in sys.modules for name in ('sqlalchemy', 'torch', 'onnxruntime')))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False, timeout=60).returncode == 0
