"""An upload on its way into the database."""

import hashlib
from dataclasses import dataclass
from functools import cached_property

from tacit.protocol import FieldError, LabelCampaign, Problems, Reports, Upload, UploadState
from tacit_aggregator.errors import Refusal
from tacit_aggregator.messages import read_model


@dataclass(frozen=True, eq=False, repr=False)
class Submission:
    """A checked upload; its columns are bytes as the database keeps them."""

    campaign: str
    site: str
    upload: str
    body_hash: bytes
    records: int
    labels: bytes
    evidence: bytes
    evidence_dtype: str
    uniforms: bytes | None

    @cached_property
    def size(self) -> int:
        """The bytes that wait to be counted."""
        return len(self.labels) + len(self.evidence) + len(self.uniforms or b"")

    @classmethod
    def of(
        cls, body: bytes, terms: LabelCampaign, *, campaign: str, site: str, upload: str
    ) -> "Submission":
        """Check a body against its address and its campaign's terms."""
        content = read_model(Upload, body)
        if content.campaign != campaign:
            raise Refusal(Problems.WRONG_DIGEST)
        if content.upload != upload:
            wrong = FieldError(field="upload", message="must be the upload of the address")
            raise Refusal(Problems.INVALID_REQUEST, errors=(wrong,))
        reports = Reports.of(content, terms)
        return cls(
            campaign=campaign,
            site=site,
            upload=upload,
            body_hash=hashlib.sha256(body).digest(),
            records=len(reports),
            labels=reports.labels.tobytes(),
            evidence=reports.evidence.tobytes(),
            evidence_dtype=reports.evidence.dtype.name,
            uniforms=None if reports.uniforms is None else reports.uniforms.tobytes(),
        )


@dataclass(frozen=True)
class Stored:
    """What became of an upload that is in the database."""

    state: UploadState
    reason: str | None = None
