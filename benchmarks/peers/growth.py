"""How the time of a row grows with what there is: the slope of CPU time over size, both in logarithms.

0: a row costs the same however much there is; 1: twice as much costs twice the time.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.peers.program import AXES, Axis
from benchmarks.peers.race import Lane, worker

ROUNDS = 2
PARTS = (8, 4, 2, 1)  # of the rows, where it is rows that grow


class Growth(NamedTuple):
    """The slope of one system, and nanoseconds of CPU for a row by size."""

    axis: str
    system: str
    slope: float
    times: dict[int, float]


def growths(systems: Sequence[str]) -> Iterator[Growth]:
    """Every axis, every system that has its task and can run here."""
    for name, axis in AXES.items():
        for system, rows in axis.rows.items():
            if system in systems:
                yield grown(name, axis, system, rows)


def grown(name: str, axis: Axis, system: str, rows: int) -> Growth:
    """One system along one axis."""
    values = axis.values or tuple(rows // part for part in PARTS)
    times = {value: took(axis, system, rows, value) for value in values}
    return Growth(name, system, slope(times), times)


def slope(times: dict[int, float]) -> float:
    """Least squares through the logarithms."""
    return float(np.polyfit(np.log(list(times)), np.log(list(times.values())), 1)[0])


def took(axis: Axis, system: str, rows: int, value: int) -> float:
    """Nanoseconds of CPU for a row."""
    n = rows if axis.values else value
    sizes = {axis.size: value} if axis.values else {}
    with (
        tempfile.TemporaryDirectory(prefix="gradeq-bench-") as folder,
        worker(Lane(system, n), axis.task, sizes, Path(folder)) as own,
    ):
        own.told("run")
        return min(own.told("run")["cpu"] for _ in range(ROUNDS)) / n * 1e9
