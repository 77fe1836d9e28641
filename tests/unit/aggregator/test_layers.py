"""Who knows whom: what counts and stores does not know that it is asked over HTTP."""

import ast
from pathlib import Path

import tacit_aggregator

PACKAGE = Path(tacit_aggregator.__file__).parent
KNOW_HTTP = {"routes.py", "serving.py"}


def imported(source: str) -> set[str]:
    """The modules that a source names in its imports."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{one.name}" for one in node.names}
        elif isinstance(node, ast.Import):
            found |= {one.name for one in node.names}
    return found


def knows_http(source: str) -> bool:
    return any(name.startswith("tacit_aggregator.http") for name in imported(source))


def test_only_routes_and_whoever_serves_them_know_http() -> None:
    others = [
        file
        for file in PACKAGE.rglob("*.py")
        if file.parent.name != "http" and file.name not in KNOW_HTTP
    ]
    assert len(others) > 40
    assert [str(file.relative_to(PACKAGE)) for file in others if knows_http(file.read_text())] == []


def test_an_import_of_http_is_noticed() -> None:
    assert knows_http("def late():\n    from tacit_aggregator.http import problems")
    assert knows_http("import tacit_aggregator.http.edge")
    assert not knows_http("from tacit_aggregator import metrics")
