"""The table of kill points names every commit and every request in the sources, and only those."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.kill_points import NAMED, POINTS, Story, kills

ROOT = Path(__file__).parents[2]
PACKAGES = {
    "tacit_aggregator": ROOT / "services/aggregator/src/tacit_aggregator",
    "tacit_client": ROOT / "services/client_sdk/src/tacit_client",
}
# How a commit or a request is named: the method that is called, in which package.
ROOMS = {
    ("tacit_aggregator", "transaction"): "database",
    ("tacit_client", "transaction"): "ledger",
    ("tacit_client", "send"): "transport",
}
# The only files that may commit or send in any other way, since they are what the names stand for.
UNNAMED_WAYS = {
    "tacit_aggregator/database/engine.py",  # Database.transaction itself
    "tacit_aggregator/database/sqlite.py",  # how it begins on SQLite, and the point "erase log"
    "tacit_client/ledger/ledger.py",  # Ledger.transaction itself
    "tacit_client/ledger/schema.py",  # the ledger's tables: the kill point "make ledger"
    "tacit_client/transport.py",  # Transport.send itself
    "tacit_client/demo/wire.py",  # relays what parties of the demo have sent, and sends nothing
}
METHODS = {"commit", "begin", "begin_nested", "executescript", "raw_connection", "savepoint"}
FUNCTIONS = {
    "sqlite3.connect",
    "psycopg.connect",
    "create_engine",
    "sqlalchemy.create_engine",
    "sessionmaker",
}
CLIENTS_OF_HTTP = {"httpx", "requests", "urllib.request", "http.client", "aiohttp", "urllib3"}
SENDS_NOTHING = {"urllib.request.getproxies"}
RAW_SQL = re.compile(r"^\s*(BEGIN|COMMIT|END TRANSACTION|SAVEPOINT)\b|wal_checkpoint")


def sources() -> Iterator[tuple[str, str, ast.Module]]:
    for package, folder in PACKAGES.items():
        for file in sorted(folder.rglob("*.py")):
            name = f"{package}/{file.relative_to(folder).as_posix()}"
            yield package, name, ast.parse(file.read_text(encoding="utf-8"))


def named_calls(package: str, tree: ast.Module) -> Iterator[tuple[str, str | None]]:
    """Room and name of every commit and request; None if the name is not written there."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        room = ROOMS.get((package, node.func.attr))
        if room is not None:
            match node.args:
                case [ast.Constant(value=str(name)), *_]:
                    yield room, name
                case _:
                    yield room, None


def unnamed_ways(tree: ast.Module) -> Iterator[str]:
    """Everything by which one could commit or send without a name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if called in FUNCTIONS or called.rpartition(".")[2] in METHODS:
                yield f"line {node.lineno}: {called}"
        elif isinstance(node, ast.Import | ast.ImportFrom):
            modules = {alias.name for alias in node.names}
            if isinstance(node, ast.ImportFrom):
                modules = {f"{node.module}.{name}" for name in modules}
            for module in sorted(modules - SENDS_NOTHING):
                if any(f"{module}.".startswith(f"{client}.") for client in CLIENTS_OF_HTTP):
                    yield f"line {node.lineno}: import {module}"
        elif isinstance(node, ast.Constant) and RAW_SQL.search(str(node.value)):
            yield f"line {node.lineno}: {node.value!r}"


def found_in_sources() -> "Counter[tuple[str, str | None]]":
    return Counter(call for package, _, tree in sources() for call in named_calls(package, tree))


def test_every_commit_and_every_request_in_the_sources_has_a_kill_point() -> None:
    found = set(found_in_sources())
    table = {(point.room, point.name) for point in NAMED}
    assert found - table == set(), "give these a line in tests/e2e/kill_points.py"


def test_every_kill_point_is_still_in_the_sources() -> None:
    found = set(found_in_sources())
    table = {(point.room, point.name) for point in NAMED}
    assert table - found == set(), "nothing in the sources has these names any more"


def test_every_commit_and_every_request_has_a_name_of_its_own() -> None:
    twice = {call for call, count in found_in_sources().items() if count > 1}
    assert twice == set()


def test_nothing_commits_or_sends_without_a_name() -> None:
    found = {name: list(unnamed_ways(tree)) for _, name, tree in sources()}
    outside = {name: ways for name, ways in found.items() if ways and name not in UNNAMED_WAYS}
    assert outside == {}
    assert all(found[name] for name in UNNAMED_WAYS), "a file in UNNAMED_WAYS needs no exception"


@pytest.mark.parametrize(
    "source",
    [
        "connection.commit()",
        "with engine.begin() as connection: pass",
        "connection.execute('COMMIT')",
        "connection.execute('PRAGMA wal_checkpoint(TRUNCATE)')",
        "sqlite3.connect(file)",
        "psycopg.connect(url)",
        "import httpx",
        "from urllib.request import urlopen",
        "from urllib import request",
    ],
)
def test_the_search_finds_each_way_to_commit_or_send_without_a_name(source: str) -> None:
    assert list(unnamed_ways(ast.parse(source)))


def test_the_search_notices_a_name_that_is_not_written_where_it_is_used() -> None:
    tree = ast.parse("with database.transaction(name) as connection: pass")
    assert list(named_calls("tacit_aggregator", tree)) == [("database", None)]


def test_every_story_is_told_by_one_test_at_every_kill_point_of_it() -> None:
    told = Counter(
        story
        for file in sorted(Path(__file__).parent.glob("test_killed_*.py"))
        for story in re.findall(r"@killed_at\(Story\.(\w+)\)", file.read_text(encoding="utf-8"))
    )
    assert told == Counter(story.name for story in Story)
    assert all(kills(story) for story in Story)
    assert len(set(POINTS)) == len(POINTS)
