"""The series of a layer of many keys as the page shows them: coverage over all, how errors spread, the worst."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradeq.coverage import Coverage, between, joint, share
from gradeq.equilibrium import Coordinate, Equilibrium
from gradeq.report import story as told
from gradeq.report.tally import Tally

ENOUGH = 30  # labels: a series with fewer is not called worst, if others have as many
KEYS = 20  # farthest off, on the page of a layer at work
WORST = 10  # farthest off, and as many with the largest loss
YOUNG = f"Too few series have {ENOUGH} labels, so those with fewer are compared too."


def compared(labels: Any) -> Any:
    """Which series are compared: those with enough labels, or all that have any where too few have enough."""
    enough = np.flatnonzero(labels >= ENOUGH)
    return enough if len(enough) >= min(WORST, len(labels)) else np.flatnonzero(labels > 0)


def having(fewest: int) -> str:
    """What the compared series have of which others have less; ``fewest``: labels of one of them."""
    return f"with {ENOUGH} labels or more" if fewest >= ENOUGH else "with a label"


def keyed_coverage(layer: Any, reached: Equilibrium) -> list[Coverage]:
    """The coverage of each level, or of the interval, over the labels of all series."""
    taus, target = layer._terms.levels, getattr(layer.layer, "target", None)
    if len(reached.coordinates) != len(taus):
        return []  # series with groups or features of their own: no sum is kept over all of them
    levels = [
        Coverage(
            tau,
            _share(tau, own.bias_before),
            _share(tau, own.bias_after),
            own.bound,
            bool(own.vacuous),
        )
        for tau, own in zip(taus, reached.coordinates, strict=True)
    ]
    return levels if target is None else [between(levels[0], levels[-1], target)]


def _share(tau: float, off: float | None) -> float:
    return math.nan if off is None else share(tau, off)


def many_series(layer: Any, most: int = WORST) -> told.ManySeries | None:
    """How errors spread over the series, which are worst and which have the largest loss; None for fewer than two.

    ``most``: so many of the worst.
    """
    table = layer.table()
    labels = np.asarray(table.rows)
    enough = compared(labels)
    if len(labels) < 2 or not len(enough):
        return None
    off, loss = np.abs(table.error[enough]), table.loss[enough]
    tally = Tally()
    tally.add((100.0 if table.levels else 1.0) * table.error[enough])
    worst = enough[first(-off, most)].tolist()
    largest = enough[first(-loss, WORST)].tolist()
    return told.ManySeries(
        len(labels), len(enough), float(off.mean()), float(np.quantile(off, 0.9)), tally.histogram(),
        tuple(_worst(layer, table, j) for j in worst),
        tuple(_large(table, j) for j in largest),
        layer.pool,
        table.relative,
        int(labels[enough].min()),
    )  # fmt: skip


def first(values: Any, most: int) -> Any:
    """Where the smallest values stand, in order, of equal ones the first: as sorting would, sooner."""
    if len(values) <= most:
        return np.argsort(values, kind="stable")
    among = np.flatnonzero(~(values > np.partition(values, most - 1)[most - 1]))
    return among[np.argsort(values[among], kind="stable")[:most]]


def _target(table: Any, j: int) -> float | None:
    """What a series is held against: of several levels the one that is farthest off."""
    if not table.levels or table.target is not None:
        return None if table.target is None else float(table.target)
    return float(table.levels[int(table.farthest[j]) if len(table.levels) > 1 else 0])


def _named(table: Any, j: int) -> str:
    several = len(table.levels) > 1 and table.target is None
    return f"{table.keys[j]} at {_target(table, j):g}" if several else str(table.keys[j])


def _losses(table: Any, j: int) -> told.Pair:
    return told.Pair(float(np.mean(table.loss_before[j])), float(table.loss[j]))


def _worst(layer: Any, table: Any, j: int) -> told.Group:
    target = _target(table, j)
    cells: tuple[Coordinate, ...] = ()
    if layer._names.own.scalar:  # a row of the table is a series, and not one of its groups
        cells = tuple(layer.equilibrium(table.keys[j]).coordinates)
    bound, vacuous = joint(cells, None if table.target is None else float(table.target))
    bound = None if table.relative else bound
    return told.Group(
        "key", _named(table, j), int(table.rows[j]), math.nan,
        (target or 0.0) + float(table.error_before[j]), (target or 0.0) + float(table.error[j]),
        _losses(table, j), bound, bound is not None and bool(vacuous), target,
    )  # fmt: skip


def _large(table: Any, j: int) -> told.WideSeries:
    return told.WideSeries(
        _named(table, j), int(table.rows[j]), (_target(table, j) or 0.0) + float(table.error[j]),
        _losses(table, j),
    )  # fmt: skip
