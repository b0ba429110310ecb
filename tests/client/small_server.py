"""A small HTTP server that keeps the promises of the service's API in memory, and can be told to fail."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

DROP_BEFORE, DROP_AFTER, HANG_AFTER, BUSY, AWAY, NOT_JSON = (
    "drop before", "drop after", "hang after", "busy", "away", "not JSON",
)  # fmt: skip


class Book:
    """One journal: events by kind and id, each once; the bytes of every attempt; the faults to come."""

    def __init__(self) -> None:
        self.journal: list[tuple[str, Any, float]] = []
        self.numbers: dict[tuple[str, Any], int] = {}
        self.attempts: list[bytes] = []
        self.faults: list[str] = []
        self.lock = threading.Lock()

    def enter(self, kind: str, item: dict[str, Any]) -> dict[str, Any]:
        value = item["prediction" if kind == "ticket" else "label"]
        key = kind, item.get("id", item.get("ticket"))
        if kind == "posting" and ("ticket", key[1]) not in self.numbers:
            return {"id": key[1], "status": "unknown", "detail": "never served", "remedy": "predict"}
        if key in self.numbers:
            seq = self.numbers[key]
            if self.journal[seq - 1][2] != value and not item.get("correct"):
                return {"id": key[1], "status": "conflict", "detail": "another value is stored"}
            return {"id": key[1], "status": "duplicate", "adjusted": value, "seq": seq}
        self.journal.append((*key, value))
        self.numbers[key] = len(self.journal)
        status = "served" if kind == "ticket" else "applied"
        return {"id": key[1], "status": status, "adjusted": value, "seq": len(self.journal)}

    def audit(self, receipts: list[list[Any]]) -> dict[str, Any]:
        found = {
            "missing": [row[:2] for row in receipts if tuple(row[:2]) not in self.numbers],
            "moved": [
                [*row, self.numbers[row[0], row[1]]]
                for row in receipts
                if self.numbers.get((row[0], row[1]), row[2]) != row[2]
            ],
        }
        return {"ok": True, "rows": len(self.journal), "receipts": found}


CODES = {"conflict": 409, "unknown": 404, "expired": 410, "rejected": 422}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    book: Book

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        with self.book.lock:
            self.book.attempts.append(body)
            fault = self.book.faults.pop(0) if self.book.faults else ""
            if fault == DROP_BEFORE:
                return self.drop()
            if fault in (BUSY, AWAY):
                problem = {"detail": "try later", "code": fault}
                headers = {"Retry-After": "0.02", "Content-Type": "application/problem+json"}
                return self.answer(429 if fault == BUSY else 503, problem, headers)
            if fault == NOT_JSON:
                return self.answer(200, None)
            told = self.tell(json.loads(body))
        if fault == HANG_AFTER:
            time.sleep(0.4)
        if fault in (DROP_AFTER, HANG_AFTER):
            return self.drop()
        self.answer(*told)

    def do_GET(self) -> None:
        if self.headers.get("authorization") != "Bearer gq_good":
            problem = {"detail": "the key is not known", "code": "no_key", "remedy": "give one"}
            return self.answer(401, problem, {"Content-Type": "application/problem+json"})
        self.answer(200, [{"layer": "a/b"}] if self.path == "/v1/layers" else {"path": self.path})

    def tell(self, told: Any) -> tuple[int, Any]:
        if self.path.endswith("/audit"):
            return 200, self.book.audit(told["receipts"])
        kind = "ticket" if self.path.split("?")[0].endswith("/predictions") else "posting"
        if isinstance(told, list):
            return 200, [self.book.enter(kind, item) for item in told]
        answer = self.book.enter(kind, told)
        return CODES.get(answer["status"], 200), answer

    def drop(self) -> None:
        self.close_connection = True

    def answer(self, code: int, told: Any, headers: dict[str, str] | None = None) -> None:
        data = b"<html>" if told is None else json.dumps(told).encode()
        self.send_response(code)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def serving(book: Book) -> Iterator[str]:
    handler = type("Bound", (Handler,), {"book": book})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
