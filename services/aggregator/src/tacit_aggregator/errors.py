"""What the aggregator raises: refusals, which become problem documents, and startup errors."""

from tacit.protocol import FieldError, Problems


class Refusal(Exception):
    """A request is refused; handled in one place, as a problem document.

    `detail` may name parameters, counts and rows, never a label, a feature, a token or a key.
    """

    def __init__(
        self,
        problem: Problems,
        detail: str | None = None,
        *,
        retry_after: float | None = None,
        errors: tuple[FieldError, ...] = (),
    ) -> None:
        self.problem = problem.value
        self.detail = detail or problem.value.title
        self.retry_after = retry_after
        self.errors = errors
        super().__init__(self.detail)


class OperatorError(Exception):
    """Something the operator must put right; a command prints it as a sentence and exits with 1."""
