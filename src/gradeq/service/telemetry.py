"""Prometheus metrics, JSON logs and rate limits."""

from __future__ import annotations

import json
import logging
import re
import sys
import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from itertools import accumulate
from threading import Lock
from typing import TextIO

from gradeq.errors import BadInput

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
SPECIAL = {"inf": "+Inf", "-inf": "-Inf", "nan": "NaN"}
ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})
Labels = tuple[tuple[str, str], ...]


class Counter:
    """A counter for each set of labels."""

    def __init__(self, name: str, help_text: str) -> None:
        self.name, self.help_text = name, help_text
        self._counts: defaultdict[Labels, float] = defaultdict(float)

    def add(self, by: float = 1.0, **labels: str) -> None:
        self._counts[tuple(labels.items())] += by

    def lines(self) -> list[str]:
        return metric_lines(self.name, "counter", self.help_text, self._counts.copy().items())


class DurationHistogram:
    """A histogram of seconds for each route."""

    def __init__(self, name: str, help_text: str) -> None:
        self.name, self.help_text = name, help_text
        self._histograms: dict[str, tuple[list[int], list[float]]] = {}
        self._lock = Lock()

    def add(self, seconds: float, route: str) -> None:
        with self._lock:
            counts, total = self._histograms.setdefault(route, ([0] * (len(SECONDS) + 1), [0.0]))
            counts[bisect_left(SECONDS, seconds)] += 1
            total[0] += seconds

    def lines(self) -> list[str]:
        lines = metric_lines(self.name, "histogram", self.help_text, ())
        with self._lock:
            copies = [(route, [*counts], total[0]) for route, (counts, total) in self._histograms.items()]
        for route, counts, total in copies:
            of_route = (("route", route),)
            for limit, count in zip((*map(str, SECONDS), "+Inf"), accumulate(counts), strict=True):
                lines.append(f"{self.name}_bucket{_labels((*of_route, ('le', limit)))} {count}")
            lines.append(f"{self.name}_sum{_labels(of_route)} {total!r}")
            lines.append(f"{self.name}_count{_labels(of_route)} {sum(counts)}")
        return lines


class Metrics:
    """The metrics of requests."""

    def __init__(self) -> None:
        self.calls = Counter("gradeq_http_requests_total", "Requests by route, method and status.")
        self.items = Counter("gradeq_items_total", "Predictions and labels by status.")
        self.seconds = DurationHistogram("gradeq_http_request_seconds", "Duration of requests by route.")

    def lines(self) -> list[str]:
        return [*self.calls.lines(), *self.items.lines(), *self.seconds.lines()]


def metric_lines(name: str, kind: str, help_text: str, values: Iterable[tuple[Labels, float]]) -> list[str]:
    lines = [f"# HELP {name} {help_text}", f"# TYPE {name} {kind}"]
    for labels, value in values:
        whole = abs(value) < 1e15 and value == int(value)
        text = str(int(value)) if whole else SPECIAL.get(repr(value), repr(value))
        lines.append(f"{name}{_labels(labels)} {text}")
    return lines


def _labels(labels: Labels) -> str:
    escaped = [(name, value.translate(ESCAPES)) for name, value in labels]
    return "{" + ",".join(f'{name}="{value}"' for name, value in escaped) + "}" if labels else ""


SECRET = re.compile(r"(gq_[a-z2-7]{8})_[A-Za-z0-9_-]+")  # a key after its prefix
MAX_VALUE_CHARS = 500  # characters of one value
LINES_PER_SECOND = 200.0  # further lines are counted


class Log:
    """Writes events as JSON lines; beyond 200 lines a second they are counted instead."""

    def __init__(self, stream: TextIO | None = None, requests: bool = False) -> None:
        self._stream = stream
        self.requests = requests
        self._budget = TokenBucket(LINES_PER_SECOND, LINES_PER_SECOND)
        self._dropped = 0

    def __call__(self, event: str, level: str = "info", **values: object) -> None:
        if self._budget.take(1.0):
            self._dropped += 1
            return
        if self._dropped:
            values["lines_left_out"] = self._dropped
            self._dropped = 0
        at = datetime.fromtimestamp(time.time(), UTC).isoformat(timespec="milliseconds")
        fields: dict[str, object] = {"at": at, "level": level, "event": event}
        for name, value in values.items():
            if isinstance(value, str):
                value = SECRET.sub(r"\1_(hidden)", value)[:MAX_VALUE_CHARS]
            if value is not None:
                fields[name] = value
        line = json.dumps(fields, default=str).replace("\x7f", "\\u007f")
        with suppress(OSError, ValueError):  # a log that cannot be written must not stop the service
            print(line, file=self._stream or sys.stderr, flush=True)


class UvicornLogHandler(logging.Handler):
    """Writes uvicorn's messages to our log."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line; for an exception only its type, never its values."""
        failed = record.exc_info[0].__name__ if record.exc_info and record.exc_info[0] else None
        level = "error" if record.levelno >= logging.ERROR else "warning"
        self._log("server", level, said=record.getMessage().strip(), failed=failed)


def forward_uvicorn_log(log: Log) -> None:
    for name in ("uvicorn", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [], False
    logging.getLogger("uvicorn").addHandler(UvicornLogHandler(log))
    logging.getLogger("uvicorn.error").propagate = True


ROUNDING = 1e-6  # of a token: a client that waited as long as asked is not rejected again


@dataclass(frozen=True)
class Limits:
    """The limits of a server.

    ``body``: bytes of a call with predictions or labels (1,000 items take about 100 kB); ``settings_body``: bytes of
    a call that creates a layer, maybe with a saved state; ``items``: items of one call; ``layers``: of one tenant;
    ``rate``: items a second for one key, in bursts of ``burst``; ``queue``: items that wait to be committed;
    ``headers_within``, ``body_within``: seconds for a request, and then for its body; ``connections``: open at once.
    """

    body: int = 2_000_000
    settings_body: int = 50_000_000
    items: int = 10_000
    layers: int = 1_000
    rate: float = 200_000.0
    burst: float = 200_000.0
    queue: int = 20_000
    headers_within: float = 10.0
    body_within: float = 20.0
    connections: int = 1_000

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not value > 0:
                raise BadInput(f"the limit {field.name} is {value!r}; give a number above 0")


class TokenBucket:
    """A token bucket: the rate limit of one key."""

    __slots__ = ("at", "burst", "clock", "left", "rate")

    def __init__(self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.rate, self.burst, self.clock = rate, burst, clock
        self.left, self.at = burst, clock()

    def take(self, tokens: float) -> float:
        """Take tokens and return 0, or take none and return the seconds until they are available.

        A request larger than the bucket waits for a full one.
        """
        now = self.clock()
        self.left = min(self.burst, self.left + (now - self.at) * self.rate)
        self.at = now
        wanted = min(tokens, self.burst)
        if wanted <= self.left + ROUNDING:
            self.left -= wanted
            return 0.0
        return (wanted - self.left) / self.rate
