"""Logs: one JSON object a line on stderr; control characters are escaped, keys are never written."""

from __future__ import annotations

import json
import logging
import re
import sys
import time
from datetime import UTC, datetime
from typing import Any, TextIO

from gradeq.service.limits import Bucket

SECRET = re.compile(r"(gq_[a-z2-7]{8})_[A-Za-z0-9_-]+")  # what stands behind the prefix of a key
LONGEST = 500  # characters of one value
LINES = 200.0  # a second; the others are counted


class Log:
    """Writes what happened; many lines at once are counted instead of written."""

    def __init__(self, stream: TextIO | None = None, requests: bool = False) -> None:
        self._stream = stream
        self.requests = requests
        self._room = Bucket(LINES, LINES)
        self._left_out = 0

    def __call__(self, event: str, level: str = "info", **values: Any) -> None:
        """Write one line: the time, the level, the event, its values."""
        if self._room.take(1.0):
            self._left_out += 1
            return
        if self._left_out:
            values["lines_left_out"] = self._left_out
            self._left_out = 0
        at = datetime.fromtimestamp(time.time(), UTC).isoformat(timespec="milliseconds")
        told = {"at": at, "level": level, "event": event}
        told |= {name: _tame(value) for name, value in values.items() if value is not None}
        line = json.dumps(told, default=str).replace("\x7f", "\\u007f")
        stream = self._stream or sys.stderr
        try:
            stream.write(f"{line}\n")
            stream.flush()
        except (OSError, ValueError):
            pass  # a log that nobody can write must not stop the service


class Forwarded(logging.Handler):
    """What uvicorn says, as lines of our log."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line; of an exception its type, never values."""
        failed = record.exc_info[0].__name__ if record.exc_info and record.exc_info[0] else None
        level = "error" if record.levelno >= logging.ERROR else "warning"
        self._log("server", level, said=record.getMessage().strip(), failed=failed)


def forward(log: Log) -> None:
    """Take uvicorn's own lines into this log."""
    for name in ("uvicorn", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [], False
    logging.getLogger("uvicorn").addHandler(Forwarded(log))
    logging.getLogger("uvicorn.error").propagate = True


def _tame(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return SECRET.sub(r"\1_(hidden)", value)[:LONGEST]
