"""The pages for people stay true: their code runs, and the index leads to all of them."""

import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PYTHON_BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s#]+\.md)")


def run_blocks(page: str) -> int:
    """Run the Python blocks of a page in order, in one namespace; how many there were."""
    namespace: dict[str, Any] = {}
    blocks = PYTHON_BLOCK.findall(page)
    for number, block in enumerate(blocks, start=1):
        exec(compile(block, f"block {number}", "exec"), namespace)  # noqa: S102 -- our own pages
    return len(blocks)


@pytest.mark.parametrize("page", ["README.md", "docs/tutorial.md"])
def test_the_code_of_a_page_runs(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_blocks((ROOT / page).read_text()) > 0


def test_a_page_with_broken_code_is_noticed() -> None:
    with pytest.raises(NameError):
        run_blocks("```python\nkept = 1\n```\n\nthen\n\n```python\nkept + lost\n```\n")


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
