"""Documents with an ETag: sent once, and then only when they have changed."""

from collections.abc import Callable, Iterator
from typing import Protocol

from fastapi import Request, Response
from fastapi.responses import StreamingResponse


class Pieces(Protocol):
    """What is too large to be in memory for everybody who fetches it."""

    @property
    def size(self) -> int:
        """How many bytes it has."""

    def pieces(self) -> Iterator[bytes]:
        """The bytes, piece by piece, each made when the one before it has left."""


def document_answer(request: Request, content: str, digest: str, status: int = 200) -> Response:
    """The document, or 304 if the caller says that it has it."""
    headers = _headers(digest)
    if status == 200 and _has(request.headers.get("if-none-match", ""), headers["ETag"]):
        return Response(status_code=304, headers=headers)
    return Response(content, status, headers=headers, media_type="application/json")


def pieces_answer(request: Request, content: Callable[[], Pieces], digest: str) -> Response:
    """A file, looked at only if the caller does not have it, and read as fast as it leaves."""
    headers = _headers(digest)
    if _has(request.headers.get("if-none-match", ""), headers["ETag"]):
        return Response(status_code=304, headers=headers)
    found = content()
    headers["Content-Length"] = str(found.size)
    return StreamingResponse(found.pieces(), headers=headers, media_type="application/octet-stream")


def _headers(digest: str) -> dict[str, str]:
    return {"ETag": f'"{digest}"', "Cache-Control": "private, no-cache"}


def _has(header: str, etag: str) -> bool:
    tags = {tag.strip().removeprefix("W/") for tag in header.split(",")}
    return etag in tags or "*" in tags
