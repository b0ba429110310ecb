"""Many steps of Elo in one pass over the games: what each would have cost and left, in hindsight."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gradeq.errors import BadInput
from gradeq.kernels import rating
from gradeq.kernels.call import run_loop
from gradeq.layers import columns as door
from gradeq.layers.players import Players
from gradeq.schedules import check_step
from gradeq.theory.elo import step_from_k

FEW, MANY = 30, 100


class EloPoint(NamedTuple):
    """One step: its K-factor, the log loss, and the |bias| of players with at least 30 (or 100) games."""

    eta: float
    k: float
    loss: float
    mean_bias: float
    worst_bias: float
    mean_bias_100: float


class EloFrontier(NamedTuple):
    """All steps, smallest first; a larger step leaves less bias and, beyond the best, costs loss."""

    points: tuple[EloPoint, ...]
    games: int

    @property
    def best(self) -> EloPoint:
        """The step with the smallest log loss."""
        return min(self.points, key=lambda point: point.loss)

    @property
    def efficient(self) -> tuple[EloPoint, ...]:
        """The steps that no other beats in both log loss and worst bias."""
        return tuple(
            p
            for p in self.points
            if not any(
                q.loss <= p.loss and q.worst_bias <= p.worst_bias and q != p for q in self.points
            )
        )


def sweep(etas: Sequence[float], a: Any, b: Any, score: Any, ties: str = "half") -> EloFrontier:
    """One pass over the games for all constant steps; games against oneself and without a score are left out."""
    steps = np.array(sorted(float(eta) for eta in etas))
    if not len(steps):
        raise BadInput("sweep needs at least one step")
    for eta in steps:
        check_step("sweep(eta=", float(eta))
    players = Players(False)
    j, k = players.coded(a, b)
    y = door.labels(score, len(j))
    door.same_length(len(j), len(y), "score")
    door.refuse((y < 0.0) | (y > 1.0), y, "score", "lies outside [0, 1]")
    played = (j != k) & ~np.isnan(y)
    if ties == "drop":
        played &= y != 0.5
    if not played.all():
        j, k, y = j[played], k[played], y[played]
    count, kinds = players.count, len(steps)
    u, products, losses = np.zeros(count * kinds), np.ones(kinds), np.zeros(kinds)
    run_loop(rating.swept, (), (y, j, k, steps, u, products, losses), len(j) * kinds)
    games = np.bincount(j, minlength=count) + np.bincount(k, minlength=count)
    losses = losses - np.log(products)
    with np.errstate(divide="ignore", invalid="ignore"):
        bias = np.abs(u.reshape(count, kinds)) / (steps * games[:, None])
    few, many = bias[games >= FEW], bias[games >= MANY]

    def mean(table: Any, s: int) -> float:
        return float(table[:, s].mean()) if len(table) else 0.0

    points = (
        EloPoint(
            float(eta), float(eta) / step_from_k(1.0), float(losses[s] / max(len(j), 1)),
            mean(few, s), float(few[:, s].max(initial=0.0)), mean(many, s),
        )
        for s, eta in enumerate(steps)
    )  # fmt: skip
    return EloFrontier(tuple(points), len(j))
