"""Regret: what a fixed parameter, or a fixed move, would have saved in hindsight.

Neither follows from equilibrium nor implies it: regret / T need not vanish where the bias does (paper Section 1).
Losses are those of the runs: ``loss.value(link.serve(f, z'theta), y)``; rows without a label (nan) count for nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gradeq.engine.checks import (
    Floats,
    check_finite,
    check_labels,
    floats,
    number,
    same_length,
)
from gradeq.engine.rows import table
from gradeq.errors import BadInput
from gradeq.ledger.batch import spelled
from gradeq.links import Identity, Link
from gradeq.losses import Linear, Loss, Quantile, Squared

HALVINGS = 200  # enough to bring any bracket down to neighbouring floats
LOOKS = 200  # at most, for each parameter
DIGITS = 1e-9  # of a least value


def regret(
    loss: Loss,
    thetas: Any,
    labels: Any,
    comparator: Any = None,
    rows: Any = None,
    offsets: Any = None,
    link: Link | None = None,
) -> float:
    """Sum of losses at theta_t less that at one fixed comparator, by default the best one in hindsight.

    ``thetas`` holds theta_t before row t: a column, or with ``rows`` a table (a run's ``trace=1``). Divide by the
    number of labels for the regret per row.

    >>> regret(Squared(), [0.0, 0.0], [1.0, 3.0])
    4.0
    """
    data = _Sequence(loss, link, rows, labels, offsets, thetas)
    if comparator is None:
        best = _minimiser(loss, data)
    else:
        best = floats(np.atleast_1d(np.asarray(comparator)), "comparator")
        if len(best) != data.dimension:
            raise BadInput(f"comparator: {len(best)} values for {data.dimension} parameters")
    return data.total(data.path) - data.total(np.broadcast_to(best, data.path.shape))


def hindsight_minimiser(
    loss: Loss, labels: Any, rows: Any = None, offsets: Any = None, link: Link | None = None
) -> Floats:
    """The fixed parameters with the least total loss.

    Squared error in closed form (least squares), quantiles by sorting, anything else convex by bisection on the sum
    of slopes. Several parameters need the squared error, or one active index a row: each is then its own problem.

    >>> hindsight_minimiser(Squared(), [1.0, 3.0]).tolist()
    [2.0]
    """
    return _minimiser(loss, _Sequence(loss, link, rows, labels, offsets, None))


def no_move_regret(
    loss: Loss,
    thetas: Any,
    labels: Any,
    radius: float,
    rows: Any = None,
    offsets: Any = None,
    link: Link | None = None,
) -> float:
    """The least average change of loss by moving every theta_t by one delta, ||delta|| <= radius; at most 0.

    No move regret (app:no_move_regret) means that this goes to 0 from below for every radius. For convex losses it
    is at least -radius ||average gradient|| (prop:geq_implies_nmr), so equilibrium implies it; only for them is it
    sure to be the least. With d parameters it has nine digits, or is right to 1e-14 of that, after up to 50 d looks.

    >>> no_move_regret(Squared(), [0.0, 0.0], [1.0, 3.0], radius=1.0)
    -1.5
    """
    r = number(radius, "radius")
    if r < 0.0:
        raise BadInput(f"radius {r} is negative; give the largest move that counts")
    data = _Sequence(loss, link, rows, labels, offsets, thetas)
    if data.dimension > 1 and not isinstance(data.link, Identity):
        raise BadInput(
            f"no_move_regret of {data.dimension} parameters is for the identity link, not {data.link}; "
            "give a loss of the margin, such as Logistic() or Poisson()"
        )
    if data.count == 0 or r == 0.0:
        return 0.0
    stay = data.total(data.path)

    def change(delta: Floats) -> tuple[float, Floats]:
        return data.total(data.path + delta) - stay, data.slope(data.path + delta)

    try:
        if data.dimension > 1:
            return least_in_ball(change, data.dimension, r) / data.count
        delta = bisect(lambda d: data.slope(data.path + d)[0], -r, r)
        return min(0.0, data.total(data.path + delta) - stay) / data.count
    except OverflowError:
        raise BadInput(f"radius {r}: the losses overflow there; give a smaller one") from None


def bisect(slope: Callable[[float], float], low: float, high: float) -> float:
    """The point of [low, high] where an increasing slope changes sign, or the end it points to.

    >>> bisect(lambda x: x - 0.25, 0.0, 1.0)
    0.25
    """
    if slope(low) >= 0.0:
        return low
    if slope(high) <= 0.0:
        return high
    for _ in range(HALVINGS):
        middle = low + 0.5 * (high - low)
        if not low < middle < high:
            break
        s = slope(middle)
        if s == 0.0:
            return middle
        if s < 0.0:
            low = middle
        else:
            high = middle
    return high


def least_in_ball(
    look: Callable[[Floats], tuple[float, Floats]], dimension: int, radius: float
) -> float:
    """The least value of a convex function with ||x|| <= radius; ``look`` gives value and subgradient at x.

    Every look cuts off the side where the function is larger; the next is at the analytic centre of what is left,
    which takes kinks as they come. Ends when no point that is left can gain a share of DIGITS more: none is further
    from the centre than t + 2 sqrt(t) in the metric of t barriers (Nesterov).

    >>> round(least_in_ball(lambda x: (x @ x - 2.0 * x[0], 2.0 * x - [2.0, 0.0]), 2, 0.5), 6)
    -0.75
    """
    x, room = np.zeros(dimension), 1.0  # room and slack follow x, and so keep their digits
    normals, slack = np.empty((0, dimension)), np.empty(0)
    best, first, proven, scale = math.inf, 0.0, -math.inf, 0.0

    def newton(pull: Floats | None) -> tuple[Floats, float]:
        near = normals / slack[:, None]
        ball = math.sqrt(2.0 / room) * np.eye(dimension)
        root = np.asarray(np.linalg.qr(np.vstack((near, ball, 2.0 / room * x)), mode="r"))
        pull = near.sum(axis=0) + 2.0 / room * x if pull is None else pull
        half = np.linalg.solve(root.T, pull)
        return np.linalg.solve(root, half), float(np.linalg.norm(half))

    for _ in range(LOOKS * dimension):
        value, g = look(radius * x)
        best, largest = min(best, float(value)), float(abs(g).max())
        if largest == 0.0:
            break
        if not math.isfinite(largest):
            raise OverflowError
        norm = float(np.linalg.norm(g / largest))
        normal, steep = g / largest / norm, radius * largest * norm
        if not len(slack):
            first, scale = value, abs(value) + steep
        step, size = newton(normal)
        t = len(slack) + 1
        proven = max(proven, value - steep * size * (t + 2.0 * math.sqrt(t)))
        if best - proven <= max(DIGITS * (first - best), 1e-14 * scale):
            break
        normals, slack = np.vstack((normals, normal)), np.append(slack, 0.0)
        step, size = step / size, 1.0  # half the way to the barriers, damped as below
        for _ in range(HALVINGS):
            step = step / (1.0 + size)
            x, room = x - step, room + float((2.0 * x - step) @ step)
            slack = slack + normals @ step
            step, size = newton(None)
            if size < 1e-4:
                break
    return best


class _Sequence:
    """Checked columns of one run, without the rows that have no label."""

    def __init__(
        self, loss: Loss, link: Link | None, rows: Any, labels: Any, offsets: Any, thetas: Any
    ) -> None:
        self.loss, self.link = loss, link or Identity()
        y = floats(labels, "labels", missing=True)
        check_labels(y)
        f = np.zeros(len(y)) if offsets is None else floats(offsets, "offsets")
        same_length(f, "offsets", len(y))
        check_finite(f, "offsets")
        path = self._path(thetas, len(y), rows)
        self.dimension = path.shape[1] if path is not None else _width(rows)
        made = table(rows, self.dimension, len(y))
        same_length(y, "labels", len(made))
        made.check(0, len(y))
        entries = spelled(made.cut(0, len(y)), self.dimension)
        z = np.zeros((len(y), self.dimension))
        numbers = np.repeat(np.arange(len(y)), np.diff(entries.starts))
        np.add.at(z, (numbers, entries.params), entries.values)
        kept = y == y
        self.labels, self.offsets, self.features = y[kept], f[kept], z[kept]
        self.path = path[kept] if path is not None else np.zeros_like(self.features)
        self.count = int(kept.sum())

    @staticmethod
    def _path(thetas: Any, count: int, rows: Any) -> Floats | None:
        if thetas is None:
            return None
        array = np.asarray(thetas)
        path = floats(array, "thetas", dimensions=2 if array.ndim == 2 else 1)
        path = path.reshape(len(array), -1)
        same_length(path, "thetas", count)
        check_finite(path, "thetas")
        return path

    def served(self, path: Floats) -> list[float]:
        margins = (self.features * path).sum(axis=1).tolist()
        return [self.link.serve(f, m) for f, m in zip(self.offsets.tolist(), margins, strict=True)]

    def total(self, path: Floats) -> float:
        pairs = zip(self.served(path), self.labels.tolist(), strict=True)
        return math.fsum(self.loss.value(s, y) for s, y in pairs)

    def slope(self, path: Floats) -> Floats:
        pairs = zip(self.served(path), self.labels.tolist(), strict=True)
        errors = np.array([self.loss.slope(s, y) for s, y in pairs])
        return np.array([math.fsum(column) for column in (errors[:, None] * self.features).T])

    def only(self, j: int) -> _Sequence:
        """The rows in which parameter j alone is active, as a problem of one parameter."""
        own = self.features[:, j] != 0.0
        part = object.__new__(_Sequence)
        part.loss, part.link, part.dimension = self.loss, self.link, 1
        part.labels, part.offsets = self.labels[own], self.offsets[own]
        part.features, part.path = self.features[own][:, j : j + 1], self.path[own][:, j : j + 1]
        part.count = int(own.sum())
        return part


def _minimiser(loss: Loss, data: _Sequence) -> Floats:
    if data.count == 0:
        raise BadInput(
            "no labels: every parameter is as good as any other; give at least one label"
        )
    identity = isinstance(data.link, Identity)
    if isinstance(loss, (Squared, Linear)) and identity:
        residuals = data.labels - data.offsets
        if data.dimension == 1:
            z = data.features[:, 0]
            return np.array([math.fsum(z * residuals) / max(math.fsum(z * z), 1e-300)])
        solution, *_ = np.linalg.lstsq(data.features, residuals, rcond=None)
        return np.asarray(solution, dtype=np.float64)
    if data.dimension == 1:
        return np.array([_one(loss, data)])
    if ((data.features != 0.0).sum(axis=1) > 1).any():
        raise BadInput(
            f"the minimiser of {loss!r} over overlapping parameters has no simple form; give a comparator"
        )
    parts = [data.only(j) for j in range(data.dimension)]
    return np.array([_one(loss, part) if part.count else 0.0 for part in parts])


def _one(loss: Loss, data: _Sequence) -> float:
    identity = isinstance(data.link, Identity)
    if isinstance(loss, Quantile) and identity and (data.features == 1.0).all():
        residuals = np.sort(data.labels - data.offsets)
        return float(residuals[max(0, math.ceil(loss.level * len(residuals)) - 1)])

    def slope(theta: float) -> float:
        return float(data.slope(np.full_like(data.path, theta))[0])

    reach = 1.0
    while reach < 1e300 and not (slope(-reach) <= 0.0 <= slope(reach)):
        reach *= 2.0
        if reach > 700.0 and not identity:
            break  # links saturate here: the minimum lies at infinity, and this is as good
    return bisect(slope, -reach, reach)


def _width(rows: Any) -> int:
    if rows is None:
        return 1
    if hasattr(rows, "index") and hasattr(rows, "starts"):
        indices = np.asarray(rows.index)
    elif hasattr(rows, "a") and hasattr(rows, "b"):
        indices = np.concatenate((np.asarray(rows.a), np.asarray(rows.b)))
    else:
        array = np.asarray(rows)
        if array.ndim == 2:
            return max(1, int(array.shape[1]))
        indices = array
    return int(indices.max()) + 1 if indices.size else 1
