"""What the demo itself can fail with."""

from tacit_client.errors import TacitClientError


class DemoFailed(TacitClientError):
    """A process of the demo did not do its part; run it again, with TACIT_DEBUG=1 to see more."""
