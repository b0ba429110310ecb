"""Bias and loss of many step sizes on the same rows: the frontier from which a step is chosen, in hindsight."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradeq.engine import checks
from gradeq.engine.flight import too_large
from gradeq.errors import BadInput
from gradeq.kernels.call import run_loop, unsigned
from gradeq.kernels.descent import swept
from gradeq.layers.run import given_columns, grouped
from gradeq.losses import Squared

if TYPE_CHECKING:
    from gradeq.layers.debiaser import Debiaser


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
    """Every step from a fresh start over the same rows, labels known before the next prediction, in one pass."""
    steps = np.array(sorted(steps_of(etas)))
    if len(steps) == 0 or not (np.isfinite(steps).all() and steps[0] > 0.0):
        raise BadInput(f"etas {list(etas)}: give at least one step, each positive and finite")
    fresh = type(layer)(**{**layer.settings, "eta": float(steps[-1]), "schedule": None})
    given = given_columns(fresh, predictions, labels, weights, None, None)
    n, names, base = len(given.base), fresh._names, given.base
    placed = names.columns(n, *grouped(fresh, base, groups, features))
    rows = placed.rows
    w = fresh._flight.weigh_many(fresh._state, names, placed.keys, given.weights)
    w = np.ones(n) if w is None else w
    size = names.size if placed.norms is None else placed.norms
    resized = too_large(fresh._sizing, steps[-1], w, size)
    if np.any(resized) or fresh.link_name == "exp":
        # Rows have steps or units of their own, so every step has to be run by itself.
        return sweep_runs(
            layer, steps.tolist(), predictions, labels, groups, features, weights=weights
        )
    count, k = names.count, len(steps)
    u, errors, losses = np.zeros((k, count)), np.zeros(k), np.zeros(k)
    sparse = (*unsigned(rows.starts, rows.params), np.ascontiguousarray(rows.values))
    arrays = (steps, base, given.labels, w, *sparse, u, errors, losses)
    run_loop(swept, (fresh.link, Squared()), arrays, n * k)
    weight = np.where(np.isnan(given.labels), 0.0, w)
    error = np.nan_to_num(base - given.labels)
    entries = np.repeat(np.arange(n), np.diff(rows.starts))
    own = np.bincount(rows.params, weight[entries], count).astype(np.float64)
    raw = np.bincount(rows.params, (error * weight)[entries] * rows.values, count)
    own, total = np.where(own > 0.0, own, 1.0), float(weight.sum()) or 1.0
    # The sum of a parameter's gradients is its displacement over eta: no second sum is needed (prop:gd_simple).
    worst = np.abs(u / steps[:, None] / own).max(axis=1)
    points = tuple(
        Point(float(eta), float(e) / total, float(x), 2.0 * float(q) / total)
        for eta, e, x, q in zip(steps, errors, worst, losses, strict=True)
    )
    bias, square = float((error * weight).sum()) / total, float((error * weight * error).sum())
    unmoved = Point(0.0, bias, float(np.abs(raw / own).max()), square / total)
    return Frontier(points, unmoved, "squared error")


def steps_of(etas: Any) -> list[float]:
    """The steps of a sweep, each a number."""
    return [checks.number(eta, "eta") for eta in checks.several(etas, "etas", "steps")]


def sweep_runs(layer: Any, etas: Sequence[float], *columns: Any, **named: Any) -> Frontier:
    """Every step from a fresh start over the same rows, one run each: bias is coverage less level."""
    points = []
    for eta in sorted(steps_of(etas)):
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
