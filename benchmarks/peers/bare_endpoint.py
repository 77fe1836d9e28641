"""A bare FastAPI endpoint: `… DATABASE` parses an upload and commits it as one row.

What anyone would write first, and the floor of what it costs to take an upload durably: no token,
no campaign, no check of what the columns hold, nothing counted. It prints its port.
"""

import socket
import sqlite3
import sys

import uvicorn
from fastapi import FastAPI, Request

from tacit.protocol import Upload


def open_database(path: str) -> sqlite3.Connection:
    """A fully synced SQLite file with one table."""
    database = sqlite3.connect(path, isolation_level=None)
    for pragma in ("journal_mode=WAL", "synchronous=FULL"):
        database.execute(f"PRAGMA {pragma}")
    database.execute("CREATE TABLE uploads (upload TEXT, body BLOB)")
    return database


def make_app(database: sqlite3.Connection) -> FastAPI:
    """One route. It commits in the event loop, which is faster here than a hop to a thread."""
    app = FastAPI()

    @app.put("/uploads")
    async def put_upload(request: Request) -> dict[str, str]:
        body = await request.body()
        upload = Upload.model_validate_json(body)
        database.execute("INSERT INTO uploads VALUES (?, ?)", (upload.upload, body))
        return {"upload": upload.upload}

    return app


def main() -> None:
    """Serve with one worker until a signal says to stop."""
    app = make_app(open_database(sys.argv[1]))
    listener = socket.create_server(("127.0.0.1", 0), backlog=2048)
    print(listener.getsockname()[1], flush=True)
    config = uvicorn.Config(
        app,
        http="httptools",
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
    )
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
