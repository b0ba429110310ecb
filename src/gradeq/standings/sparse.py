"""Variances of many strengths without a matrix: of a player's own games, and of what players who meet have in common.

Players who mostly meet their like share their errors: a whole range of strengths may lie too high or too low. That
part is smooth along the strengths of opponents, so it is solved for on a few knots, with lines between them
(Galerkin). The rest is as if each player met a known field, times a factor found from the exact variance of a few.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gradeq.ledger.meetings import Cells
from gradeq.standings.cells import LEVEL
from gradeq.standings.fit import Fit
from gradeq.standings.solve import solver

PROBES = 32
KNOTS = 40
# Averages over opponents, so that the order of players is that of the field they meet.
SWEEPS = 100


class Common(NamedTuple):
    """Covariances by row, as of a matrix: between the knots around a player and all others.

    ``table``: those of knots and players; a player lies at ``place`` plus ``part`` knots. ``weight``, ``apart``: they
    are multiplied by the first, and the product of the second is added, where two views are averaged.
    """

    table: Any
    place: Any
    part: Any
    weight: float = 1.0
    apart: Any = None

    def row(self, r: int) -> Any:
        """The covariances of player r with all."""
        low, part = self.table[self.place[r] : self.place[r] + 2], self.part[r]
        found = np.array([self.weight * (1.0 - part), self.weight * part]) @ low
        return found if self.apart is None else found + self.apart[r] * self.apart

    @property
    def diagonal(self) -> Any:
        """The covariance of each player with itself, but for ``weight`` and ``apart``."""
        each = np.arange(len(self.place))
        low, high = self.table[self.place, each], self.table[self.place + 1, each]
        return (1.0 - self.part) * low + self.part * high

    def among(self, chosen: Any) -> Common:
        """Those of some players."""
        apart = None if self.apart is None else self.apart[chosen]
        table, place, part = self.table[:, chosen], self.place[chosen], self.part[chosen]
        return Common(table, place, part, self.weight, apart)


def estimated(
    cells: Cells, players: int, home: bool, found: Fit, share: Any
) -> tuple[Any, Common, float]:
    """Variances and covariances of strengths relative to their mean by ``share``, and the first side's variance."""
    size, both = players + int(home), found.slopes[0] + found.slopes[1]
    diagonal = np.where(np.arange(size) < players, LEVEL / 4.0, 1e-12)
    own = np.bincount(cells.i, both, players) + np.bincount(cells.j, both, players) + LEVEL / 4.0
    common = on_knots(cells, found.theta[:players], both, share)
    smooth = common.diagonal
    solve = solver(cells, found.slopes, diagonal, home)
    among = np.flatnonzero(share)
    rests = []
    for k in among[np.linspace(0, len(among) - 1, min(PROBES, len(among))).astype(int)].tolist():
        side = np.zeros(size)
        side[k] = 1.0
        side[:players] -= share
        rests.append((float(side @ solve(side, 1e-7)) - smooth[k]) * own[k])
    variances = found.phi * (smooth + max(float(np.median(rests)), 0.0) / own)
    first = np.zeros(size)
    first[-1] = 1.0
    side_variance = found.phi * float(first @ solve(first, 1e-7)) if home else float("nan")
    return variances, common._replace(weight=found.phi), side_variance


def on_knots(cells: Cells, theta: Any, weights: Any, share: Any) -> Common:
    """The inverse of the games' matrix among strengths that are lines between knots, the mean taken out."""
    players = len(theta)
    knots = max(2, min(KNOTS, players // 10))
    field, own = (
        theta,
        np.bincount(cells.i, weights, players) + np.bincount(cells.j, weights, players),
    )
    for _ in range(SWEEPS):
        met = np.bincount(cells.i, weights * field[cells.j], players)
        met += np.bincount(cells.j, weights * field[cells.i], players)
        field = met / np.maximum(own, 1e-300)
    at = np.empty(players)
    at[np.argsort(field, kind="stable")] = np.linspace(0.0, knots - 1.0, players)
    place = np.minimum(at.astype(np.int64), knots - 2)
    part = at - place
    around = [(place, 1.0 - part), (place + 1, part)]
    ends = [(p[s], sign * f[s]) for s, sign in ((cells.i, 1.0), (cells.j, -1.0)) for p, f in around]
    matrix = np.eye(knots) * (LEVEL / 4.0 * players / knots)
    for p, f in ends:
        for q, g in ends:
            matrix += np.bincount(p * knots + q, weights * f * g, knots * knots).reshape(knots, -1)
    middle = sum(np.bincount(p, share * f, knots) for p, f in around)
    out = np.eye(knots) - np.outer(np.ones(knots), middle)
    inverse = out @ np.linalg.inv(matrix) @ out.T
    table = inverse[:, place] * (1.0 - part) + inverse[:, place + 1] * part
    return Common(table, place, part)
