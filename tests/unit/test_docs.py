"""The pages for people stay true: their code runs, index and reference leave nothing out."""

import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tacit_aggregator.database.tables import metadata
from tacit_aggregator.metrics import Metrics
from tacit_aggregator.settings import Settings
from tacit_client import Policy

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
# Blocks that begin with a prompt are sessions, whose output is checked as doctests.
PYTHON_BLOCK = re.compile(r"^```python\n(?!>>>)(.*?)^```", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s#]+\.md)")

PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
RUNNABLE = [page for page in PAGES if PYTHON_BLOCK.search(page.read_text())]

REFERENCE = {
    "tacit.mechanisms": "mechanisms.md",
    "tacit.scores": "scores.md",
    "tacit.conformal": "conformal.md",
    "tacit.planning": "planning.md",
    "tacit.conformal.noise": "noise-and-corrections.md",
    "tacit.conformal.corrections": "noise-and-corrections.md",
    "tacit.protocol": "protocol.md",
    "tacit.errors": "errors.md",
    "tacit_client": "client.md",
    "tacit_client.errors": "client.md",
    "tacit_client.testing": "client.md",
}


def run_blocks(page: str) -> None:
    """Run the Python blocks of a page in order, in one namespace."""
    namespace: dict[str, Any] = {}
    for number, block in enumerate(PYTHON_BLOCK.findall(page), start=1):
        exec(compile(block, f"block {number}", "exec"), namespace)  # noqa: S102 -- our own pages


def public_names(module: str) -> set[str]:
    """What a module lists as its own, or else the public functions and classes written in it."""
    loaded = import_module(module)
    return set(getattr(loaded, "__all__", ())) or {
        name
        for name, value in vars(loaded).items()
        if getattr(value, "__module__", None) == module and not name.startswith("_")
    }


def missing_from(page: str, names: set[str]) -> list[str]:
    """The names that a page does not show as code, alone or at the head of a call."""
    return sorted(name for name in names if not re.search(rf"`{name}\b", page))


@pytest.mark.parametrize("page", RUNNABLE, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_code_of_a_page_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run_blocks(page.read_text())


def test_every_page_that_teaches_by_code_is_run() -> None:
    teaching = {ROOT / "README.md", DOCS / "tutorial.md", *(DOCS / "how-to").glob("*.md")}
    sessions = {page for page in teaching if "```python\n>>>" in page.read_text()}
    assert teaching - sessions <= set(RUNNABLE)
    assert len(sessions) == 1


def test_a_page_with_broken_code_is_noticed() -> None:
    with pytest.raises(NameError):
        run_blocks("```python\nkept = 1\n```\n\nthen\n\n```python\nkept + lost\n```\n")


@pytest.mark.parametrize(("module", "page"), REFERENCE.items())
def test_the_reference_names_everything_public(module: str, page: str) -> None:
    names = public_names(module)
    assert names
    assert missing_from((DOCS / "reference" / page).read_text(), names) == []


def test_a_name_that_the_reference_lacks_is_noticed() -> None:
    page = "`delta(n)`, `run`, split and `noisy_too`"
    assert missing_from(page, {"delta", "noisy", "split"}) == ["noisy", "split"]


def test_the_readme_shows_the_whole_life_of_a_campaign() -> None:
    page = (ROOT / "README.md").read_text()
    assert (
        missing_from(page, {"Contributor", "Owner", "Policy", "Ledger", "TacitClientError"}) == []
    )


def test_the_table_of_settings_has_every_variable_and_its_default() -> None:
    page = (DOCS / "reference" / "aggregator.md").read_text()
    shown = dict(re.findall(r"^\| `(TACIT_\w+)` \| (\S+) \|", page, re.MULTILINE))
    assert shown == {
        f"TACIT_{name.upper()}": "none" if field.default is None else f"`{field.default}`"
        for name, field in Settings.model_fields.items()
    }


def test_the_table_of_metrics_has_every_metric() -> None:
    page = (DOCS / "reference" / "aggregator.md").read_text()
    families = list(Metrics().registry.collect())
    assert families
    endings = {"counter": "_total"}
    names = {family.name + endings.get(family.type, "") for family in families}
    assert missing_from(page, names) == []


def test_the_table_of_tables_has_every_table() -> None:
    page = (DOCS / "reference" / "aggregator.md").read_text()
    assert missing_from(page, set(metadata.tables)) == []


def test_events_that_ask_for_the_operator_are_events_of_the_log() -> None:
    page = (DOCS / "how-to" / "operate-the-aggregator.md").read_text()
    _, _, table = page.partition("| event |")
    rows = re.findall(r"^\| (`.*?`) \|", table, re.MULTILINE)
    shown = {event for row in rows for event in re.findall(r"`([a-z ]+)`", row)}
    sources = (ROOT / "services/aggregator/src").rglob("*.py")
    logged = set(
        re.findall(r'_log(?:\(\))?\.\w+\(\s*"([a-z ]+)"', "".join(map(Path.read_text, sources)))
    )
    assert shown
    assert shown <= logged


@pytest.mark.parametrize("page", ["docs/reference/client.md", "services/client_sdk/README.md"])
def test_the_fields_of_a_policy_are_written_down(page: str) -> None:
    assert (
        missing_from(
            (ROOT / page).read_text().replace("\n", "\n`"), set(Policy.__dataclass_fields__)
        )
        == []
    )


def test_the_policy_file_of_the_reference_is_one(tmp_path: Path) -> None:
    page = (DOCS / "reference" / "client.md").read_text()
    (block,) = re.findall(r"^```toml\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    file = tmp_path / "policy.toml"
    file.write_text(block)
    assert Policy.load(file).may_leave == {"probabilities"}
    assert Policy.load(file).max_epsilon == Policy().max_epsilon


def test_the_readme_names_commands_that_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"\bmake ([a-z-]+)", (ROOT / "README.md").read_text()))
    assert named
    assert named <= targets


def test_the_index_leads_to_every_page() -> None:
    index = DOCS / "README.md"
    listed = {(DOCS / target).resolve() for target in LINK.findall(index.read_text())}
    pages = {page.resolve() for page in DOCS.rglob("*.md")} - {index.resolve()}
    assert sorted(page.name for page in pages - listed) == []


def test_decisions_are_numbered_without_gaps() -> None:
    numbers = sorted(int(page.name[:3]) for page in (DOCS / "decisions").glob("*.md"))
    assert numbers == list(range(1, len(numbers) + 1))
