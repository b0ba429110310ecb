"""Newton's equations of a fit: solved as a matrix for few players, by conjugate gradients for many."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradeq.ledger.meetings import Cells
from gradeq.standings.cells import laplacian

FEW = 300  # players; above, conjugate gradients are quicker than a matrix
MOST_ROUNDS = 5000


def solver(
    cells: Cells, slopes: tuple[Any, Any], diagonal: Any, home: bool
) -> Callable[[Any, float], Any]:
    """H^-1 as a function of a right side and how much of it may be left."""
    size = len(diagonal)
    if size <= FEW:
        sides = cells.h if home else None
        matrix = laplacian(cells, slopes[0], size, sides) + laplacian(cells, slopes[1], size)
        matrix[np.arange(size), np.arange(size)] += diagonal
        return lambda right, _: np.linalg.solve(matrix, right)
    i, j, both = cells.i, cells.j, slopes[0] + slopes[1]
    lean = slopes[0] * cells.h

    def times(v: Any) -> Any:
        flow = both * (v[i] - v[j])
        if home:
            flow += lean * v[-1]
        made = diagonal * v + np.bincount(i, flow, size) - np.bincount(j, flow, size)
        if home:
            made[-1] += np.sum(lean * (v[i] - v[j])) + np.sum(lean * cells.h) * v[-1]
        return made

    scale = diagonal + np.bincount(i, both, size) + np.bincount(j, both, size)
    if home:
        scale[-1] += np.sum(lean * cells.h)
    return lambda right, left: conjugate(times, scale, right, left)


def conjugate(times: Callable[[Any], Any], scale: Any, right: Any, left: float) -> Any:
    """Conjugate gradients, scaled by the diagonal, until no more than ``left`` of the right side is left."""
    x, rest = np.zeros(len(right)), right.copy()
    z = rest / scale
    way, size = z.copy(), float(rest @ z)
    for _ in range(MOST_ROUNDS):
        if np.abs(rest).max() < left:
            break
        along = times(way)
        share = size / float(way @ along)
        x += share * way
        rest -= share * along
        z = rest / scale
        new = float(rest @ z)
        way = z + (new / size) * way
        size = new
    return x
