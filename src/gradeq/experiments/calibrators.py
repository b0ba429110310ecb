"""The three calibrators of the authors' code: per bin, by blocks, and per raw bin without rounding."""

from __future__ import annotations

from bisect import bisect_left
from typing import Any, NamedTuple

import numpy as np

from gradeq.engine.learner import Learner
from gradeq.experiments.averages import Floats
from gradeq.losses import Squared

GRID = np.linspace(0.0, 1.0, 20)
TOP = len(GRID) - 1


class Calibrated(NamedTuple):
    """What was served, the cell it is judged in, and the parameters at the end."""

    served: Floats
    cells: Any
    theta: Floats


def cell(x: float) -> int:
    """The first grid point at or above x (values above 1 belong to the last)."""
    return min(bisect_left(GRID.tolist(), x), TOP)


def per_bin(f: Floats, y: Floats, eta: float) -> Calibrated:
    """Serves the grid point of b_j + theta_j, j the cell of f, and moves the parameter of the cell it served."""
    return _on_grid(f, y, eta, block=False)


def by_block(f: Floats, y: Floats, eta: float) -> Calibrated:
    """The same, moving all parameters between the raw cell and the served one."""
    return _on_grid(f, y, eta, block=True)


def per_raw_bin(f: Floats, y: Floats, eta: float) -> Calibrated:
    """Debiases each raw cell by itself, with no rounding: unbiased given the raw score, not calibrated."""
    cells = np.array([cell(x) for x in f.tolist()])
    base = GRID[cells]
    if not eta:
        return Calibrated(base, cells, np.zeros(len(GRID)))
    learner = Learner(Squared(), eta)
    run = learner.run(learner.start(len(GRID)), cells, y, offsets=base)
    return Calibrated(run.served, cells, run.state.theta)


def _on_grid(f: Floats, y: Floats, eta: float, block: bool) -> Calibrated:
    grid, theta = GRID.tolist(), [0.0] * len(GRID)
    served, cells = np.empty(len(f)), np.empty(len(f), dtype=np.int64)
    for t, (x, label) in enumerate(zip(f.tolist(), y.tolist(), strict=True)):
        raw = cell(x)
        own = cell(grid[raw] + theta[raw])
        served[t], cells[t] = grid[own], own
        move = eta * Squared().slope(grid[own], label)
        for k in range(min(raw, own), max(raw, own) + 1) if block else (own,):
            theta[k] -= move
    return Calibrated(served, cells, np.array(theta))


def calibration_error(served: Floats, cells: Any, y: Floats) -> Floats:
    """After every row: sum over cells of (n_v/n) |mean served - mean label| in the cell."""
    gap = np.zeros(len(GRID))
    total, found = 0.0, np.empty(len(y))
    for t, (k, error) in enumerate(zip(cells.tolist(), (served - y).tolist(), strict=True)):
        total -= abs(gap[k])
        gap[k] += error
        total += abs(gap[k])
        found[t] = total / (t + 1)
    return found
