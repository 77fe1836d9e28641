"""Sites without a network: export a bundle, submit it elsewhere, carry the receipt back."""

import os
import zipfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Annotated, Literal

from pydantic import Field, ValidationError

from tacit.protocol import Invitation, sha256_hex
from tacit.protocol.uploads import Count
from tacit.protocol.wire import Digest, Identifier, Name, Wire
from tacit_client.api import Api
from tacit_client.errors import BadBundle, CampaignClosed
from tacit_client.joining import read_invitation
from tacit_client.ledger import JoinedCampaign, Ledger
from tacit_client.ledger.records import drawn_count
from tacit_client.outbox import Outbox, ReportState
from tacit_client.progress import OnProgress, silent
from tacit_client.sending import REFUSALS, enrol
from tacit_client.transport import Network

_MANIFEST = "bundle.json"
_MOST_MANIFEST_BYTES = 64 * 2**20
_MOST_BODY_BYTES = 2**30


class BundledUpload(Wire):
    """An upload in a bundle; its body is the file of that name."""

    upload: Identifier
    records: Annotated[int, Field(ge=1)]
    sha256: Digest


class Bundle(Wire):
    """What a bundle holds. There is no token in it, and nothing that was not drawn."""

    tacit: Literal["bundle"] = "bundle"
    version: Literal["1.0"] = "1.0"
    campaign: Digest
    site: Name
    enrolled: Annotated[int, Field(ge=1)]
    """All records that the site has drawn for the campaign."""
    uploads: tuple[BundledUpload, ...]


SubmittedState = Literal["accepted", "counted", "dropped", "late", "refused"]


class SubmittedUpload(Wire):
    """What the server said of one upload."""

    upload: Identifier
    records: Count
    state: SubmittedState


class Submission(Wire):
    """The receipt of a bundle, to be carried back to the site."""

    tacit: Literal["bundle-receipt"] = "bundle-receipt"
    version: Literal["1.0"] = "1.0"
    campaign: Digest
    uploads: tuple[SubmittedUpload, ...]

    def records(self, state: str) -> int:
        """How many records are in a state."""
        return sum(upload.records for upload in self.uploads if upload.state == state)

    def mark(self, campaign: str, outbox: Outbox) -> None:
        """Write the states into the outbox of the campaign that this is about."""
        if self.campaign != campaign:
            raise BadBundle("This receipt is for another campaign.")
        outbox.mark({upload.upload: ReportState(upload.state) for upload in self.uploads})


def write_bundle(path: Path, ledger: Ledger, joined: JoinedCampaign) -> int:
    """Write all uploads that wait; the file appears whole or not at all. How many there are."""
    outbox = Outbox(ledger, joined.number)
    waiting = outbox.waiting()
    ledger.check_witnessed()
    if not waiting:
        raise BadBundle("Everything that was drawn is acknowledged; there is nothing to export.")
    temporary = path.with_name(path.name + ".part")
    uploads = []
    try:
        with (
            _private(temporary) as file,
            zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive,
        ):
            for entry in waiting:
                body = outbox.body(entry.upload)
                archive.writestr(_member(entry.upload), body)
                uploads.append(
                    BundledUpload(
                        upload=entry.upload, records=entry.records, sha256=sha256_hex(body)
                    )
                )
            bundle = Bundle(
                campaign=joined.digest,
                site=joined.site,
                enrolled=drawn_count(ledger, joined.number),
                uploads=tuple(uploads),
            )
            archive.writestr(_MANIFEST, bundle.model_dump_json())
        temporary.replace(path)
    except OSError as error:
        raise BadBundle(f"The bundle cannot be written: {error.strerror}.") from error
    finally:
        with suppress(OSError):  # where it could not even be made, that was told above
            temporary.unlink(missing_ok=True)
    return len(uploads)


def submit(
    bundle: str | Path,
    invitation: Invitation | str,
    receipt: str | Path | None = None,
    *,
    network: Network | None = None,
    on_progress: OnProgress | None = None,
) -> Submission:
    """Send a bundle with the site's invitation, from a machine that has a network.

    It may be done again after a failure: the server takes each upload once. What became of them is
    returned, and written to `receipt` (default: the bundle's path with `.receipt.json` added) for
    `Contributor.acknowledge`.
    """
    asked, path = read_invitation(invitation), Path(bundle)
    tell = on_progress or silent
    with _OpenBundle.of(path) as opened:
        opened.check_belongs_to(asked)
        with Api(asked.url, asked.token, network) as api:
            submission = _send_all(opened, api, tell)
    target = Path(receipt) if receipt is not None else path.with_name(path.name + ".receipt.json")
    target.write_text(submission.model_dump_json() + "\n", encoding="utf-8")
    return submission


def read_submission(path: Path) -> Submission:
    """The receipt that `submit` wrote."""
    try:
        return Submission.model_validate_json(path.read_bytes())
    except OSError as error:
        raise BadBundle(f"The receipt cannot be read: {error.strerror}.") from error
    except ValidationError:
        raise BadBundle("This is not the receipt of a bundle.") from None


@dataclass(frozen=True)
class _OpenBundle:
    archive: zipfile.ZipFile
    content: Bundle

    @classmethod
    def of(cls, path: Path) -> "_OpenBundle":
        try:
            archive = zipfile.ZipFile(path)
        except (OSError, zipfile.BadZipFile):
            raise BadBundle from None
        try:
            manifest = _read(archive, _MANIFEST, _MOST_MANIFEST_BYTES)
            return cls(archive, Bundle.model_validate_json(manifest))
        except ValidationError:
            archive.close()
            raise BadBundle from None
        except BaseException:
            archive.close()
            raise

    def __enter__(self) -> "_OpenBundle":
        return self

    def __exit__(self, *_: object) -> None:
        self.archive.close()

    def check_belongs_to(self, invitation: Invitation) -> None:
        if self.content.campaign != invitation.campaign or self.content.site != invitation.site:
            raise BadBundle(
                "This bundle is for another campaign or site than the invitation. Use the"
                " invitation that the site joined with."
            )
        for upload in self.content.uploads:
            self.body(upload)

    def body(self, upload: BundledUpload) -> bytes:
        body = _read(self.archive, _member(upload.upload), _MOST_BODY_BYTES)
        if sha256_hex(body) != upload.sha256:
            raise BadBundle("The bundle was changed after it was exported; export it again.")
        return body


def _read(archive: zipfile.ZipFile, name: str, most: int) -> bytes:
    try:
        if archive.getinfo(name).file_size > most:
            raise BadBundle
        return archive.read(name)
    # zipfile says "not implemented" of a compression that it does not know.
    except (KeyError, zipfile.BadZipFile, OSError, NotImplementedError):
        raise BadBundle from None


def _send_all(opened: _OpenBundle, api: Api, on_progress: OnProgress) -> Submission:
    bundle = opened.content
    total, sent = sum(upload.records for upload in bundle.uploads), 0
    on_progress(0, total, "records sent")
    enrol(api, bundle.campaign, bundle.site, bundle.enrolled)
    submitted = []
    for upload in bundle.uploads:
        state = _send(api, bundle.campaign, upload.upload, opened.body(upload))
        submitted.append(SubmittedUpload(upload=upload.upload, records=upload.records, state=state))
        sent += upload.records
        on_progress(sent, total, "records sent")
    return Submission(campaign=bundle.campaign, uploads=tuple(submitted))


def _send(api: Api, campaign: str, upload: str, body: bytes) -> SubmittedState:
    try:
        return api.upload(campaign, upload, body).state.value
    except CampaignClosed:
        return "late"
    except REFUSALS:
        return "refused"


def _private(path: Path) -> IO[bytes]:
    """A new file that only its owner may read."""
    path.unlink(missing_ok=True)
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0)
    return os.fdopen(os.open(path, flags, 0o600), "wb")


def _member(upload: str) -> str:
    return f"uploads/{upload}.json"
