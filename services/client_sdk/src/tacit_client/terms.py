"""Terms of a campaign: times with a zone, and what is wrong with terms in a sentence."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from pydantic import ValidationError

from tacit.protocol.wire import field_errors
from tacit_client.errors import BadTerms


@contextmanager
def checked_terms() -> Iterator[None]:
    """Within it, terms that make no campaign are `BadTerms`."""
    try:
        yield
    except ValidationError as error:
        wrong = "; ".join(
            # What several terms do wrong together belongs to no field, but to the whole document.
            message if field == "body" else f"{field}: {message}"
            for field, message in field_errors(error)
        )
        raise BadTerms(f"These terms make no campaign: {wrong}.") from None


def whole_second(name: str, moment: datetime) -> datetime:
    """The moment in UTC, cut to a whole second; one without a zone could be any, and is refused."""
    if moment.utcoffset() is None:
        raise BadTerms(f"{name} has no time zone: say which, as in datetime(…, tzinfo=UTC).")
    return moment.astimezone(UTC).replace(microsecond=0)
