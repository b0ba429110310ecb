"""What a fit needs of a pair table: pseudo-draws, matrices of cells, and which players ever met."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradeq.ledger.meetings import Cells

PRIOR = 1.0  # drawn pseudo-games of each player, spread over the pairs that met
LEVEL = 1e-3  # draws of each player against 0: they set the level and join players who never met


def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x)) of an array."""
    return 1.0 / (1.0 + np.exp(-np.clip(x, -700.0, 700.0)))


def games(cells: Cells, players: int) -> Any:
    """The weight of games of each player."""
    return np.bincount(cells.i, cells.W, players) + np.bincount(cells.j, cells.W, players)


def drawn(cells: Cells, players: int) -> Any:
    """The pseudo-games of each cell, all drawn: those of both players, spread over their games."""
    share = PRIOR / np.maximum(games(cells, players), 1.0)
    return cells.W * (share[cells.i] + share[cells.j])


def laplacian(cells: Cells, weights: Any, size: int, sides: Any = None) -> Any:
    """The sum of weight times z z' over cells, z = e_i - e_j, with ``sides`` also h at the last place."""
    i, j = cells.i, cells.j
    half = np.bincount(i * size + j, weights, size * size).reshape(size, size)
    made = -1.0 * (half + half.T)  # without a cell these would be whole numbers
    own = np.bincount(i, weights, size) + np.bincount(j, weights, size)
    made[np.arange(size), np.arange(size)] += own
    if sides is not None:
        lean = weights * sides
        row = np.bincount(i, lean, size) - np.bincount(j, lean, size)
        row[-1] = np.sum(lean * sides)
        made[-1, :] = made[:, -1] = row
    return made


def connected(cells: Cells, players: int) -> Any:
    """For each player the first of the group that it is joined to by games.

    Whoever met players of two groups hangs the later group's first player under the earlier one's; then all follow
    their chain to its end; until no game is left between two groups.
    """
    first, one, two = np.arange(players), cells.i, cells.j
    while True:
        one, two = first[one], first[two]
        apart = one != two
        if not apart.any():
            return first
        one, two = one[apart], two[apart]
        np.minimum.at(first, np.maximum(one, two), np.minimum(one, two))
        while (first[first] != first).any():
            first = first[first]
