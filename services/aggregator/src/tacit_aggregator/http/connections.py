"""Connections: uvicorn's, with a bound on what a request may say before its body."""

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MOST_HEAD_BYTES = 2**16


class Connection(HttpToolsProtocol):
    """Hangs up on a head without end, which would otherwise be kept in memory, token or not."""

    _in_head = False
    _head_bytes = 0

    def data_received(self, data: bytes) -> None:
        """Feed the parser; refuse when it still waits for the end of a head that is too long."""
        goes_on = self._in_head
        super().data_received(data)
        if goes_on and self._in_head:
            self._head_bytes += len(data)
            if self._head_bytes > MOST_HEAD_BYTES:
                self._in_head = False
                self.send_400_response("The headers are too long.")

    def on_message_begin(self) -> None:
        """A head begins."""
        self._in_head = True
        self._head_bytes = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """It has ended."""
        self._in_head = False
        super().on_headers_complete()
