"""One event at a time, by the clock: the middle one and the slowest of a hundred; CPU of the whole beside it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.peers.program import EVENTS
from benchmarks.peers.race import Lane, worker
from benchmarks.peers.systems import OURS, entries

ROUNDS = 3


class Latency(NamedTuple):
    """Microseconds of one event: predict and learn."""

    kind: str
    system: str
    events: int
    median: float
    p99: float
    cpu: float


def latencies(systems: Sequence[str]) -> Iterator[Latency]:
    """Every kind of event: ours, then each system that takes one row at a time and has the task."""
    for kind, task in EVENTS.items():
        for system in systems:
            name = f"event: {kind}" if system == OURS else task
            entry = entries(system).get(name)
            if entry is not None and entry.begin is not None:
                yield of_events(kind, system, name, min(entry.rows, 20_000))


def of_events(kind: str, system: str, task: str, rows: int) -> Latency:
    """Best of several; the first run is for nothing."""
    with (
        tempfile.TemporaryDirectory(prefix="gradeq-bench-") as folder,
        worker(Lane(system, rows), task, {}, Path(folder)) as own,
    ):
        own.told("run")
        cpu = min(own.told("run")["cpu"] for _ in range(ROUNDS)) / rows * 1e6
        each = [own.told("each") for _ in range(ROUNDS)]
    median, p99 = (min(run[name] for run in each) / 1e3 for name in ("median", "p99"))
    return Latency(kind, system, rows, median, p99, cpu)
