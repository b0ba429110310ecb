"""One event at a time, by the clock: the middle one and the slowest of a hundred; CPU of the whole beside it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from benchmarks.peers.program import EVENTS
from benchmarks.peers.race import Lane, in_turn, worker
from benchmarks.peers.systems import OURS, entries

ROUNDS, ENOUGH = (12, 4.0)  # at most so many runs of each kind, and none after so many seconds of a system


class Latency(NamedTuple):
    """Microseconds of one event: predict and learn."""

    kind: str
    system: str
    events: int
    median: float
    p99: float
    cpu: float


def latencies(systems: Sequence[str]) -> Iterator[Latency]:
    """Every kind of event: ours, and each system that takes one row at a time and has the task."""
    for kind, task in EVENTS.items():
        lanes = {}
        for system in systems:
            name = f"event: {kind}" if system == OURS else task
            entry = entries(system).get(name)
            if entry is not None and entry.begin is not None:
                lanes[Lane(system, min(entry.rows, 20_000))] = name
        yield from of_kind(kind, lanes)


def of_kind(kind: str, lanes: dict[Lane, str]) -> list[Latency]:
    """All alive at once and told in turn; the best of each counts, the first run is for nothing."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gradeq-bench-")))
        alive = {lane: stack.enter_context(worker(lane, task, {}, folder)) for lane, task in lanes.items()}
        for own in alive.values():
            own.told("run")
        seen = in_turn(alive, ROUNDS, ENOUGH, "run", "each")
    found = []
    for lane, runs in seen.items():
        median, p99 = (min(run[name] for run in runs) / 1e3 for name in ("median", "p99"))
        cpu = min(run["cpu"] for run in runs) / lane.rows * 1e6
        found.append(Latency(kind, *lane, median, p99, cpu))
    return found
