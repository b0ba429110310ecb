"""What the service is measured against: a bare endpoint with one commit a request, and raw transactions.

python -m benchmarks.service_bare FILE PORT
"""

from __future__ import annotations

import sqlite3
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

DURABLE = ("PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL")
TABLE = "CREATE TABLE IF NOT EXISTS journal (seq INTEGER PRIMARY KEY, id TEXT UNIQUE, body BLOB)"


def database(path: str) -> sqlite3.Connection:
    """A file with the durability of the service: write-ahead log, every commit on disk."""
    made = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    for sql in (*DURABLE, TABLE):
        made.execute(sql)
    return made


def commits(path: str, rows: Sequence[tuple[str, bytes]], size: int) -> list[float]:
    """The seconds of each transaction that inserts so many rows."""
    own, times = database(path), []
    for start in range(0, len(rows), size):
        began = time.perf_counter()
        own.execute("BEGIN IMMEDIATE")
        own.executemany("INSERT INTO journal (id, body) VALUES (?, ?)", rows[start : start + size])
        own.execute("COMMIT")
        times.append(time.perf_counter() - began)
    own.close()
    return times


def raw_batches(store: Path, layer: str, path: str, size: int) -> float:
    """Rows a second when the journal rows of a layer are written again, table and indexes alike."""
    with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as source:
        made = "SELECT sql FROM sqlite_master WHERE tbl_name = 'journal' AND sql IS NOT NULL"
        tables = [sql for (sql,) in source.execute(made)]
        own = "SELECT j.* FROM journal j JOIN layers l ON j.layer = l.number WHERE l.name = ?"
        rows = source.execute(f"{own} ORDER BY j.seq", (layer,)).fetchall()
    with closing(sqlite3.connect(path, isolation_level=None)) as target:
        for sql in (*DURABLE, *tables):
            target.execute(sql)
        marks = ", ".join("?" * len(rows[0]))
        began = time.perf_counter()
        for start in range(0, len(rows), size):
            target.execute("BEGIN IMMEDIATE")
            target.executemany(f"INSERT INTO journal VALUES ({marks})", rows[start : start + size])
            target.execute("COMMIT")
        return len(rows) / (time.perf_counter() - began)


def app(path: str) -> Any:
    """One endpoint: read a prediction, commit it as one row, answer."""
    import msgspec
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    own = database(path)
    read, write = msgspec.json.Decoder().decode, msgspec.json.Encoder().encode

    async def predictions(request: Request) -> Response:
        body = await request.body()
        item = read(body)
        own.execute("BEGIN IMMEDIATE")
        own.execute("INSERT INTO journal (id, body) VALUES (?, ?)", (item["id"], body))
        own.execute("COMMIT")
        answer = {"id": item["id"], "status": "served", "adjusted": item["prediction"]}
        return Response(write(answer), media_type="application/json")

    return Starlette(routes=[Route("/predictions", predictions, methods=["POST"])])


def main() -> None:
    import uvicorn

    path, port = sys.argv[1:]
    uvicorn.run(app(path), host="127.0.0.1", port=int(port), log_level="error", access_log=False)


if __name__ == "__main__":
    main()
