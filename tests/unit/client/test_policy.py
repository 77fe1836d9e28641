from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.protocol import Features
from tacit_client import Home, Policy
from tacit_client.errors import BudgetExceeded, InvalidPolicy, PolicyRefused
from tacit_client.policy import limit_nano, spent_nano
from tests.support.client_world import world


def test_by_default_no_evidence_may_leave() -> None:
    with pytest.raises(PolicyRefused, match="may_leave"):
        Policy().check(world().campaign)


def test_probabilities_may_leave_while_features_may_not() -> None:
    policy = Policy(may_leave=frozenset({"probabilities"}))
    policy.check(world().campaign)
    features = Features(model="0" * 64, dtype="float32", shape=(2,))
    with pytest.raises(PolicyRefused, match="features"):
        policy.check(world(evidence=features).campaign)


def test_an_epsilon_above_the_maximum_is_refused() -> None:
    policy = Policy(may_leave=frozenset({"probabilities"}), max_epsilon=0.5)
    policy.check(world(epsilon=0.5).campaign)
    with pytest.raises(BudgetExceeded):
        policy.check(world(epsilon=0.51).campaign)


@pytest.mark.parametrize("epsilon", [0.1, 0.2, 0.3, 0.7, 1.1, 3.3])
@pytest.mark.parametrize("times", [1, 3, 10])
def test_as_many_records_fit_into_a_maximum_as_decimal_arithmetic_says(
    epsilon: float, times: int
) -> None:
    spent = spent_nano(world(epsilon=epsilon).campaign.channel.epsilon)
    assert times * spent <= limit_nano(round(times * epsilon, 6))
    assert (times + 1) * spent > limit_nano(round(times * epsilon, 6))


@given(st.floats(min_value=1e-12, max_value=1e6))
def test_spending_is_rounded_up_and_limits_down(epsilon: float) -> None:
    assert 0 <= spent_nano(epsilon) - limit_nano(epsilon) <= 1
    assert spent_nano(epsilon) >= 1


def test_a_key_that_is_not_pinned_is_refused() -> None:
    policy = Policy(pinned_keys=frozenset({"a" * 64}))
    policy.check_key("a" * 64)
    with pytest.raises(PolicyRefused, match="pinned_keys"):
        policy.check_key("b" * 64)


def test_a_saved_policy_is_the_policy_of_the_home(tmp_path: Path) -> None:
    policy = Policy(
        may_leave=frozenset({"features"}), max_epsilon=0.3, pinned_keys=frozenset({"a" * 64})
    )
    home = Home(tmp_path / "home")
    assert home.policy() == Policy()
    home.save_policy(policy)
    assert home.policy() == policy


@pytest.mark.parametrize(
    "text",
    [
        "max_epsilon = 0",
        "max_epsilon = -1.0",
        "max_epsilon = nan",
        "max_epsilon = inf",
        'max_epsilon = "4"',
        "max_epsilon = true",
        'may_leave = "features"',
        'may_leave = ["labels"]',
        "may_leave = [1]",
        'methods = ["membership"]',
        'pinned_keys = ["abc"]',
        "epsilon = 4",
        "max_epsilon = ",
    ],
)
def test_a_policy_that_cannot_be_meant_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(text)
    with pytest.raises(InvalidPolicy):
        Policy.load(path)


def test_a_policy_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidPolicy, match="cannot be read"):
        Policy.load(tmp_path / "nothing.toml")
    (tmp_path / "latin.toml").write_bytes(b"# \xe4\n")
    with pytest.raises(InvalidPolicy):
        Policy.load(tmp_path / "latin.toml")
