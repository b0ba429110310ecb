"""Numbers for Prometheus: counters and histograms by route and outcome, never by anything a caller sent."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator
from threading import Lock

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
Labels = tuple[tuple[str, str], ...]


class Counter:
    """A number that only grows, one for each set of labels."""

    def __init__(self, name: str, told: str) -> None:
        self.name, self.told = name, told
        self._counts: defaultdict[Labels, float] = defaultdict(float)

    def add(self, by: float = 1.0, **labels: str) -> None:
        """Count."""
        self._counts[tuple(labels.items())] += by

    def lines(self) -> Iterator[str]:
        """The text of it."""
        yield from family(self.name, "counter", self.told, self._counts.copy().items())


class Histogram:
    """Durations in seconds, one distribution for each route."""

    def __init__(self, name: str, told: str) -> None:
        self.name, self.told = name, told
        self._found: dict[str, tuple[list[int], list[float]]] = {}
        self._lock = Lock()

    def add(self, seconds: float, route: str) -> None:
        """Take one duration in."""
        with self._lock:
            counts, total = self._found.setdefault(route, ([0] * (len(SECONDS) + 1), [0.0]))
            counts[bisect_left(SECONDS, seconds)] += 1
            total[0] += seconds

    def lines(self) -> Iterator[str]:
        """The text of it."""
        yield from _head(self.name, "histogram", self.told)
        with self._lock:
            found = {route: (list(c), total[0]) for route, (c, total) in self._found.items()}
        for route, (counts, total) in found.items():
            so_far = 0
            for limit, count in zip((*map(str, SECONDS), "+Inf"), counts, strict=True):
                so_far += count
                yield f"{self.name}_bucket{_labels((('route', route), ('le', limit)))} {so_far}"
            yield f"{self.name}_sum{_labels((('route', route),))} {total!r}"
            yield f"{self.name}_count{_labels((('route', route),))} {so_far}"


class Metrics:
    """All that is counted while calls are answered."""

    def __init__(self) -> None:
        self.calls = Counter("gradeq_http_requests_total", "Calls, by route, method and status.")
        self.items = Counter(
            "gradeq_items_total", "Predictions and labels, by what became of them."
        )
        self.seconds = Histogram("gradeq_http_request_seconds", "How long calls took, by route.")

    def lines(self) -> Iterator[str]:
        """The text of all of it."""
        for one in (self.calls, self.items, self.seconds):
            yield from one.lines()


def family(
    name: str, kind: str, told: str, values: Iterable[tuple[Labels, float]]
) -> Iterator[str]:
    """One metric as text: what it is, then a line for each set of labels."""
    yield from _head(name, kind, told)
    for labels, value in values:
        yield f"{name}{_labels(labels)} {_number(value)}"


def _head(name: str, kind: str, told: str) -> Iterator[str]:
    yield f"# HELP {name} {told}"
    yield f"# TYPE {name} {kind}"


def _labels(labels: Labels) -> str:
    return (
        "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels) + "}"
        if labels
        else ""
    )


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    if value == int(value) if abs(value) < 1e15 else False:
        return str(int(value))
    return {"inf": "+Inf", "-inf": "-Inf", "nan": "NaN"}.get(repr(value), repr(value))
