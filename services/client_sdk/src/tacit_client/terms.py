"""Terms of a campaign: times with a zone, and what is wrong with terms in a sentence."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

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


def moment_after(name: str, begins: datetime, given: datetime | timedelta) -> datetime:
    """A date, or the moment that is so long after another, cut to a whole second."""
    return whole_second(name, begins + given if isinstance(given, timedelta) else given)


def asked_by(opens: datetime, closes: datetime) -> datetime:
    """When a score campaign that does not say it asks at the latest: after half of its time."""
    return whole_second("enrol_until", opens + (closes - opens) / 2)


def round_seconds(given: timedelta | None, asked: datetime, closes: datetime, rounds: int) -> int:
    """How long a round lasts at most: as given, or so that all fit into the time that is left."""
    if given is not None:
        return int(given.total_seconds())
    return max(1, int((closes - asked).total_seconds() / max(1, rounds)))
