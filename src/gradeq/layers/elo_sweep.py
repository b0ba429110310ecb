"""Many steps of Elo in one pass over the games: what each would have cost and left, in hindsight."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gradeq.engine.players import Players
from gradeq.errors import BadInput
from gradeq.kernels.call import run_loop
from gradeq.kernels.rating_plain import swept
from gradeq.layers.elo_run import scores, two_columns
from gradeq.layers.sweep import steps_of
from gradeq.rules.rating import JUDGE
from gradeq.schedules import check_step
from gradeq.theory.elo import step_from_k

FEW, MANY = 30, 100


class EloPoint(NamedTuple):
    """What one step would have given: log loss, and the |bias| of players with at least 30 (or 100) games.

    ``worst`` is the largest and ``mean`` the mean over players with 30 games, ``mean_100`` over those with 100.
    """

    eta: float
    k: float
    worst: float
    loss: float
    mean: float
    mean_100: float


@dataclass(frozen=True)
class EloFrontier:
    """One point for each step, smallest first, and a coin for comparison (``raw``).

    In hindsight, on these same games: it says what would have been, not what will be.
    """

    points: tuple[EloPoint, ...]
    raw: EloPoint
    games: int
    loss_name: str = "log loss"

    def __iter__(self) -> Iterator[EloPoint]:
        return iter(self.points)

    def least_loss(self) -> EloPoint:
        """The step with the smallest log loss."""
        return min(self.points, key=lambda point: point.loss)

    def least_bias(self, loss_budget: float = 0.01) -> EloPoint:
        """The step with the smallest worst bias among those within the budget (a share) of the smallest loss."""
        allowed = [p for p in self.points if p.loss <= self.least_loss().loss * (1.0 + loss_budget)]
        return min(allowed, key=lambda point: point.worst)

    def __str__(self) -> str:
        lines = [f"{'eta':>10} {'K':>8} {'worst':>10} {'mean':>10} {self.loss_name:>10}"]
        for p in (self.raw, *self.points):
            name = "coin" if p.eta == 0.0 else f"{p.eta:g}"
            lines.append(f"{name:>10} {p.k:>8.4g} {p.worst:>10.4g} {p.mean:>10.4g} {p.loss:>10.6g}")
        return "\n".join(lines)


def sweep(etas: Sequence[float], a: Any, b: Any, score: Any, ties: str = "half") -> EloFrontier:
    """One pass over the games for all constant steps; games against oneself and without a score are left out."""
    steps = np.array(sorted(steps_of(etas)))
    if not len(steps):
        raise BadInput("sweep needs at least one step")
    for eta in steps:
        check_step("sweep(eta=", float(eta))
    if not isinstance(ties, str) or ties not in ("half", "drop"):
        raise BadInput(f"ties={ties!r}: must be half (half a win) or drop (no game)")
    players = Players(False)
    pairs = players.entered(two_columns(a, b))
    j, k = pairs.a, pairs.b
    y = scores(score, len(j))
    played = (j != k) & ~np.isnan(y)
    if ties == "drop":
        played &= y != 0.5
    if not played.all():
        j, k, y = j[played], k[played], y[played]
    count, kinds = players.count, len(steps)
    u, losses, likely = np.zeros((count, kinds)), np.zeros(kinds), np.ones(kinds)
    run_loop(swept, (JUDGE,), (j, k, y, steps, u, losses, likely, np.empty(kinds)), len(j) * kinds)
    games = np.bincount(j, minlength=count) + np.bincount(k, minlength=count)
    wins = np.bincount(j, y, count) + np.bincount(k, 1.0 - y, count)
    losses = losses - 0.5 * np.log(likely)
    own = np.maximum(games, 1)[:, None]
    # The sum of a player's gradients is the displacement over eta: no second sum is needed (result 8.5).
    bias = np.abs(u) / (steps * own)
    coin = np.abs(0.5 * games - wins)[:, None] / own
    mean_loss = losses / max(len(j), 1)
    points = tuple(
        point(float(eta), float(loss), bias[:, s], games)
        for s, (eta, loss) in enumerate(zip(steps, mean_loss, strict=True))
    )
    return EloFrontier(points, point(0.0, math.log(2.0), coin[:, 0], games), len(j))


def point(eta: float, loss: float, bias: Any, games: Any) -> EloPoint:
    """One point of the frontier from the bias of every player."""
    few, many = bias[games >= FEW], bias[games >= MANY]

    def mean(column: Any) -> float:
        return float(column.mean()) if len(column) else 0.0

    worst = float(few.max(initial=0.0))
    return EloPoint(eta, eta / step_from_k(1.0), worst, loss, mean(few), mean(many))
