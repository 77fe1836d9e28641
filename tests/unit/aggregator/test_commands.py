"""The command line: data on standard output, sentences on standard error, exit codes."""

import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from tacit.protocol import Invitation, Probabilities, Role
from tacit_aggregator.settings import Settings
from tacit_aggregator.tokens import service
from tests.support import tiny_models
from tests.unit.aggregator.conftest import Aggregator


def command(folder: Path, *arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Run a command as a process, in a folder, with no other settings."""
    others = {name: value for name, value in os.environ.items() if not name.startswith("TACIT_")}
    return subprocess.run(
        [sys.executable, "-m", "tacit_aggregator", *arguments],
        check=False,
        capture_output=True,
        text=True,
        cwd=folder,
        env={**others, **variables},
        timeout=120,
    )


def data(result: Result) -> Any:
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_migrate_makes_database_secret_and_key_once_and_says_so(tmp_path: Path) -> None:
    first = command(tmp_path, "migrate")
    assert first.returncode == 0
    assert "A secret that encrypts signing keys was made" in first.stderr
    assert "A signing key was made" in first.stderr
    assert {file.name for file in tmp_path.iterdir()} == {
        "tacit-aggregator.db",
        "tacit-aggregator.db.lock",
        "tacit-aggregator.secret",
    }
    again = json.loads(command(tmp_path, "migrate", "--json").stdout)
    assert (again["new_key"], again["new_secret"]) == (False, None)
    assert again["key"] in first.stderr


def test_migrate_in_production_needs_a_secret_that_is_there(tmp_path: Path) -> None:
    refused = command(tmp_path, "migrate", TACIT_ENVIRONMENT="production")
    assert refused.returncode == 1
    assert "TACIT_KEY_SECRET_FILE" in refused.stderr


def test_an_operators_error_is_one_sentence_and_exit_code_1(tmp_path: Path) -> None:
    refused = command(tmp_path, "token", "list")
    assert refused.returncode == 1
    assert refused.stdout == ""
    assert refused.stderr == "There is no database yet; run: tacit-aggregator migrate\n"


def test_a_wrong_setting_is_named_and_its_value_not_shown(tmp_path: Path) -> None:
    refused = command(tmp_path, "keys", "list", TACIT_PORT="hunter2")
    assert refused.returncode == 1
    assert refused.stderr.startswith("TACIT_PORT: ")
    assert "hunter2" not in refused.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["nothing"],
        ["token", "create"],
        ["token", "create", "--role", "king", "--name", "x"],
        ["token", "create", "--role", "owner", "--name", "x", "--expires-days", "0"],
        ["models", "add", "m.pt2", "--name", "x", "--dtype", "uint8", "--shape", "2;3"],
        ["models", "add", "m.pt2", "--name", "x", "--dtype", "complex64", "--shape", "2"],
    ],
)
def test_wrong_usage_is_exit_code_2(aggregator: Aggregator, arguments: list[str]) -> None:
    result = aggregator.run(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""


def test_a_created_token_alone_is_on_standard_output_and_works(aggregator: Aggregator) -> None:
    result = aggregator.run("token", "create", "--role", "owner", "--name", "ada")
    token = result.stdout.strip()
    with aggregator.database.read() as connection:
        found = service.identify(connection, token, 2.0)
    assert found is not None
    assert (found.role, found.name) == (Role.OWNER, "ada")
    assert "shown once" in result.stderr


def test_tokens_are_listed_by_id_and_revoked_by_it(aggregator: Aggregator) -> None:
    created = data(aggregator.run("token", "create", "--role", "admin", "--name", "root", "--json"))
    listed = aggregator.run("token", "list", "--json")
    assert created["token"] not in listed.stdout
    assert [(row["id"], row["state"]) for row in data(listed)] == [(created["id"], "valid")]
    assert data(aggregator.run("token", "revoke", created["id"], "--json"))["state"] == "revoked"
    assert "revoked" in aggregator.run("token", "list").stdout
    assert aggregator.run("token", "revoke", "nothing").exit_code == 1


def test_rotating_puts_the_new_key_first(aggregator: Aggregator) -> None:
    (old,) = data(aggregator.run("keys", "list", "--json"))
    new = aggregator.run("keys", "rotate").stdout.strip()
    rows = data(aggregator.run("keys", "list", "--json"))
    assert [(row["fingerprint"], row["state"]) for row in rows] == [
        (new, "in use"),
        (old["fingerprint"], "retired"),
    ]


def test_an_invitation_holds_all_that_a_site_needs(aggregator: Aggregator) -> None:
    campaign = aggregator.add_campaign(Probabilities())
    key = data(aggregator.run("keys", "list", "--json"))[0]["fingerprint"]
    aggregator.run("keys", "rotate")
    result = aggregator.run(
        "invite", "--campaign", campaign[:10], "--site", "North", "--url", "https://a.example/"
    )
    invitation = Invitation.from_text(result.stdout)
    assert (invitation.url, invitation.key) == ("https://a.example", key)
    assert (invitation.campaign, invitation.site) == (campaign, "North")
    with aggregator.database.read() as connection:
        found = service.identify(connection, invitation.token, 2.0)
    assert found is not None
    assert (found.role, found.name, found.campaign) == (Role.CONTRIBUTOR, "North", campaign)


def test_an_invitation_to_an_address_that_nobody_chose_says_so(aggregator: Aggregator) -> None:
    arguments = ("invite", "--campaign", aggregator.add_campaign(Probabilities()), "--site", "N")
    assumed = aggregator.run(*arguments)
    assert Invitation.from_text(assumed.stdout).url == "http://127.0.0.1:8080"
    assert "http://127.0.0.1:8080, which works on this machine only" in assumed.stderr
    assert "TACIT_PUBLIC_URL" in assumed.stderr
    chosen = aggregator.run(*arguments, "--url", "https://a.example")
    assert "at https://a.example." in chosen.stderr
    assert "TACIT_PUBLIC_URL" not in chosen.stderr


def test_a_site_that_was_invited_before_gets_a_further_token(aggregator: Aggregator) -> None:
    arguments = ("invite", "--campaign", aggregator.add_campaign(Probabilities()), "--site", "N")
    first, second = aggregator.run(*arguments), aggregator.run(*arguments)
    assert "invited before" not in first.stderr
    assert "1 earlier token(s) stay valid" in second.stderr
    tokens = [Invitation.from_text(result.stdout).token for result in (first, second)]
    with aggregator.database.read() as connection:
        assert all(service.identify(connection, token, 2.0) for token in tokens)


def test_an_invitation_in_a_file_is_for_its_owner_and_overwrites_nothing(
    aggregator: Aggregator, tmp_path: Path
) -> None:
    file = tmp_path / "north.invitation"
    arguments = ("invite", "--campaign", aggregator.add_campaign(Probabilities()), "--site", "N")
    written = aggregator.run(*arguments, "--out", str(file))
    assert written.stdout == ""
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    text = file.read_text()
    assert Invitation.from_text(text).site == "N"
    refused = aggregator.run(*arguments, "--out", str(file))
    assert (refused.exit_code, file.read_text()) == (1, text)
    assert len(data(aggregator.run("token", "list", "--json"))) == 1


@pytest.mark.parametrize("state", ["closing", "closed", "abandoned"])
def test_nobody_is_invited_to_a_campaign_that_has_ended(aggregator: Aggregator, state: str) -> None:
    campaign = aggregator.add_campaign(Probabilities(), state=state)
    refused = aggregator.run("invite", "--campaign", campaign, "--site", "N")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "takes no more contributions" in refused.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["--campaign", "", "--site", "N"],
        ["--campaign", "%", "--site", "N"],
        ["--campaign", "zz", "--site", "N"],
    ],
)
def test_nobody_is_invited_to_a_campaign_that_is_not_there(
    aggregator: Aggregator, arguments: list[str]
) -> None:
    aggregator.add_campaign(Probabilities())
    refused = aggregator.run("invite", *arguments)
    assert refused.exit_code == 1
    assert "No campaign has a digest" in refused.stderr


@pytest.mark.parametrize("arguments", [["--site", " N"], ["--site", "N", "--url", "ftp://x"]])
def test_an_invitation_that_no_site_could_use_is_not_made(
    aggregator: Aggregator, arguments: list[str]
) -> None:
    campaign = aggregator.add_campaign(Probabilities())
    assert aggregator.run("invite", "--campaign", campaign, *arguments).exit_code == 1
    assert data(aggregator.run("token", "list", "--json")) == []


def test_a_model_is_added_listed_and_removed(aggregator: Aggregator, tmp_path: Path) -> None:
    file = tiny_models.save_onnx(tmp_path / "m.onnx")
    options = ("--name", "tiny", "--dtype", "uint8", "--shape", "4,2")
    added = data(aggregator.run("models", "add", str(file), *options, "--json"))
    assert (added["classes"], added["format"], added["outputs"]) == (3, "onnx", "logits")
    assert data(aggregator.run("models", "list", "--json")) == [added]
    assert added["digest"] in aggregator.run("models", "list").stdout
    assert aggregator.run("models", "remove", "").exit_code == 1
    assert aggregator.run("models", "remove", added["digest"]).exit_code == 0
    assert aggregator.run("models", "remove", added["digest"]).exit_code == 1


def test_a_model_that_cannot_be_used_is_a_sentence(aggregator: Aggregator, tmp_path: Path) -> None:
    options = ("--name", "tiny", "--dtype", "uint8", "--shape", "4,2")
    (tmp_path / "m.onnx").write_bytes(b"nothing")
    for file in ("m.onnx", "missing.onnx", "m"):
        refused = aggregator.run("models", "add", str(tmp_path / file), *options)
        assert refused.exit_code == 1
        assert refused.stderr.count("\n") == 1
    assert data(aggregator.run("models", "list", "--json")) == []


def test_an_exported_program_that_is_none_is_a_sentence_without_a_traceback(
    tmp_path: Path,
) -> None:
    assert command(tmp_path, "migrate").returncode == 0
    (tmp_path / "m.pt2").write_bytes(b"no program")
    options = ("--name", "tiny", "--dtype", "uint8", "--shape", "4,2")
    refused = command(tmp_path, "models", "add", "m.pt2", *options)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.startswith("The model tiny cannot be loaded as pt2")
    assert refused.stderr.count("\n") == 1


def test_the_help_says_that_exported_programs_are_code(aggregator: Aggregator) -> None:
    assert "is code" in aggregator.run("models", "add", "--help").stdout


def test_the_reference_names_every_setting_and_every_command(aggregator: Aggregator) -> None:
    page = (Path(__file__).parents[3] / "docs/reference/aggregator.md").read_text()
    settings = {f"TACIT_{name.upper()}" for name in Settings.model_fields}
    assert settings <= set(re.findall(r"TACIT_[A-Z_]+", page))
    for name in ("serve", "migrate", "token", "invite", "keys", "models"):
        assert aggregator.run(name, "--help").exit_code == 0
        assert f"| `{name}" in page
