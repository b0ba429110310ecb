"""What other steps would have given on the same rows: bias and loss of each, in hindsight."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy as np

from gradeq.engine import scalars
from gradeq.engine.lateness import too_large
from gradeq.engine.players import Players
from gradeq.errors import BadInput
from gradeq.kernels.choice import run_loop, unsigned
from gradeq.kernels.descent import swept
from gradeq.kernels.rating import swept_ratings
from gradeq.layers.columns import grouped
from gradeq.layers.run import InputColumns, checked, run_layer, scores, two_columns
from gradeq.losses import Squared
from gradeq.rules.rating import JUDGE
from gradeq.schedules import check_step
from gradeq.theory.features import step_from_k

if TYPE_CHECKING:
    from gradeq.equilibrium import Equilibrium
    from gradeq.inputs.column_types import ColumnLike
    from gradeq.layers.debiaser import Debiaser
    from gradeq.layers.predicting import Grouped
    from gradeq.ledger.batch import Floats, Ints


class Point(NamedTuple):
    """The result of one step: overall bias, the largest |bias| of a parameter over its rows, and the loss."""

    eta: float
    bias: float
    worst: float
    loss: float


StepPoint = TypeVar("StepPoint", bound="Point | EloPoint")


@dataclass(frozen=True)
class StepFrontier(Generic[StepPoint]):
    """One point for each step, smallest step first, and for comparison the raw predictions (``raw``).

    In hindsight, on these same rows: what would have been, not what will be.
    """

    points: tuple[StepPoint, ...]
    raw: StepPoint

    def __iter__(self) -> Iterator[StepPoint]:
        return iter(self.points)

    def least_loss(self) -> StepPoint:
        """The step with the smallest loss."""
        return min(self.points, key=lambda point: point.loss)


@dataclass(frozen=True)
class Frontier(StepFrontier[Point]):
    """One point for each step, and the raw prediction for comparison."""

    loss_name: str

    def least_bias(self, loss_budget: float = 0.01) -> Point:
        """The step with the smallest worst bias among those that raise the loss by at most the budget (a share)."""
        allowed = [p for p in self.points if p.loss <= self.raw.loss * (1.0 + loss_budget)]
        return min(allowed, key=lambda point: point.worst) if allowed else self.raw

    def __str__(self) -> str:
        lines = [f"{'eta':>10} {'bias':>12} {'worst':>12} {self.loss_name:>14}"]
        for point in (self.raw, *self.points):
            name = "raw" if point.eta == 0.0 else f"{point.eta:g}"
            lines.append(f"{name:>10} {point.bias:>12.5g} {point.worst:>12.5g} {point.loss:>14.6g}")
        return "\n".join(lines)


def sweep(layer: Debiaser, etas: Sequence[float], columns: InputColumns[ColumnLike]) -> Frontier:
    """Every step from a fresh start over the same rows, labels known before the next prediction, in one pass."""
    steps = np.array(sorted(steps_of(etas)))
    if len(steps) == 0 or not (np.isfinite(steps).all() and steps[0] > 0.0):
        raise BadInput(f"etas {list(etas)}: give at least one step, each positive and finite")
    fresh = type(layer)(**{**layer.settings, "eta": float(steps[-1]), "schedule": None})
    base, y, weights, _, _ = checked(fresh, columns)
    n, names = len(base), fresh.internals.names
    placed = names.columns(n, *grouped(fresh, base, columns.groups, columns.features))
    rows = placed.rows
    w = fresh.internals.lateness.weigh_many(fresh.internals.state, names, placed.keys, weights)
    w = np.ones(n) if w is None else w
    size = names.size if placed.norms is None else placed.norms
    resized = too_large(fresh.internals.sizing, steps[-1], w, size)
    if np.any(resized) or fresh.link_name == "exp":
        # The step or unit differs from row to row, so every step needs a run.
        return sweep_runs(layer, steps.tolist(), columns)
    count, k = names.count, len(steps)
    u, errors, losses = np.zeros((k, count)), np.zeros(k), np.zeros(k)
    sparse = (*unsigned(rows.starts, rows.params), np.ascontiguousarray(rows.values))
    run_loop(swept, (fresh.link, Squared()), (steps, base, y, w, *sparse, u, errors, losses), n * k)
    weight = np.where(np.isnan(y), 0.0, w)
    error = np.nan_to_num(base - y)
    entries = np.repeat(np.arange(n), np.diff(rows.starts))
    masses = np.bincount(rows.params, weight[entries], count).astype(np.float64)
    raw = np.bincount(rows.params, (error * weight)[entries] * rows.values, count)
    masses, total = np.where(masses > 0.0, masses, 1.0), float(weight.sum()) or 1.0
    # The sum of a parameter's gradients is its displacement over eta: no second sum is needed (prop:gd_simple).
    worst = np.abs(u / steps[:, None] / masses).max(axis=1)
    points = tuple(
        Point(float(eta), float(e) / total, float(x), 2.0 * float(q) / total)
        for eta, e, x, q in zip(steps, errors, worst, losses, strict=True)
    )
    bias, square = float((error * weight).sum()) / total, float((error * weight * error).sum())
    return Frontier(points, Point(0.0, bias, float(np.abs(raw / masses).max()), square / total), "squared error")


def steps_of(etas: Sequence[float]) -> list[float]:
    return [scalars.as_number(eta, "eta") for eta in scalars.several(etas, "etas", "steps")]


def sweep_runs(layer: Grouped[Any, Any], etas: Sequence[float], columns: InputColumns[ColumnLike]) -> Frontier:
    """Every step from a fresh start over the same rows, one run each: bias is coverage less level."""
    results = []
    for eta in sorted(steps_of(etas)):
        fresh = type(layer)(**{**layer.settings, "eta": eta, "schedule": None})
        run_layer(fresh, columns)
        results.append((eta, fresh.equilibrium()))
    if not results:
        raise BadInput("etas: give at least one step")

    def point(eta: float, result: Equilibrium, when: str) -> Point:
        biases = [getattr(c, f"bias_{when}") for c in result.coordinates]
        largest = max(biases, key=abs, default=0.0)
        return Point(eta, largest, abs(largest), getattr(result, f"loss_{when}"))

    first = results[0][1]
    points = tuple(point(eta, result, "after") for eta, result in results)
    return Frontier(points, point(0.0, first, "before"), first.loss_name)


FEW, MANY = 30, 100


class EloPoint(NamedTuple):
    """The result of one step: log loss, and the |bias| of players with at least 30 (or 100) games.

    ``worst`` is the largest and ``mean`` the mean over players with 30 games, ``mean_100`` over those with 100.
    """

    eta: float
    k: float
    worst: float
    loss: float
    mean: float
    mean_100: float


@dataclass(frozen=True)
class EloFrontier(StepFrontier[EloPoint]):
    """One point for each step, and a coin for comparison."""

    games: int
    loss_name: str = "log loss"

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


def sweep_elo(
    etas: Sequence[float], a: ColumnLike, b: ColumnLike, score: ColumnLike, ties: str = "half"
) -> EloFrontier:
    """One pass over the games for all constant steps, without games against oneself or without a score."""
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
    run_loop(swept_ratings, (JUDGE,), (j, k, y, steps, u, losses, likely, np.empty(kinds)), len(j) * kinds)
    games = np.bincount(j, minlength=count) + np.bincount(k, minlength=count)
    wins = np.bincount(j, y, count) + np.bincount(k, 1.0 - y, count)
    losses = losses - 0.5 * np.log(likely)
    counts = np.maximum(games, 1)[:, None]
    # The sum of a player's gradients is the displacement over eta: no second sum is needed (result 8.5).
    bias = np.abs(u) / (steps * counts)
    coin = np.abs(0.5 * games - wins)[:, None] / counts
    mean_loss = losses / max(len(j), 1)
    points = tuple(
        point(float(eta), float(loss), bias[:, s], games)
        for s, (eta, loss) in enumerate(zip(steps, mean_loss, strict=True))
    )
    return EloFrontier(points, point(0.0, math.log(2.0), coin[:, 0], games), len(j))


def point(eta: float, loss: float, bias: Floats, games: Ints) -> EloPoint:
    few, many = bias[games >= FEW], bias[games >= MANY]

    def mean(column: Floats) -> float:
        return float(column.mean()) if len(column) else 0.0

    worst = float(few.max(initial=0.0))
    return EloPoint(eta, eta / step_from_k(1.0), worst, loss, mean(few), mean(many))
