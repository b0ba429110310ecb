"""First runs of every kind of loop with an empty cache, at sizes around where compiling begins to pay.

Import and run in a new process: never longer than interpreting it would have taken.
"""

from __future__ import annotations

import math
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

from benchmarks.process import bytecode
from benchmarks.startup import inside
from benchmarks.timing import Row, compare

KINDS = ("scalar", "groups, integers", "two overlapping groups", "late labels", "quantile, sinh",
         "23 levels", "auto, groups", "keyed, text", "Elo, integers")  # fmt: skip
SIZES = (20_000, 100_000, 500_000)
ROUNDS, LONG = 3, 500_000
NOISE = 1 / 0.95  # where both ways interpret, they differ by what the machine does meanwhile


def main() -> Iterator[Row]:
    with bytecode():
        for name in KINDS:
            for rows in SIZES:
                yield measured(name, rows)


def measured(name: str, rows: int) -> Row:
    """One kind at one size, both ways in turn."""
    child = [sys.executable, "-m", "benchmarks.child", name, str(rows), "gradeq"]
    seen: list[Any] = []
    ratio = math.inf
    # A long run is enough by itself, unless it says what other work on the machine may have caused.
    while len(seen) < ROUNDS and (rows < LONG or ratio > NOISE):
        with tempfile.TemporaryDirectory(prefix="gradeq-bench-") as cache:
            interpreted = inside(child, 1, GRADEQ_CACHE=cache, GRADEQ_COMPILE="0")
            seen.append((inside(child, 1, GRADEQ_CACHE=cache), interpreted))
        (ours, mean), (plain, expected) = (min(each, key=lambda own: own[0].cpu) for each in zip(*seen, strict=True))
        ratio = ours.cpu / plain.cpu
    gap = compare(f"{name}, {rows:,} rows, interpreted", mean, expected)
    goal = f">= 0.95x: {'met' if ratio <= NOISE else 'missed'}"
    return Row(f"{name}, {rows:,} rows", ours, {"interpreted": 1.0 / ratio}, goal, gap=gap)
