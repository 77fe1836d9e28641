"""A bare FastAPI endpoint: `… DATABASE` parses an upload and commits it as one row.

What anyone would write first, and the floor of what it costs to take an upload durably: no token,
no campaign, no check of what the columns hold, nothing counted. DATABASE is a SQLite file or a
postgresql:// URL. It prints its port.
"""

import socket
import sqlite3
import sys
from collections.abc import Callable

import uvicorn
from fastapi import FastAPI, Request

from tacit.protocol import AnswerUpload, Upload

Store = Callable[[str, bytes], object]
"""Commit one upload, durably."""


def sqlite_store(path: str) -> Store:
    """A fully synced SQLite file with one table."""
    database = sqlite3.connect(path, isolation_level=None)
    for pragma in ("journal_mode=WAL", "synchronous=FULL"):
        database.execute(f"PRAGMA {pragma}")
    database.execute("CREATE TABLE uploads (upload TEXT, body BLOB)")
    return lambda upload, body: database.execute(
        "INSERT INTO uploads VALUES (?, ?)", (upload, body)
    )


def postgresql_store(url: str) -> Store:
    """The same table in a PostgreSQL that commits to the disk before it answers."""
    import psycopg  # noqa: PLC0415 -- only where it is asked for

    database = psycopg.connect(url, autocommit=True)
    database.execute("SET synchronous_commit = on")
    database.execute("CREATE TABLE uploads (upload TEXT, body BYTEA)")
    statement = "INSERT INTO uploads VALUES (%s, %s)"
    return lambda upload, body: database.execute(statement, (upload, body), prepare=True)


def make_app(store: Store) -> FastAPI:
    """Two routes. They commit in the event loop, which is faster here than a hop to a thread."""
    app = FastAPI()

    @app.put("/uploads")
    async def put_upload(request: Request) -> dict[str, str]:
        body = await request.body()
        upload = Upload.model_validate_json(body)
        store(upload.upload, body)
        return {"upload": upload.upload}

    @app.put("/answers")
    async def put_answers(request: Request) -> dict[str, str]:
        body = await request.body()
        upload = AnswerUpload.model_validate_json(body)
        store(upload.upload, body)
        return {"upload": upload.upload}

    return app


def main() -> None:
    """Serve with one worker until a signal says to stop."""
    database = sys.argv[1]
    open_store = postgresql_store if database.startswith("postgresql://") else sqlite_store
    app = make_app(open_store(database))
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
