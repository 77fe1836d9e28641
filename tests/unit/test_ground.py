"""What the repository promises about itself: one version, full pins, links that lead somewhere."""

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
LEFT_BEHIND_BY_TOOLS = ("__pycache__", "build", "dist")
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:root|work|home/\w+)/")
NOT_PUBLISHED = re.compile(r"pip install (?:\S+ )*'?tacit\b")
MARKDOWN_LINK = re.compile(r"\]\(([^)\s#]+)[^)]*\)")


def our_files() -> Iterator[Path]:
    for folder, subfolders, names in os.walk(ROOT):
        subfolders[:] = [
            name
            for name in subfolders
            if (name == ".ci" or not name.startswith("."))
            and name not in LEFT_BEHIND_BY_TOOLS
            and not name.endswith(".egg-info")
        ]
        yield from (Path(folder, name) for name in names if name != ".venv.log")


def pyprojects() -> list[dict[str, Any]]:
    return [tomllib.loads(f.read_text()) for f in our_files() if f.name == "pyproject.toml"]


def requirement_lines(file: str) -> list[str]:
    lines = (line.split("#")[0].strip() for line in (ROOT / file).read_text().splitlines())
    return [line for line in lines if line and not line.startswith("-")]


def pins() -> dict[str, str]:
    pinned = (line.split("==") for line in requirement_lines("constraints.txt"))
    return {canonicalize_name(name): version for name, version in pinned}


def is_pinned(requirement: Requirement) -> bool:
    pin = pins().get(canonicalize_name(requirement.name))
    return pin is not None and requirement.specifier.contains(pin)


def dependencies(pyproject: dict[str, Any]) -> list[str]:
    project = pyproject.get("project", {})
    extras = project.get("optional-dependencies", {}).values()
    build = pyproject.get("build-system", {}).get("requires", [])
    return [*build, *project.get("dependencies", []), *(name for extra in extras for name in extra)]


def missing_targets(page: Path) -> list[str]:
    targets = MARKDOWN_LINK.findall(page.read_text())
    inside = [target for target in targets if not re.match(r"[a-z]+:", target)]
    return [f"{page.name}: {target}" for target in inside if not (page.parent / target).exists()]


def test_all_packages_have_one_version() -> None:
    versions = {p["project"]["version"] for p in pyprojects() if "project" in p}
    assert len(versions) == 1


def test_packages_depend_on_one_another_in_the_version_they_have() -> None:
    ours = {p["project"]["name"]: p["project"]["version"] for p in pyprojects() if "project" in p}
    named = [Requirement(line) for pyproject in pyprojects() for line in dependencies(pyproject)]
    between = [requirement for requirement in named if requirement.name in ours]
    assert {requirement.name for requirement in between} == {"tacit", "tacit-aggregator"}
    assert [str(r.specifier) for r in between] == [f"=={ours[r.name]}" for r in between]


def test_no_page_tells_to_install_from_an_index_what_is_not_there() -> None:
    texts = {file: file.read_text() for file in our_files() if file.suffix == ".md"}
    assert [str(file) for file, text in texts.items() if NOT_PUBLISHED.search(text)] == []
    assert NOT_PUBLISHED.search("pip install 'tacit[protocol]'")
    assert not NOT_PUBLISHED.search("pip install './core[protocol]' ./services/client_sdk")


def test_the_changelog_speaks_of_the_version_the_packages_have() -> None:
    (version,) = {p["project"]["version"] for p in pyprojects() if "project" in p}
    assert f"## [{version}]" in (ROOT / "CHANGELOG.md").read_text()


def test_torch_is_pinned_without_a_local_version() -> None:
    assert pins()["torch"] == "2.13.0"


def test_every_dependency_is_pinned_to_a_version_it_allows() -> None:
    ours = {canonicalize_name(p["project"]["name"]) for p in pyprojects() if "project" in p}
    named = requirement_lines("requirements-dev.txt")
    named += [line for pyproject in pyprojects() for line in dependencies(pyproject)]
    others = [r for r in map(Requirement, named) if canonicalize_name(r.name) not in ours]
    assert [str(requirement) for requirement in others if not is_pinned(requirement)] == []


def test_no_file_names_a_path_of_one_machine() -> None:
    texts = {file: file.read_bytes().decode(errors="ignore") for file in our_files()}
    assert [str(file) for file, text in texts.items() if MACHINE_PATH.search(text)] == []


def test_a_path_of_one_machine_is_recognised_and_an_address_is_not() -> None:
    home = "/".join(("", "home", "someone", "tacit"))
    assert MACHINE_PATH.search(f"see {home}")
    assert MACHINE_PATH.search(f"file://{home}")
    assert not MACHINE_PATH.search("https://example.org/work/tacit")


def test_links_between_pages_lead_to_files() -> None:
    pages = [file for file in our_files() if file.suffix == ".md"]
    assert [missing for page in pages for missing in missing_targets(page)] == []


def test_a_link_to_nowhere_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("[here](page.md#part) [there](https://example.org) [nowhere](gone.md)")
    assert missing_targets(page) == ["page.md: gone.md"]


def test_the_example_of_the_core_package_runs(tmp_path: Path) -> None:
    (example,) = re.findall(
        r"```python\n(.*?)```", (ROOT / "core/README.md").read_text(), re.DOTALL
    )
    run = subprocess.run(
        [sys.executable, "-c", example], cwd=tmp_path, check=False, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    threshold, sets = run.stdout.split("\n", 1)
    assert 0 < float(threshold) < 1
    assert "True" in sets
