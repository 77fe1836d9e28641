"""What became of a site's uploads."""

from sqlalchemy import Connection

from tacit.protocol import FieldError, Problems, Receipt, Receipts, UploadState
from tacit_aggregator.campaigns.service import visible
from tacit_aggregator.errors import Refusal
from tacit_aggregator.ingest import queries
from tacit_aggregator.tokens.service import Identity


def receipts(
    connection: Connection, caller: Identity, digest: str, after: str | None, limit: int
) -> Receipts:
    """A page of the caller's receipts, those that follow the upload `after`."""
    visible(connection, caller, digest)
    number = 0
    if after is not None:
        found = queries.number_of(connection, digest, caller.name, after)
        if found is None:
            wrong = FieldError(field="after", message="is not an upload of this site")
            raise Refusal(Problems.INVALID_REQUEST, errors=(wrong,))
        number = found
    rows = queries.receipts(connection, digest, caller.name, after=number, most=limit + 1)
    shown = rows[:limit]
    return Receipts(
        receipts=tuple(
            Receipt(
                upload=row.upload,
                records=row.records,
                state=UploadState(row.state),
                reason=row.reason,
            )
            for row in shown
        ),
        next=shown[-1].upload if len(rows) > limit else None,
    )
