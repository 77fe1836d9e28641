"""The site's own policy: what it lets a campaign ask for, whatever the server says."""

import tomllib
from collections.abc import Iterable, Set
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, isfinite
from pathlib import Path
from typing import Any, Self

from tacit.protocol import Campaign, LabelCampaign
from tacit_client.errors import BudgetExceeded, InvalidPolicy, PolicyRefused

EVIDENCE = frozenset({"features", "probabilities"})
METHODS = frozenset({"labels", "scores"})
_NANO = 10**9


def spent_nano(epsilon: float) -> int:
    """ε as it is written, in units of 10⁻⁹, rounded up: what one record spends."""
    return ceil(Fraction(repr(epsilon)) * _NANO)


def limit_nano(epsilon: float) -> int:
    """ε as it is written, in units of 10⁻⁹, rounded down: the most that may be spent."""
    return floor(Fraction(repr(epsilon)) * _NANO)


@dataclass(frozen=True)
class Policy:
    """What may leave the site, and how much ε each person may spend over all campaigns.

    By default nothing leaves but what is randomized. Score campaigns ask for nothing else; label
    campaigns are refused until `may_leave` names the features or the probabilities that go with
    the labels.
    """

    may_leave: Set[str] = frozenset()
    """Which of "features" and "probabilities" may leave as they are, with randomized labels."""
    max_epsilon: float = 4.0
    """The most ε of one person, over all campaigns in this ledger."""
    methods: Set[str] = METHODS
    """Which kinds of campaigns may be joined: "labels" and "scores"."""
    pinned_keys: Set[str] | None = None
    """Fingerprints of the only keys that may sign; None: the one in the invitation."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "may_leave", _names("may_leave", self.may_leave, EVIDENCE))
        object.__setattr__(self, "methods", _names("methods", self.methods, METHODS))
        if self.pinned_keys is not None:
            object.__setattr__(self, "pinned_keys", _fingerprints(self.pinned_keys))
        object.__setattr__(self, "max_epsilon", _epsilon(self.max_epsilon))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a TOML file with the fields of this class, all of them optional."""
        try:
            fields = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise InvalidPolicy(f"The policy cannot be read: {error.strerror}.") from error
        except ValueError as error:
            raise InvalidPolicy(f"The policy is not valid TOML in UTF-8: {error}") from error
        unknown = fields.keys() - cls.__dataclass_fields__.keys()
        if unknown:
            known = ", ".join(sorted(cls.__dataclass_fields__))
            raise InvalidPolicy(
                f"The policy has unknown fields: {', '.join(sorted(unknown))}. It may have {known}."
            )
        return cls(**fields)

    def to_toml(self) -> str:
        """The policy as `load` reads it."""
        lines = [
            f"may_leave = {_toml_list(self.may_leave)}",
            f"max_epsilon = {self.max_epsilon!r}",
            f"methods = {_toml_list(self.methods)}",
        ]
        if self.pinned_keys is not None:
            lines.append(f"pinned_keys = {_toml_list(self.pinned_keys)}")
        return "\n".join(lines) + "\n"

    @property
    def limit(self) -> int:
        """`max_epsilon` in units of 10⁻⁹, rounded down."""
        return limit_nano(self.max_epsilon)

    def check_key(self, key: str) -> None:
        """Refuse a signing key that is not pinned."""
        if self.pinned_keys is not None and key not in self.pinned_keys:
            raise PolicyRefused(
                "The policy pins other signing keys than this campaign's. Compare the"
                " fingerprint with the owner's; add it to pinned_keys if it is the right one."
            )

    def check(self, campaign: Campaign) -> None:
        """Refuse a campaign whose method, evidence or ε this site does not allow."""
        if campaign.method not in self.methods:
            raise PolicyRefused(
                f"The policy does not allow campaigns of {campaign.method}. If it should, add"
                f' "{campaign.method}" to methods.'
            )
        if isinstance(campaign, LabelCampaign) and campaign.evidence.kind not in self.may_leave:
            raise PolicyRefused(
                f"This campaign asks for {campaign.evidence.kind} as they are, and the policy does"
                f' not let them leave. If they may, add "{campaign.evidence.kind}" to may_leave.'
            )
        if spent_nano(campaign.channel.epsilon) > self.limit:
            raise BudgetExceeded(
                f"One record of this campaign spends ε = {campaign.channel.epsilon:g}; the policy"
                f" allows a person {self.max_epsilon:g} over all campaigns."
            )


def _names(field: str, given: Any, known: frozenset[str]) -> frozenset[str]:
    names = _strings(field, given)
    if not names <= known:
        raise InvalidPolicy(f"{field} is a list of: {', '.join(sorted(known))}.")
    return names


def _fingerprints(given: Any) -> frozenset[str]:
    keys = _strings("pinned_keys", given)
    if any(len(key) != 64 or key.strip("0123456789abcdef") for key in keys):
        raise InvalidPolicy("pinned_keys is a list of fingerprints: 64 hexadecimal digits each.")
    return keys


def _strings(field: str, given: Any) -> frozenset[str]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InvalidPolicy(f"{field} must be a list of strings.")
    names = list(given)
    if not all(isinstance(name, str) for name in names):
        raise InvalidPolicy(f"{field} must be a list of strings.")
    return frozenset(names)


def _epsilon(given: Any) -> float:
    number = isinstance(given, int | float) and not isinstance(given, bool)
    if not number or not isfinite(given) or not 0 < given <= 1e6:
        raise InvalidPolicy("max_epsilon must be a number above 0, and at most a million.")
    return float(given)


def _toml_list(names: Iterable[str]) -> str:
    return "[" + ", ".join(f'"{name}"' for name in sorted(names)) + "]"
