"""Documents with an ETag: sent once, and then only when they have changed."""

from fastapi import Request, Response


def document_answer(request: Request, content: str, digest: str, status: int = 200) -> Response:
    """The document, or 304 if the caller says that it has it."""
    headers = {"ETag": f'"{digest}"', "Cache-Control": "private, no-cache"}
    if status == 200 and _has(request.headers.get("if-none-match", ""), headers["ETag"]):
        return Response(status_code=304, headers=headers)
    return Response(content, status, headers=headers, media_type="application/json")


def _has(header: str, etag: str) -> bool:
    tags = {tag.strip().removeprefix("W/") for tag in header.split(",")}
    return etag in tags or "*" in tags
