"""The penalised Bradley-Terry fit of a pair table: P(i beats j) = sigmoid(th_i - th_j + h th_home).

Each player has one drawn pseudo-game, spread over the pairs that met and played on neutral ground. The optimum says
of each player: expected wins - wins = what the pseudo-games pull (``residual`` is what the solver left of that). So
without them the fit is the equilibrium of Elo in hindsight. It always starts from zero: the same table gives the same
bits.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gradeq.ledger.meetings import Cells
from gradeq.standings.cells import LEVEL, drawn, laplacian, sigmoid
from gradeq.standings.solve import solver

TOLERANCE = 1e-10
MOST_STEPS = 50
DENSE = 2000  # players; above, no matrix is made
OWN = 10.0  # games with which a cell's own spread counts as much as the common one


class Fit(NamedTuple):
    """Strengths, the first side's last if it has one; ``phi`` is the spread of scores next to that of coins."""

    theta: Any
    p: Any
    slopes: tuple[Any, Any]  # of the cells' games and of their pseudo-games
    residual: float
    steps: int
    phi: float


def fit(cells: Cells, players: int, home: bool) -> Fit:
    """Damped Newton steps from zero."""
    size = players + int(home)
    theta, draws = np.zeros(size), drawn(cells, players)
    level = np.zeros(size)
    level[:players] = LEVEL
    enough = TOLERANCE * max(1.0, float(cells.W.sum()) / max(players, 1))
    value, p, even = parts(cells, draws, level, theta, home)
    done = 0
    while True:
        pulls = cells.W * p - cells.S
        both = pulls + draws * (even - 0.5)
        gradient = np.zeros(size)  # without a cell the sums would be whole numbers
        gradient += np.bincount(cells.i, both, size) - np.bincount(cells.j, both, size)
        if home:
            gradient[-1] += np.sum(pulls * cells.h)
        q = sigmoid(theta)
        gradient += level * (q - 0.5)
        slopes = cells.W * p * (1.0 - p), draws * even * (1.0 - even)
        left = float(np.max(np.abs(gradient), initial=0.0))
        if left < enough or done == MOST_STEPS:
            break
        diagonal = level * q * (1.0 - q) + 1e-12
        step = solver(cells, slopes, diagonal, home)(gradient, max(1e-2 * left, 0.1 * enough))
        share = 1.0
        while True:
            tried = parts(cells, draws, level, theta - share * step, home)
            if tried[0] <= value + 1e-12 * abs(value) or share < 1e-6:
                break
            share /= 2.0
        theta, (value, p, even), done = theta - share * step, tried, done + 1
    spread = float(np.sum(cells.V * p * (1.0 - p)))
    phi = float(np.sum(errors(cells, p))) / spread if spread else 1.0
    return Fit(theta, p, slopes, left, done, phi)


def parts(cells: Cells, draws: Any, level: Any, theta: Any, home: bool) -> tuple[float, Any, Any]:
    """What is minimised, and the probability that i wins each cell, where it is played and on neutral ground."""
    d = theta[cells.i] - theta[cells.j]
    x = d + cells.h * theta[-1] if home else d
    value = (
        np.sum(cells.W * np.logaddexp(0.0, x) - cells.S * x)
        + np.sum(draws * (np.logaddexp(0.0, d) - d / 2.0))
        + np.sum(level * (np.logaddexp(0.0, theta) - theta / 2.0))
    )
    return float(value), sigmoid(x), sigmoid(d)


def errors(cells: Cells, p: Any) -> Any:
    """The sum of squared errors (times squared weights) of each cell."""
    return cells.VQ - 2.0 * p * cells.VS + p * p * cells.V


def covariance(cells: Cells, players: int, home: bool, found: Fit) -> Any:
    """Of the strengths: H^-1 J H^-1, J from the squared errors, those of cells with few games drawn to the common."""
    p, size = found.p, players + int(home)
    sides = cells.h if home else None
    even = laplacian(cells, found.slopes[1], size)
    bread = laplacian(cells, found.slopes[0], size, sides) + even
    q = sigmoid(found.theta)
    level = np.where(np.arange(size) < players, LEVEL, 0.0) * q * (1.0 - q) + 1e-12
    bread[np.arange(size), np.arange(size)] += level
    count = cells.W * cells.W / np.maximum(cells.V, 1e-300)
    own = count / (count + OWN)
    common = found.phi * cells.V * p * (1.0 - p)
    draws = found.phi * drawn(cells, players) * p * (1.0 - p)
    meat = laplacian(cells, own * errors(cells, p) + (1.0 - own) * common + draws, size, sides)
    # The draws against 0 count as games too: what only they hold together is not known.
    meat[np.arange(size), np.arange(size)] += level
    inverse = np.linalg.inv(bread)
    return inverse @ meat @ inverse
