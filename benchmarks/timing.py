"""Best of several, alternating, in CPU time: other work on the machine disturbs it least."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple


class Row(NamedTuple):
    """One printed line: what was done, nanoseconds an item (or 0), ratios to yardsticks of the same run, a remark."""

    name: str
    nanoseconds: float
    ratios: dict[str, float]
    target: str = ""
    remark: str = ""


def best(jobs: dict[str, Callable[[], Any]], items: int, rounds: int = 7) -> dict[str, float]:
    """Nanoseconds an item for each job, best of ``rounds``, jobs in turn so that none has the warm caches."""
    least = dict.fromkeys(jobs, float("inf"))
    for job in jobs.values():
        job()
    for name in turns(jobs, rounds):
        start = time.process_time()
        jobs[name]()
        least[name] = min(least[name], time.process_time() - start)
    return {name: seconds / items * 1e9 for name, seconds in least.items()}


def turns(jobs: dict[str, Any], rounds: int) -> list[str]:
    """The names of all jobs, so many times, every other time backwards."""
    forth = list(jobs)
    return [name for k in range(rounds) for name in (forth if k % 2 else reversed(forth))]


def show(title: str, rows: list[Row]) -> None:
    """Print a table."""
    print(f"\n{title}")
    width = max(len(row.name) for row in rows)
    for row in rows:
        told = [f"{value:.3g}x {name}" for name, value in row.ratios.items()]
        told += [row.remark] if row.remark else []
        told += [f"[target {row.target}]" if row.target else ""]
        time_taken = amount(row.nanoseconds) if row.nanoseconds else ""
        print(f"  {row.name:<{width}}  {time_taken:>10}  {'  '.join(told)}")


def amount(nanoseconds: float) -> str:
    """A time in the unit that suits it."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if nanoseconds >= size:
            return f"{nanoseconds / size:.2f} {unit}"
    return f"{nanoseconds:.2f} ns"
