"""Names of owners, sites and models, as the operator types them."""

from pydantic import TypeAdapter, ValidationError

from tacit.protocol.wire import Name
from tacit_aggregator.errors import OperatorError

_NAME: TypeAdapter[str] = TypeAdapter(Name)


def check_name(name: str) -> None:
    """Refuse what the protocol does not take for a name."""
    try:
        _NAME.validate_python(name)
    except ValidationError:
        raise OperatorError(
            "A name has 1 to 100 printable characters and no space at either end."
        ) from None
