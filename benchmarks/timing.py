"""Best of several, alternating: CPU time, which other work on the machine disturbs least, and the clock beside it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

import numpy as np

WIDTH = 42  # of the names
Name = TypeVar("Name")
CLOSE = 1e-9  # outputs that differ by more are an error


class Took(NamedTuple):
    """Nanoseconds of one item: of CPU, and by the clock."""

    cpu: float
    wall: float


class Row(NamedTuple):
    """One printed line: what was done, how long an item took (None: no time), ratios to others in the same run.

    ``gap``: the largest difference of any output from that of the others.
    """

    name: str
    took: Took | None
    ratios: dict[str, float]
    target: str = ""
    remark: str = ""
    gap: float | None = None


def best(jobs: dict[str, Callable[[], Any]], items: int, rounds: int = 5) -> dict[str, Took]:
    """What an item takes in each job, best of ``rounds``, jobs in turn so that none has the warm caches."""
    seen: dict[str, list[Took]] = {name: [] for name in jobs}
    for name in turns(jobs, rounds):
        seen[name].append(once(jobs[name], items))
    return {name: Took(*map(min, zip(*all, strict=True))) for name, all in seen.items()}


def once(job: Callable[[], Any], items: int) -> Took:
    """What an item takes in one run."""
    wall, cpu = time.perf_counter(), time.process_time()
    job()
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return Took(cpu / items * 1e9, wall / items * 1e9)


def turns(jobs: Iterable[Name], rounds: int) -> list[Name]:
    """The names of all jobs, so many times, every other time backwards."""
    forth = list(jobs)
    return [name for k in range(rounds) for name in (forth if k % 2 else reversed(forth))]


def compare(name: str, ours: Any, theirs: Any) -> float:
    """The largest difference between outputs, in every row; an error if it is more than rounding."""
    mine, other = np.asarray(ours, dtype=float), np.asarray(theirs, dtype=float)
    gap = float(np.abs(mine - other).max()) if mine.shape == other.shape else np.inf
    if not gap <= CLOSE:
        raise AssertionError(f"{name}: outputs differ by {gap}")
    return gap


def show(title: str, rows: Iterable[Row]) -> list[Row]:
    """Print a table, each line when it is known."""
    print(f"\n{title}", flush=True)
    kept = []
    for row in rows:
        kept.append(row)
        told = [f"{value:.3g}x {name}" for name, value in row.ratios.items()]
        told += [] if row.gap is None else [f"differs by {row.gap:.1g}"]
        told += [row.remark] if row.remark else []
        told += [f"[goal {row.target}]"] if row.target else []
        times = "" if row.took is None else f"{amount(row.took.cpu)} {amount(row.took.wall)}"
        print(f"  {row.name:<{WIDTH}}  {times:>21}  {'; '.join(told)}", flush=True)
    return kept


def amount(nanoseconds: float) -> str:
    """A time in the unit that suits it."""
    for unit, size in (("s ", 1e9), ("ms", 1e6), ("us", 1e3)):
        if nanoseconds >= size:
            return f"{nanoseconds / size:>7.3g} {unit}"
    return f"{nanoseconds:>7.3g} ns"
