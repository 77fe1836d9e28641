"""Setting up .venv: what is left behind when it is interrupted or fails, and what people see."""

import io
import os
import sys
import threading
import time
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from scripts import lock, setup_venv, torch_index
from scripts.progress import PipActivity, Progress
from scripts.setup_venv import Step, StepFailed


class InterruptedProgress(Progress):
    def show(self, activity: str) -> None:
        raise KeyboardInterrupt(activity)


class TorchPage(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/whl/torch/" else 404)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        return


def python_step(code: str) -> Step:
    return Step("trying", (sys.executable, "-c", code), "Try again.")


@pytest.fixture
def ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The mark of a finished environment, in a folder of its own."""
    mark = tmp_path / "ready"
    mark.write_text(f"{tmp_path}\n")
    places = {"ROOT": tmp_path, "READY": mark, "LOG": tmp_path / "log", "LOCK": tmp_path / "lock"}
    present = {"PYTHON": mark, "SITE_PACKAGES": tmp_path}
    for name, path in {**places, **present}.items():
        monkeypatch.setattr(setup_venv, name, path)
    return mark


def build_with(monkeypatch: pytest.MonkeyPatch, step: Step, progress: Progress) -> None:
    monkeypatch.setattr(setup_venv, "planned_steps", lambda *_: [step])
    setup_venv.build(progress)


def source_edited(ready: Path, seconds_later: int) -> Path:
    source = ready.parent / "constraints.txt"
    source.touch()
    edited = ready.stat().st_mtime + seconds_later
    os.utime(source, (edited, edited))
    return source


def test_a_finished_setup_is_marked_with_its_place_and_as_older_than_what_was_edited_meanwhile(
    ready: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready.unlink()
    edit = python_step("import pathlib; pathlib.Path('edited').touch()")
    build_with(monkeypatch, edit, Progress(io.StringIO()))
    assert ready.read_text() == f"{ready.parent}\n"
    assert ready.stat().st_mtime < (ready.parent / "edited").stat().st_mtime


def test_an_interrupted_setup_is_not_marked_as_ready_and_its_command_is_stopped(
    ready: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = python_step("import time, pathlib; time.sleep(1); pathlib.Path('arrived').touch()")
    with pytest.raises(KeyboardInterrupt):
        build_with(monkeypatch, slow, InterruptedProgress(io.StringIO()))
    time.sleep(1.5)
    assert not ready.exists()
    assert not (ready.parent / "arrived").exists()


def test_a_failed_setup_is_not_marked_as_ready_and_shows_the_log_and_what_to_do(
    ready: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = io.StringIO()
    with pytest.raises(StepFailed) as failure:
        build_with(monkeypatch, python_step("print('no route'); exit(1)"), Progress(seen))
    setup_venv.explain(failure.value, Progress(seen))
    assert not ready.exists()
    assert "no route\n" in seen.getvalue()
    assert "failed while trying.\nTry again." in seen.getvalue()


@pytest.mark.usefixtures("ready")
@pytest.mark.parametrize(
    ("said", "advice"),
    [("Command '-m ensurepip' failed", "install python3-venv"), ("No space left", "Try again.")],
)
def test_only_a_python_without_ensurepip_is_said_to_make_no_environments(
    monkeypatch: pytest.MonkeyPatch, said: str, advice: str
) -> None:
    seen = io.StringIO()
    with pytest.raises(StepFailed) as failure:
        build_with(monkeypatch, python_step(f"exit({said!r})"), Progress(seen))
    setup_venv.explain(failure.value, Progress(seen))
    assert said in seen.getvalue()
    assert ("install python3-venv" in seen.getvalue()) == (advice != "Try again.")
    assert advice in seen.getvalue()


def test_a_second_setup_waits_for_the_first_and_leaves_what_it_made(
    ready: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(setup_venv, "build", lambda _: pytest.fail("built a second time"))
    made = ready.read_text()
    ready.unlink()

    class FirstFinishes(Progress):
        def say(self, sentence: str) -> None:
            super().say(sentence)
            ready.write_text(made)
            first.close()

    seen = io.StringIO()
    with ExitStack() as first:
        first.enter_context(lock.held(setup_venv.LOCK, lambda: pytest.fail("waited for nobody")))
        setup_venv.set_up(FirstFinishes(seen), [])
    assert seen.getvalue() == "Another make is setting up .venv; waiting for it.\n"


@pytest.mark.parametrize(("seconds_later", "builds"), [(-60, 0), (60, 1)])
def test_an_environment_is_built_when_a_source_is_newer_and_not_otherwise(
    ready: Path, monkeypatch: pytest.MonkeyPatch, seconds_later: int, builds: int
) -> None:
    built: list[Progress] = []
    monkeypatch.setattr(setup_venv, "build", built.append)
    setup_venv.set_up(Progress(io.StringIO()), [source_edited(ready, seconds_later)])
    assert len(built) == builds


def test_a_system_without_locks_is_no_obstacle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "fcntl", None)
    waits: list[str] = []
    with (
        lock.held(tmp_path / "lock", lambda: waits.append("first")),
        lock.held(tmp_path / "lock", lambda: waits.append("second")),
    ):
        assert waits == []


def test_an_index_with_a_torch_page_answers_and_one_without_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("no_proxy", "*")
    with HTTPServer(("127.0.0.1", 0), TorchPage) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        assert torch_index.answers(f"{address}/whl/")
        assert not torch_index.answers(f"{address}/elsewhere")
        server.shutdown()


def test_a_name_lookup_that_hangs_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    released, ended = threading.Event(), threading.Event()

    def hang(*_: object, **__: object) -> None:
        released.wait(60)
        ended.set()
        raise OSError

    monkeypatch.setattr(torch_index, "urlopen", hang)
    assert not torch_index.answers("https://example.org", patience=0.2)
    assert not ended.is_set()
    released.set()


def test_progress_names_the_package_that_pip_works_on_and_else_the_step(tmp_path: Path) -> None:
    activity = PipActivity(tmp_path, "installing the rest")
    assert str(activity) == "installing the rest"
    activity.hear("  Downloading scikit_learn-1.9.1-cp311-cp311-manylinux.whl (9.1 MB)\n")
    assert str(activity) == "downloading scikit_learn"
    activity.hear("Installing collected packages: typing_extensions, torch\n")
    assert str(activity) == "installing typing_extensions (1 of 2)"
    (tmp_path / "typing_extensions-4.16.0.dist-info").mkdir()
    (tmp_path / "typing_extensions-4.16.0.dist-info" / "INSTALLER").touch()
    assert str(activity) == "installing torch (2 of 2)"
    (tmp_path / "torch-2.13.0.dist-info").mkdir()
    (tmp_path / "torch-2.13.0.dist-info" / "INSTALLER").touch()
    assert str(activity) == "installing the rest"


def test_a_log_gets_few_plain_lines() -> None:
    log = io.StringIO()
    progress = Progress(log)
    for _ in range(100):
        progress.show("installing torch")
    assert log.getvalue() == ".venv 0:00  installing torch\n"
