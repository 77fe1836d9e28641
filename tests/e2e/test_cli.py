"""The command line against a real aggregator: its main path as processes."""

import csv
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from tacit.protocol import Role
from tacit_client import Ledger
from tacit_client.cli.app import app
from tacit_client.testing import RunningAggregator
from tests.support.cli import Ended
from tests.support.nimble import NimbleAggregator

CLASSES = ("cat", "dog", "owl")
RECORDS = 300


@dataclass(frozen=True)
class Person:
    """Somebody with a home and an environment, who runs `tacit`."""

    home: Path
    environment: dict[str, str] = field(default_factory=dict, repr=False)

    def tacit(self, *arguments: str | Path, code: int = 0) -> Ended:
        """Run a command in this process, which is quicker."""
        others = {name: None for name in os.environ if name.startswith("TACIT_")}
        environment = {**others, "TACIT_HOME": str(self.home), **self.environment}
        result = CliRunner().invoke(app, [str(each) for each in arguments], env=environment)
        assert result.exit_code == code, result.stderr
        return Ended(result.exit_code, result.stdout, result.stderr)

    def process(self, *arguments: str | Path, code: int = 0) -> Ended:
        """Run a command as people do."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith("TACIT_")}
        ended = subprocess.run(
            [sys.executable, "-m", "tacit_client.cli", *map(str, arguments)],
            env={**clean, "TACIT_HOME": str(self.home), **self.environment},
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=120,
            check=False,
        )
        assert ended.returncode == code, ended.stderr
        return Ended(ended.returncode, ended.stdout, ended.stderr)


@dataclass(frozen=True)
class World:
    aggregator: RunningAggregator
    owner: Person
    folder: Path

    def create(self, *options: str, title: str = "Animals") -> str:
        terms = ("--title", title, "--classes", ",".join(CLASSES), "--epsilon", "4")
        sizes = ("--planned-n", str(2 * RECORDS), "--closes", "1h", "--alpha", "0.2")
        created = self.owner.tacit("campaign", "create", *terms, *sizes, *options, "--json")
        return str(created.json["campaign"])

    def counted(self, digest: str, records: int) -> None:
        """Wait until so many are counted; bounded by a minute."""
        with self.aggregator.owner("lab") as owner:
            statuses = owner.follow(digest, every=0.05, timeout=60)
            assert any(status.records.counted == records for status in statuses)

    def site(self, digest: str, name: str) -> tuple[Person, Path]:
        """A site of this name with its invitation."""
        invitation = self.folder / f"{name}-{digest[:8]}.txt"
        invitation.write_text(self.aggregator.invitation(digest, name).to_text())
        return Person(self.folder / f"{name}-{digest[:8]}"), invitation


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("cli")
    with NimbleAggregator(folder) as aggregator:
        token = aggregator.token(Role.OWNER, "lab")
        environment = {"TACIT_URL": aggregator.url, "TACIT_KEY": aggregator.key}
        owner = Person(folder / "owner", {**environment, "TACIT_TOKEN": token})
        yield World(aggregator, owner, folder)


def probabilities(seed: int, n: int = RECORDS) -> tuple[np.ndarray, np.ndarray]:
    """Records of a model that is right most of the time."""
    generator = np.random.default_rng(seed)
    table = generator.dirichlet((0.3, 0.3, 0.3), n)
    labels = np.array([generator.choice(3, p=row) for row in table])
    return table, labels


def csv_file(path: Path, seed: int, name: str) -> Path:
    table, labels = probabilities(seed)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "label", *(f"p_{each}" for each in CLASSES)])
        for row, (label, numbers) in enumerate(zip(labels, table, strict=True)):
            writer.writerow([f"{name}-{row}", CLASSES[label], *numbers])
    return path


def npz_file(path: Path, seed: int, name: str) -> Path:
    table, labels = probabilities(seed)
    ids = np.array([f"{name}-{row}" for row in range(len(labels))])
    np.savez(path, labels=labels, ids=ids, probabilities=table)
    return path


def test_from_two_sites_files_to_prediction_sets(world: World, tmp_path: Path) -> None:
    digest = world.create("--delta", "0.2")
    files = (csv_file(tmp_path / "n.csv", 1, "n"), npz_file(tmp_path / "s.npz", 2, "s"))
    sites = [world.site(digest, name) for name in ("north", "south")]
    waiting = world.owner.process("threshold", "get", digest[:10], "--json", code=4)
    assert waiting.json["error"] == "NotReady"
    assert "No record is counted yet" in waiting.json["message"]
    assert "--wait" in waiting.json["message"]
    for (site, invitation), file in zip(sites, files, strict=True):
        site.process("join", invitation, "--may-leave", "probabilities")
        contributed = site.process("contribute", file, "--json")
        assert contributed.json["drawn"] == contributed.json["accepted"] == RECORDS
        assert "Only the label is protected" in contributed.err

    saved = tmp_path / "threshold.json"
    get = ("threshold", "get", digest[:10], "--which", "starred", "--wait", "60", "-o", saved)
    summary = world.owner.process(*get)
    for words in ("600 from 2 sites", "a comparison, no certificate", "ε protects", "Verified"):
        assert words in " ".join(summary.out.split())
    assert world.owner.process("threshold", "verify", saved, "--json").json["verified"] is True

    output = tmp_path / "sets.csv"
    predict = ("predict", files[0], "--threshold", saved)
    predicted = world.owner.process(*predict, "-o", output, "--json").json
    with output.open(newline="") as written:
        rows = list(csv.DictReader(written))
    assert len(rows) == predicted["records"] == RECORDS
    labels = probabilities(1)[1]
    covered = [
        CLASSES[label] in row["set"].split("|") for label, row in zip(labels, rows, strict=True)
    ]
    assert np.mean(covered) > 0.7
    first = world.owner.process(*predict, "--json").json["sets"][0]
    assert first == {"id": "n-0", "set": [name for name in rows[0]["set"].split("|") if name]}

    status = sites[0][0].process("status", "--json").json["campaigns"][0]
    assert status["records"]["counted"] == RECORDS
    assert status["membership"] == "ended"
    assert "Animals" in world.owner.process("campaign", "list").out


def test_a_second_contribution_of_the_same_file_draws_nothing(world: World, tmp_path: Path) -> None:
    digest = world.create(title="Twice")
    site, invitation = world.site(digest, "north")
    site.tacit("join", invitation, "--may-leave", "probabilities")
    file = csv_file(tmp_path / "n.csv", 1, "n")
    assert site.tacit("contribute", file, "--json").json["drawn"] == RECORDS
    again = site.tacit("contribute", file, "--json").json
    assert (again["drawn"], again["already"], again["accepted"]) == (0, RECORDS, 0)
    assert site.tacit("contribute", "--resend", "--json").json["uploads"] == 0
    nothing = site.tacit("contribute", "--resend", "--quiet")
    assert (nothing.out, nothing.err) == ("Nothing waits to be sent.\n", "")
    shown = world.owner.tacit("campaign", "show", digest, "--json").json
    assert shown["status"]["records"]["received"] == RECORDS


def test_a_site_without_network_takes_part_by_files(world: World, tmp_path: Path) -> None:
    digest = world.create(title="Far away")
    site, invitation = world.site(digest, "island")
    signed, bundle = tmp_path / "campaign.json", tmp_path / "bundle.zip"
    world.owner.tacit("campaign", "show", digest, "--signed", signed)
    site.tacit("join", invitation, "--campaign", signed, "--may-leave", "probabilities")
    file = csv_file(tmp_path / "i.csv", 3, "i")
    site.tacit("export", file, "-o", bundle)
    courier = Person(tmp_path / "courier")
    sent = courier.tacit("submit", bundle, "--invitation", invitation, "--json").json
    assert sent["records"]["accepted"] + sent["records"]["counted"] == RECORDS
    acknowledged = site.tacit("acknowledge", sent["receipt"], "--json").json
    assert acknowledged["records"]["drawn"] == 0
    assert not (tmp_path / "courier").exists()


def test_before_a_campaign_opens_nothing_is_drawn_and_it_is_said_to_try_later(
    world: World, tmp_path: Path
) -> None:
    digest = world.create("--opens", "12h", title="Tomorrow")
    site, invitation = world.site(digest, "north")
    site.tacit("join", invitation, "--may-leave", "probabilities")
    early = site.tacit("contribute", csv_file(tmp_path / "n.csv", 1, "n"), "--json", code=4)
    assert early.json["error"] == "NotYetOpen"
    shown = site.tacit("ledger", "show", "--json").json
    assert sum(shown["campaigns"][0]["records"].values()) == 0


def test_leaving_and_closing(world: World, tmp_path: Path) -> None:
    digest = world.create(title="Short")
    site, invitation = world.site(digest, "north")
    site.tacit("join", invitation, "--may-leave", "probabilities")
    site.tacit("contribute", csv_file(tmp_path / "n.csv", 1, "n"))
    assert site.tacit("leave", "--yes", "--json").json["state"] == "left"
    assert "AlreadyLeft" in site.tacit("contribute", "--resend", "--json", code=3).out
    refused = world.owner.tacit("campaign", "close", digest, code=2)
    assert "--yes" in refused.err
    closed = world.owner.tacit("campaign", "close", digest, "--yes", "--json").json
    assert closed["closed_by"] == "hand"
    never = world.owner.tacit("threshold", "get", digest, "--which", "starred", "--json", code=5)
    assert never.json["error"] == "NoThreshold"
    abandoned = world.create(title="Abandoned")
    state = world.owner.tacit("campaign", "abandon", abandoned, "--yes", "--json").json["state"]
    assert state == "abandoned"


def test_following_goes_on_until_the_campaign_is_over(world: World, tmp_path: Path) -> None:
    digest = world.create(title="Followed")
    site, invitation = world.site(digest, "north")
    site.tacit("join", invitation, "--may-leave", "probabilities")
    site.tacit("contribute", csv_file(tmp_path / "n.csv", 1, "n"))
    world.owner.tacit("campaign", "close", digest, "--yes")
    lines = site.tacit("status", "--follow", "--every", "0.2", "--json").out.splitlines()
    assert json.loads(lines[-1])["membership"] == "ended"


def test_wrong_keys_tokens_and_changed_files_are_refused(world: World, tmp_path: Path) -> None:
    digest = world.create("--delta", "0.2", title="Watched")
    site, invitation = world.site(digest, "north")
    site.tacit("join", invitation, "--may-leave", "probabilities")
    site.tacit("contribute", csv_file(tmp_path / "n.csv", 1, "n"))
    saved = tmp_path / "threshold.json"
    world.counted(digest, RECORDS)
    early = world.owner.tacit("threshold", "get", digest, "--wait", "0.2", "--json", code=4)
    assert early.json["error"] == "NotOver"
    world.owner.tacit("threshold", "get", digest, "-o", saved)
    predicted = world.owner.tacit("predict", tmp_path / "n.csv", "--threshold", saved, "--json")
    assert predicted.json["final"] is False
    assert "this threshold is not final" in predicted.err
    for beginning in (digest, digest[:12]):
        world.owner.tacit("threshold", "verify", saved, "--campaign", beginning)
    short = world.owner.tacit("threshold", "verify", saved, "--campaign", digest[:6], code=2)
    assert "at least the first 12 digits" in short.err
    other = "0" * 64
    for arguments in (("--key", other), ("--campaign", other)):
        refused = world.owner.tacit("threshold", "verify", saved, *arguments, "--json", code=6)
        assert refused.json["exit_code"] == 6
    changed = tmp_path / "changed.json"
    changed.write_text(saved.read_text().replace("Watched", "Matched"))
    world.owner.tacit("threshold", "verify", changed, code=6)
    world.owner.tacit("predict", tmp_path / "n.csv", "--threshold", changed, code=6)

    token = "tacit_" + "x" * 43
    stranger = Person(world.owner.home, {**world.owner.environment, "TACIT_TOKEN": token})
    refused = stranger.tacit("campaign", "list", "--json", code=5)
    assert refused.json["error"] == "Unauthenticated"
    assert token not in refused.out + refused.err
    nobody = Person(world.owner.home)
    assert "TACIT_TOKEN" in nobody.tacit("campaign", "list", code=2).err


def test_address_and_key_are_remembered_and_the_token_is_not(world: World, tmp_path: Path) -> None:
    token_file = tmp_path / "token"
    token_file.write_text(world.owner.environment["TACIT_TOKEN"] + "\n")
    first = Person(tmp_path / "home", {**world.owner.environment, "TACIT_TOKEN": ""})
    first.tacit("campaign", "list", "--token-file", token_file)
    later = Person(tmp_path / "home")
    later.tacit("campaign", "list", "--token-file", token_file)
    kept = [path.read_text() for path in (tmp_path / "home").rglob("*") if path.is_file()]
    assert kept
    assert not any(token_file.read_text().strip() in text for text in kept)


@pytest.mark.parametrize(
    "command", [("list",), ("show", "*"), ("close", "*", "--yes"), ("abandon", "*", "--yes")]
)
def test_a_wrong_pinned_key_does_nothing_and_is_not_remembered(
    world: World, tmp_path: Path, command: tuple[str, ...]
) -> None:
    digest = world.create(title="Kept")
    wrong = Person(tmp_path / "home", {**world.owner.environment, "TACIT_KEY": "0" * 64})
    arguments = [digest if word == "*" else word for word in command]
    refused = wrong.tacit("campaign", *arguments, "--json", code=6)
    assert refused.json["error"] == "WrongKey"
    assert not (tmp_path / "home" / "server.json").exists()
    shown = world.owner.tacit("campaign", "show", digest, "--json").json
    assert shown["status"]["state"] == "open"


def test_what_all_came_too_late_is_said_and_exit_code_five(world: World, tmp_path: Path) -> None:
    digest = world.create(title="Late")
    site, invitation = world.site(digest, "north")
    site.tacit("join", invitation, "--may-leave", "probabilities")
    site.tacit("export", csv_file(tmp_path / "n.csv", 1, "n"), "-o", tmp_path / "bundle.zip")
    world.owner.tacit("campaign", "close", digest, "--yes")
    late = site.tacit("contribute", "--resend", code=5)
    assert f"All {RECORDS} records came too late" in late.out
    assert "accepted" not in late.out
    over = site.tacit("contribute", csv_file(tmp_path / "m.csv", 2, "m"), "--json", code=5)
    assert over.json["error"] == "CampaignEnded"


def test_a_plan_too_small_for_a_starred_threshold_is_warned_of_and_ends_with_none(
    world: World, tmp_path: Path
) -> None:
    small = ("--delta", "0.2", "--planned-n", str(RECORDS), "--epsilon", "1", "--alpha", "0.05")
    classes = ("--classes", ",".join(CLASSES))
    create = ("campaign", "create", "--title", "Few", *classes, "--closes", "1h", *small)
    tried = world.owner.tacit(*create, "--dry-run", "--json")
    needed = tried.json["starred_needs"]
    assert needed > RECORDS
    assert f"a starred threshold takes {needed:,} records" in tried.err
    enough = (*create, "--planned-n", str(needed), "--dry-run", "--json")
    assert world.owner.tacit(*enough).err == ""
    created = world.owner.tacit(*create)
    assert f"takes {needed:,} records" in created.err
    assert "--which starred --wait 3600" in created.out
    digest = world.owner.tacit("campaign", "list", "--json").json["campaigns"][0]["campaign"]
    site, invitation = world.site(digest, "north")
    site.tacit("join", invitation, "--may-leave", "probabilities")
    file = csv_file(tmp_path / "n.csv", 1, "n")
    site.tacit("contribute", file)
    saved = tmp_path / "threshold.json"
    get = ("threshold", "get", digest, "--which", "starred", "--wait", "60", "-o", saved)
    none = world.owner.tacit(*get, code=5)
    assert "There is no threshold to use" in none.out
    assert f"{needed}" in none.out.replace(",", "")
    assert "There is no threshold to use" in world.owner.tacit("threshold", "verify", saved).out
    world.owner.tacit("predict", file, "--threshold", saved, code=5)


def test_a_dry_run_of_create_publishes_nothing(world: World) -> None:
    digest = world.create("--dry-run", title="Never")
    world.owner.tacit("campaign", "show", digest, code=2)
    assert "Never" not in world.owner.tacit("campaign", "list").out


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--alpha", "2"), "α"),
        (("--closes", "2020-01-01"), "open before it closes"),
        (("--score", "lac"), "There are: hps"),
        (("--features", "uint7:3", "--model", "0" * 64), "dtype"),
    ],
)
def test_terms_that_make_no_campaign_are_one_sentence(
    world: World, options: tuple[str, ...], says: str
) -> None:
    terms = ("--title", "Bad", "--k", "3", "--epsilon", "1", "--planned-n", "10", "--closes", "1h")
    refused = world.owner.tacit("campaign", "create", *terms, *options, code=2)
    assert says in refused.err
    assert "body" not in refused.err
    assert refused.err.count("\n") == 1


def test_a_doctor_finds_nothing_at_a_healthy_site(world: World) -> None:
    digest = world.create(title="Healthy")
    site, invitation = world.site(digest, "north")
    site.tacit("join", invitation, "--may-leave", "probabilities")
    found = site.tacit("doctor", "--json").json
    assert found["ok"] is True
    names = [check["name"] for check in found["checks"]]
    for name in ("server", "clock", "key", "ledger", "versions", "proxy", "certificates", "token"):
        assert name in names
    with Ledger.open(site.home):
        held = site.process("doctor", "--json", code=3).json
    problem = next(check for check in held["checks"] if check["state"] == "problem")
    assert problem["name"] == "ledger"
    assert problem["fix"]


def test_a_doctor_says_what_is_wrong_and_how_to_mend_it(world: World, tmp_path: Path) -> None:
    url = world.aggregator.url
    fresh = Person(tmp_path / "fresh")
    assert "not checked" in fresh.tacit("doctor").out
    assert fresh.tacit("doctor", "--json").json["not_checked"] == ["server"]
    wrong_key = fresh.tacit("doctor", "--url", url, "--key", "0" * 64, code=6)
    assert "Send nothing" in wrong_key.out
    assert fresh.tacit("doctor", "--url", url, "--key", world.aggregator.key).code == 0
    bundle = fresh.tacit("doctor", "--ca-bundle", tmp_path / "none.pem", code=4)
    assert "--ca-bundle" in bundle.out
    assert not fresh.home.exists()
    fresh.home.mkdir()
    (fresh.home / "policy.toml").write_text("max_epsilon = 'much'\n")
    assert "policy.toml" in fresh.tacit("doctor", code=2).out
    (fresh.home / "policy.toml").unlink()
    (fresh.home / "ledger.db").write_bytes(b"this is no database, " * 100)
    damaged = fresh.tacit("doctor", "--json", code=3).json
    assert "damaged" in next(c["problem"] for c in damaged["checks"] if c["name"] == "ledger")
