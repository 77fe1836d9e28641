"""Thresholds that were verified against a pinned key and the terms of their campaign."""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import ValidationError

from tacit.conformal import Calibration, NotCertifiable
from tacit.errors import InvalidDocument, WrongDigest
from tacit.protocol import Campaign, ScoreCampaign, Signed, Threshold, ThresholdKind
from tacit.protocol.wire import Wire
from tacit_client.agreement import check_terms
from tacit_client.errors import NotEnoughRecords, TermsDiffer
from tacit_client.joining import read_signed

_DIGEST = re.compile("[0-9a-f]{12,64}")
"""A digest, or enough of its beginning to tell campaigns apart."""


class ThresholdFile(Wire):
    """A signed threshold with its signed campaign, so that a file can be verified alone."""

    tacit: Literal["verified-threshold"] = "verified-threshold"
    version: Literal["1.0"] = "1.0"
    threshold: Signed
    campaign: Signed


@dataclass(frozen=True)
class VerifiedThreshold:
    """A threshold whose signature, campaign and terms were checked; make one by `verify`."""

    document: Threshold
    campaign: Campaign
    key: str
    """The fingerprint of the key that signed both."""
    file: ThresholdFile

    @property
    def outcome(self) -> Calibration | NotCertifiable:
        """The result: a calibration, or how many records it would take."""
        return self.document.outcome()

    @property
    def calibration(self) -> Calibration:
        """The calibration; `NotEnoughRecords` if there were too few records for one."""
        outcome = self.outcome
        if isinstance(outcome, NotCertifiable):
            raise NotEnoughRecords(
                f"{outcome} Make a new campaign with that many planned"
                + (
                    ", or one without δ, which promises less."
                    if isinstance(self.campaign, ScoreCampaign)
                    else ", or use the nominal threshold, which promises less."
                ),
                needed=outcome.needed,
            )
        return outcome

    def sets(
        self, probabilities: ArrayLike, uniforms: ArrayLike | None = None
    ) -> NDArray[np.bool_]:
        """The prediction sets of new records, as an (n, k) table of memberships."""
        return self.calibration.sets(probabilities, uniforms)

    def save(self, path: str | Path) -> None:
        """Write threshold and campaign, with their signatures, to a file."""
        Path(path).write_text(self.file.model_dump_json() + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path, *, key: str, campaign: str | None = None) -> Self:
        """Read a file that `save` wrote, and verify all of it again."""
        file = _saved(path)
        if file is None:
            raise InvalidDocument("This file does not hold a saved threshold.")
        return cls.verify(file, key=key, campaign=campaign)

    @classmethod
    def verify(
        cls,
        file: ThresholdFile,
        *,
        key: str,
        campaign: str | None = None,
        which: ThresholdKind | None = None,
        clock: Callable[[], float] = time.time,
    ) -> Self:
        """Check signatures, the campaign's digest and every term; anything else is `Untrusted`."""
        terms = file.campaign.open(Campaign, key=key, digest=campaign)
        threshold = file.threshold.open(Threshold, key=key).document
        if threshold.campaign != terms.digest:
            raise WrongDigest("This threshold is of another campaign; do not use it.")
        if which is not None and threshold.which is not which:
            raise TermsDiffer("This is not the kind of threshold that was asked for.")
        check_terms(threshold, terms.document, clock())
        return cls(threshold, terms.document, key, file)


def verify_threshold(
    threshold: Signed | str | Path, *, key: str, campaign: Signed | str | Path | None = None
) -> VerifiedThreshold:
    """Verify a threshold against the pinned key and its campaign.

    `threshold` is a file that `save` wrote, which holds its campaign, or a signed threshold by
    itself. `campaign` is the digest that the campaign must have, or at least its first 12 digits,
    or the signed campaign or its file; a signed threshold by itself needs one of these two.
    """
    digest = campaign if isinstance(campaign, str) and _DIGEST.fullmatch(campaign) else None
    terms = None if campaign is None or digest is not None else _signed_campaign(campaign)
    file = None if isinstance(threshold, Signed) else _saved(threshold)
    if file is None:
        if terms is None:
            raise InvalidDocument(
                "A threshold by itself can be verified only with its signed campaign; give it too."
            )
        signed = threshold if isinstance(threshold, Signed) else read_signed(threshold)
        file = ThresholdFile(threshold=signed, campaign=terms)
    elif terms is not None:
        digest = terms.open(Campaign, key=key).digest
    verified = VerifiedThreshold.verify(file, key=key)
    if digest is not None and not verified.document.campaign.startswith(digest):
        raise WrongDigest("This threshold is of another campaign; do not use it.")
    return verified


def _signed_campaign(campaign: Signed | str | Path) -> Signed:
    if not isinstance(campaign, Signed) and not Path(campaign).exists():
        raise InvalidDocument(
            "A campaign is named by its digest, at least the first 12 digits of it, or by the file"
            " of its signed document; this is neither."
        )
    return read_signed(campaign)


def _saved(path: str | Path) -> ThresholdFile | None:
    """A file that `save` wrote; None if it is something else."""
    try:
        return ThresholdFile.model_validate_json(Path(path).read_bytes())
    except OSError as error:
        raise InvalidDocument(f"The threshold cannot be read: {error.strerror}.") from error
    except ValidationError:
        return None
