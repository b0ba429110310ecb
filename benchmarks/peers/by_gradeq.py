"""gradeq itself, and what no one can be faster than: the same recurrences in C, and a pass over memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import count
from typing import Any

import numpy as np

from benchmarks.c_loops import in_c, library, passed
from benchmarks.cases import COLUMNS, EVENTS, ran, stepped
from benchmarks.inputs import Data
from benchmarks.peers.entry import Entry, Job, Step, one_by_one
from gradeq import Debiaser

c = cache(library)


def columns(task: str) -> Callable[[Data], Job]:
    return lambda data: ran(COLUMNS[task], data)


def loop(task: str) -> Callable[[Data], Job]:
    """Without checks, accounts or certificate."""

    def job(data: Data) -> Job:
        found = in_c(c(), task, data)
        assert found is not None
        return found

    return job


def events(kind: str) -> Callable[[Data], Callable[[], Step]]:
    return lambda data: stepped(EVENTS[kind], data)


def beside_tickets(data: Data) -> Callable[[], Step]:
    """Events by id while so many tickets are open; these are opened once, outside what is timed."""
    layer: Any = Debiaser("plain")
    layer.predict_many(np.zeros(data["tickets"]), ids=[f"open-{k}" for k in range(data["tickets"])])
    f, y, runs = data["f"].tolist(), data["y"].tolist(), count()

    def start() -> Step:
        run = next(runs)

        def step(i: int) -> float:
            id = f"{run}-{i}"
            served: float = layer.predict(f[i], id=id)
            layer.update(y[i], id=id)
            return served

        return step

    return start


DOES: dict[str, Entry] = {
    **{task: Entry(case.rows, columns(task)) for task, case in COLUMNS.items()},
    **{f"event: {kind}": one_by_one(20_000, events(kind)) for kind in EVENTS},
    "event: by id, others open": one_by_one(5_000, beside_tickets),
}
LOOPS: dict[str, Entry] = {
    task: Entry(case.rows, loop(task))
    for task, case in COLUMNS.items()
    if not task.startswith(("late", "auto"))  # too much for a yardstick
}
PASS: dict[str, Entry] = {
    task: Entry(case.rows, lambda data: passed(c(), data), None) for task, case in COLUMNS.items()
}
