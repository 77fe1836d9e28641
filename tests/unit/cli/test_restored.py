import json
from pathlib import Path

from tacit_client import Home
from tests.support.cli import Site
from tests.support.cli_files import campaign


def test_the_ledger_says_what_everybody_counts_as_having_spent_since_a_copy(tmp_path: Path) -> None:
    site = Site.invited(tmp_path, campaign())
    assert site.join().code == 0
    before = site.run("ledger", "show", "--json").json
    assert (before["restored"], before["least_epsilon"]) == (False, 0.0)
    witness = Home(site.home).witness
    told = json.loads(witness.read_bytes())
    witness.write_text(json.dumps(told | {"sequence": told["sequence"] + 1, "spent": 75 * 10**7}))
    after = site.run("ledger", "show", "--json").json
    assert (after["restored"], after["least_epsilon"], after["most_epsilon"]) == (True, 0.75, 0.75)
    shown = site.run("ledger", "show").out
    assert "0.75, since the copy" in shown
    assert "without a witness is not known" in shown
