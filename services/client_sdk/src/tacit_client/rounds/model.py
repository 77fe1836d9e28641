"""The campaign's model: fetched by its digest, verified, and run here. It is data, never code."""

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from tacit.errors import ModelMisbehaved, ModelNotLoadable
from tacit.networks import Network, Outputs, Predictor, one_by_one, predictor, zeros
from tacit.protocol import Model, sha256_hex
from tacit_client.api import Api
from tacit_client.errors import LedgerError, ModelRefused, RuntimeMissing, WrongModel
from tacit_client.home import Home


@dataclass(frozen=True)
class _Described:
    """The model by the campaign's word."""

    dtype: str
    shape: tuple[int, ...]
    classes: int
    outputs: Outputs


def load_model(home: Home, api: Api, asked: Model, classes: int) -> Predictor:
    """The model as a function from features to probabilities; fetched if it is not here yet.

    It is refused for what it is, or does with zeros. What it does with a record shows in no other
    one's score and raises no error: it gets them one by one, and where it fails, a row is NaN. How
    long it takes can be seen between requests, and is not protected.
    """
    check_runtime()
    network = _network(_content(home, api, asked.digest), asked)
    described = _Described(asked.dtype, asked.shape, classes, asked.outputs)
    try:
        predictor(described, network)(zeros(described, 1))
    except ModelMisbehaved as error:
        raise ModelRefused(f"{error} Nothing was drawn; tell the owner.") from None
    return one_by_one(described, network)


def check_runtime() -> None:
    """Say what to install, where a model cannot be run."""
    if any(find_spec(package) is None for package in ("onnx", "onnxruntime")):
        raise RuntimeMissing
    try:
        import tacit.networks.onnx_file  # noqa: F401, PLC0415 -- an extra; loads slowly
    except ImportError:
        raise RuntimeMissing from None


def _network(content: bytes, asked: Model) -> Network:
    from tacit.networks.onnx_file import site_network  # noqa: PLC0415 -- an extra

    try:
        return site_network(content, asked.dtype)
    except ModelNotLoadable as error:
        raise ModelRefused(f"{error} Nothing was drawn; tell the owner.") from None
    except Exception as error:
        # What the runtime says of a file that it cannot run, an operator it does not have.
        raise ModelRefused(
            f"The campaign's model cannot be run by onnxruntime ({type(error).__name__}); nothing"
            " was drawn. Tell the owner."
        ) from error


def _content(home: Home, api: Api, digest: str) -> bytes:
    file = home.model(digest)
    try:
        content = file.read_bytes() if file.exists() else b""
        if sha256_hex(content) == digest:
            return content
        return _fetched(api, digest, file)
    except OSError as error:
        raise LedgerError(
            f"The campaign's model cannot be kept in the client's directory: {error.strerror}."
        ) from error


def _fetched(api: Api, digest: str, file: Path) -> bytes:
    """Put the file in its place once all of it is here and it is the right one: its content."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    partial = file.with_name(file.name + ".part")
    try:
        api.model(digest, partial)
        content = partial.read_bytes()
        if sha256_hex(content) != digest:
            raise WrongModel
        partial.replace(file)
    finally:
        partial.unlink(missing_ok=True)
    return content
