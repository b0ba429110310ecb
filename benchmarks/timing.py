"""Best of several, alternating, in CPU time: other work on the machine disturbs it least."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple


class Row(NamedTuple):
    """One printed line: what was done, nanoseconds an item, and ratios to yardsticks of the same run."""

    name: str
    nanoseconds: float
    ratios: dict[str, float]
    target: str = ""


def best(jobs: dict[str, Callable[[], Any]], items: int, rounds: int = 7) -> dict[str, float]:
    """Nanoseconds an item for each job, best of ``rounds``, jobs in turn so that none has the warm caches."""
    least = dict.fromkeys(jobs, float("inf"))
    for job in jobs.values():
        job()
    for k in range(rounds):
        names = list(jobs) if k % 2 else list(reversed(jobs))
        for name in names:
            start = time.process_time()
            jobs[name]()
            least[name] = min(least[name], time.process_time() - start)
    return {name: seconds / items * 1e9 for name, seconds in least.items()}


def show(title: str, rows: list[Row]) -> None:
    """Print a table."""
    print(f"\n{title}")
    width = max(len(row.name) for row in rows)
    for row in rows:
        ratios = "  ".join(f"{value:.3g}x {name}" for name, value in row.ratios.items())
        target = f"   [target {row.target}]" if row.target else ""
        print(f"  {row.name:<{width}}  {row.nanoseconds:>10.2f} ns  {ratios}{target}")
