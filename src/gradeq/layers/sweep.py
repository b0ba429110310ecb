"""Bias and loss of many step sizes on the same rows: the frontier from which a step is chosen, in hindsight."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradeq.engine.batch import Floats
from gradeq.errors import BadInput
from gradeq.kernels.call import run_loop, unsigned
from gradeq.kernels.sweeping import swept
from gradeq.losses import Squared

if TYPE_CHECKING:
    from gradeq.layers.debiaser import Debiaser

USUAL = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3)


class Point(NamedTuple):
    """What one step would have given: overall bias, the largest |bias| of a parameter over its own rows, the loss."""

    eta: float
    bias: float
    worst: float
    loss: float


@dataclass(frozen=True)
class Frontier:
    """One point for each step, smallest step first, and the raw prediction for comparison.

    In hindsight, on these same rows: it says what would have been, not what will be.
    """

    points: tuple[Point, ...]
    raw: Point
    loss_name: str

    def __iter__(self) -> Iterator[Point]:
        return iter(self.points)

    def least_loss(self) -> Point:
        """The step with the smallest loss."""
        return min(self.points, key=lambda point: point.loss)

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


def sweep(
    layer: Debiaser,
    etas: Sequence[float],
    predictions: Any,
    labels: Any,
    groups: Any = None,
    features: Any = None,
    weights: Any = None,
) -> Frontier:
    """Every step from a fresh start over the same rows, labels at once, in one pass."""
    from gradeq.layers.run import checked, made_columns

    steps = np.array(sorted(float(eta) for eta in etas))
    if len(steps) == 0 or not (np.isfinite(steps).all() and steps[0] > 0.0):
        raise BadInput(f"etas {list(etas)}: give at least one step, each positive and finite")
    fresh = type(layer)(**{**layer.settings, "eta": float(steps[-1]), "schedule": None})
    given = checked(fresh, predictions, labels, groups, features, None, None, weights)
    rows = made_columns(fresh, *given)
    names = fresh.roster.names
    count, k = len(names), len(steps)
    u, errors, losses = np.zeros((k, count)), np.zeros(k), np.zeros(k)
    sparse = (*unsigned(rows.rows.starts, rows.rows.params), rows.rows.value)
    run_loop(
        swept,
        (fresh.link, Squared()),
        (steps, rows.base, rows.labels, rows.weights, *sparse, u, errors, losses),
        len(rows.base) * k,
    )
    own, raw = raw_sums(rows, count)
    total = float(rows.weights[~np.isnan(rows.labels)].sum()) or 1.0
    # The sum of a parameter's gradients is its displacement over eta: no second sum is needed (prop:gd_simple).
    worst = np.abs(u / steps[:, None] / own).max(axis=1)
    points = tuple(
        Point(float(eta), float(e) / total, float(w), 2.0 * float(q) / total)
        for eta, e, w, q in zip(steps, errors, worst, losses, strict=True)
    )
    residual = np.nan_to_num(rows.base - rows.labels) * rows.weights
    square = residual * np.nan_to_num(rows.base - rows.labels)
    base = Point(
        0.0,
        float(residual.sum()) / total,
        float(np.abs(raw / own).max()),
        float(square.sum()) / total,
    )
    return Frontier(points, base, "squared error")


def sweep_runs(layer: Any, etas: Sequence[float], *columns: Any, **named: Any) -> Frontier:
    """Every step from a fresh start over the same rows, one run each: bias is coverage less level."""
    points = []
    for eta in sorted(float(eta) for eta in etas):
        fresh = type(layer)(**{**layer.settings, "eta": eta, "schedule": None})
        fresh.run(*columns, **named)
        result = fresh.equilibrium()
        points.append((eta, result))
    if not points:
        raise BadInput("etas: give at least one step")

    def point(eta: float, result: Any, when: str) -> Point:
        biases = [getattr(c, f"bias_{when}") for c in result.coordinates]
        largest = max(biases, key=abs, default=0.0)
        return Point(eta, largest, abs(largest), getattr(result, f"loss_{when}"))

    raw = point(0.0, points[0][1], "before")
    return Frontier(tuple(point(eta, r, "after") for eta, r in points), raw, points[0][1].loss_name)


def raw_sums(rows: Any, count: int) -> tuple[Floats, Floats]:
    """For each parameter, the weight of its labelled rows and the raw sum of gradients."""
    weight = np.where(np.isnan(rows.labels), 0.0, rows.weights)
    error = np.nan_to_num(rows.base - rows.labels) * weight
    per_entry = np.repeat(np.arange(len(rows.base)), np.diff(rows.rows.starts))
    own = np.bincount(rows.rows.params, weight[per_entry], count).astype(np.float64)
    raw = np.bincount(rows.rows.params, error[per_entry] * rows.rows.value, count).astype(
        np.float64
    )
    return np.where(own > 0.0, own, 1.0), raw
