"""Regret: what a fixed parameter, or a fixed move, would have saved in hindsight.

Neither follows from equilibrium nor implies it: regret / T need not vanish where the bias does (paper Section 1).
Losses are those of the runs: ``loss.value(link.serve(f, z'theta), y)``; rows without a label (nan) are left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from gradeq.engine.rows import PairRows, Sparse, table
from gradeq.engine.scalars import Floats, as_number, check_finite, check_labels, floats, same_length
from gradeq.errors import BadInput
from gradeq.inputs.column_types import ColumnLike
from gradeq.ledger.batch import spelled
from gradeq.links import Identity, Link
from gradeq.losses import Linear, Loss, Quantile, Squared
from gradeq.numerics import raised
from gradeq.tables import some

RowsLike = ColumnLike | Sparse | PairRows | None
Offsets = ColumnLike | None

HALVINGS = 200  # enough to bring any bracket down to neighbouring floats
LOOKS = 200  # evaluations at most, for each parameter
NEWTON_STEPS = 60
ENLARGEMENTS = 8  # of a radius that does not contain the minimum, by a factor of 4 each
DIGITS = 1e-9  # relative error of a least value


def regret(
    loss: Loss,
    thetas: ArrayLike,
    labels: ColumnLike,
    comparator: ArrayLike | None = None,
    rows: RowsLike = None,
    offsets: Offsets = None,
    link: Link | None = None,
) -> float:
    """Sum of losses at theta_t less that at one fixed comparator, by default the best one in hindsight.

    ``thetas`` holds theta_t before row t: a column, or with ``rows`` a table (a run's ``trace=1``). Divide by the
    number of labels for the regret per row.

    >>> regret(Squared(), [0.0, 0.0], [1.0, 3.0])
    4.0
    """
    problem = _problem(loss, link, rows, labels, offsets, thetas)
    if comparator is None:
        best = _minimum(problem)
    else:
        best = floats(np.atleast_1d(np.asarray(comparator)), "comparator")
        if len(best) != problem.dimension:
            raise BadInput(f"comparator: {len(best)} values for {problem.dimension} parameters")
    return problem.total(problem.path) - problem.total(problem.fixed(best))


def hindsight_minimiser(
    loss: Loss, labels: ColumnLike, rows: RowsLike = None, offsets: Offsets = None, link: Link | None = None
) -> Floats:
    """The fixed parameters with the least total loss, of any convex loss; :func:`best_in_hindsight` says how sure.

    Squared error in closed form (least squares), quantiles of one parameter by sorting, one parameter a row by
    bisection on the sum of slopes, anything else by Newton's method, or by cutting planes where the loss has kinks.

    >>> hindsight_minimiser(Squared(), [1.0, 3.0]).tolist()
    [2.0]
    """
    return _minimum(_problem(loss, link, rows, labels, offsets, None))


class Hindsight(NamedTuple):
    """The best fixed parameters found, their total loss, and how far it can be above the minimum.

    No parameters of norm at most ``radius`` have a total below ``total - tolerance``: proven by convexity.
    """

    theta: Floats
    total: float
    tolerance: float
    radius: float


class Regret(NamedTuple):
    """Regret over ``rows`` labels against the best fixed parameters found, and how much larger it can be.

    Against every comparator of norm at most ``radius`` the regret is at most ``value + tolerance``.
    """

    value: float
    tolerance: float
    radius: float
    rows: int
    comparator: Floats

    def __str__(self) -> str:
        return (
            f"regret {self.value:.6g} over {some(self.rows, 'row')}, "
            f"certified within {raised(self.tolerance, '.2g'):.2g} "
            f"against every comparator of norm at most {self.radius:.4g}"
        )


def best_in_hindsight(
    loss: Loss,
    labels: ColumnLike,
    rows: RowsLike = None,
    offsets: Offsets = None,
    link: Link | None = None,
    radius: float | None = None,
) -> Hindsight:
    """``hindsight_minimiser`` with a proof: a convex F has F(u) - min over ||v|| <= rho of F <= ||g|| (||u|| + rho).

    g is any subgradient at u; at kinks the slopes on both sides are used. ``radius`` is rho, by default 2 ||u|| + 1.
    The loss must be convex in the parameters (``check_loss`` looks at yours).

    >>> found = best_in_hindsight(Squared(), [1.0, 3.0])
    >>> found.theta.tolist(), found.total, found.tolerance
    ([2.0], 1.0, 1e-15)
    """
    if radius is not None and not 0.0 <= as_number(radius, "radius") < math.inf:
        raise BadInput(f"radius {radius} is negative; give the largest norm that counts")
    problem = _problem(loss, link, rows, labels, offsets, None)
    if not isinstance(problem.link, Identity):
        raise BadInput(
            f"{loss!r} behind {problem.link!r} is not convex in the parameters, so no tolerance can be certified; "
            "use regret, or a loss of the margin such as Logistic() or Poisson()"
        )
    theta = _minimum(problem, radius)
    total, g = problem.look(theta)
    norm = math.hypot(*theta)
    rho = 2.0 * norm + 1.0 if radius is None else float(radius)
    lower = total - math.hypot(*g) * (norm + rho)
    if problem.dimension == 1 and norm <= rho:
        lower = max(lower, *_lower_bounds_at_kink(problem, float(theta[0]), rho))
    elif problem.dimension > 1 and not (total - lower <= DIGITS * abs(total)):
        least = _minimum_in_ball(problem, rho)
        if least.value < total:
            theta, total = least.at, least.value
        lower = max(lower, least.value - least.gap)
    sizes = math.fsum(abs(loss.value(s, y)) for s, y in problem.served(problem.fixed(theta)))
    return Hindsight(theta, total, max(0.0, total - lower) + 1e-15 * sizes, rho)


def certified_regret(
    loss: Loss,
    thetas: ArrayLike,
    labels: ColumnLike,
    rows: RowsLike = None,
    offsets: Offsets = None,
    link: Link | None = None,
    radius: float | None = None,
) -> Regret:
    """``regret`` against the best fixed parameters, with a certified tolerance, for any convex loss.

    >>> print(certified_regret(Squared(), [0.0, 0.0], [1.0, 3.0]))
    regret 4 over 2 rows, certified within 1e-15 against every comparator of norm at most 5
    """
    best = best_in_hindsight(loss, labels, rows, offsets, link, radius)
    problem = _problem(loss, link, rows, labels, offsets, thetas)
    value = problem.total(problem.path) - best.total
    return Regret(value, best.tolerance, best.radius, len(problem.labels), best.theta)


def no_move_regret(
    loss: Loss,
    thetas: ArrayLike,
    labels: ColumnLike,
    radius: float,
    rows: RowsLike = None,
    offsets: Offsets = None,
    link: Link | None = None,
) -> float:
    """The least average change of loss by moving every theta_t by one delta, ||delta|| <= radius; at most 0.

    No move regret (app:no_move_regret) means that this goes to 0 from below for every radius. For convex losses it
    is at least -radius ||average gradient|| (prop:geq_implies_nmr), so equilibrium implies it; for other losses the
    result may not be the least. With d parameters it is accurate to nine digits, or to 1e-14 of the losses.

    >>> no_move_regret(Squared(), [0.0, 0.0], [1.0, 3.0], radius=1.0)
    -1.5
    """
    r = as_number(radius, "radius")
    if r < 0.0:
        raise BadInput(f"radius {r} is negative; give the largest move that counts")
    problem = _problem(loss, link, rows, labels, offsets, thetas)
    if problem.dimension > 1 and not isinstance(problem.link, Identity):
        raise BadInput(
            f"no_move_regret of {problem.dimension} parameters is for the identity link, not {problem.link}; "
            "give a loss of the margin, such as Logistic() or Poisson()"
        )
    if len(problem.labels) == 0 or r == 0.0:
        return 0.0
    stay = problem.total(problem.path)

    def change(delta: Floats) -> tuple[float, Floats]:
        return problem.total(problem.path + delta) - stay, problem.slope(problem.path + delta)

    try:
        if problem.dimension > 1:
            return least_in_ball(change, problem.dimension, r).value / len(problem.labels)
        delta = bisect(lambda d: problem.slope(problem.path + d)[0], -r, r)
        return min(0.0, problem.total(problem.path + delta) - stay) / len(problem.labels)
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


class Least(NamedTuple):
    """The least value found, where, and how far the minimum in the ball may be below it."""

    value: float
    at: Floats
    gap: float


def least_in_ball(look: Callable[[Floats], tuple[float, Floats]], dimension: int, radius: float) -> Least:
    """The least value of a convex function with ||x|| <= radius; ``look`` gives value and subgradient at x.

    Cutting planes: every look cuts off the side where the function is larger, and the next is at the analytic centre
    of the rest, so kinks are no problem. Stops when no point of the rest can improve the gain by a share of DIGITS:
    none is further from the centre than t + 2 sqrt(t) in the metric of t barriers (Nesterov).

    >>> found = least_in_ball(lambda x: (x @ x - 2.0 * x[0], 2.0 * x - [2.0, 0.0]), 2, 0.5)
    >>> round(found.value, 6), found.gap < 1e-8
    (-0.75, True)
    """
    x, inside = np.zeros(dimension), 1.0  # 1 - |x|^2; updated with x, like slack, so that no digits are lost
    where = x
    normals, slack = np.empty((0, dimension)), np.empty(0)
    best, first, proven, scale = math.inf, 0.0, -math.inf, 0.0

    def newton(pull: Floats | None) -> tuple[Floats, float]:
        near = normals / slack[:, None]
        ball = math.sqrt(2.0 / inside) * np.eye(dimension)
        root = np.asarray(np.linalg.qr(np.vstack((near, ball, 2.0 / inside * x)), mode="r"))
        pull = near.sum(axis=0) + 2.0 / inside * x if pull is None else pull
        half = np.linalg.solve(root.T, pull)
        return np.linalg.solve(root, half), float(np.linalg.norm(half))

    for _ in range(LOOKS * dimension):
        value, g = look(radius * x)
        if value < best:
            best, where = float(value), radius * x
        largest = float(abs(g).max())
        if largest == 0.0:
            best, where, proven = float(value), radius * x, float(value)
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
            x, inside = x - step, inside + float((2.0 * x - step) @ step)
            slack = slack + normals @ step
            step, size = newton(None)
            if size < 1e-4:
                break
    return Least(best, where, max(0.0, float(best - proven)))


@dataclass(frozen=True)
class _Problem:
    """The labelled rows of one run: total loss and slope at parameters that may differ from row to row."""

    loss: Loss
    link: Link
    labels: Floats
    offsets: Floats
    features: Floats  # (rows, parameters)
    path: Floats  # the run's own parameters before each row, of the same shape

    @property
    def dimension(self) -> int:
        return len(self.features.T)

    def fixed(self, theta: Floats) -> Floats:
        """The same parameters at every row."""
        return np.broadcast_to(theta, self.path.shape)

    def served(self, path: Floats) -> list[tuple[float, float]]:
        """What is served at each row, and its label."""
        margins = (self.features * path).sum(axis=1).tolist()
        columns = zip(self.offsets.tolist(), margins, self.labels.tolist(), strict=True)
        return [(self.link.serve(f, m), y) for f, m, y in columns]

    def total(self, path: Floats) -> float:
        return math.fsum(self.loss.value(s, y) for s, y in self.served(path))

    def slope(self, path: Floats) -> Floats:
        errors = np.array([self.loss.slope(s, y) for s, y in self.served(path)])
        return np.array([math.fsum(column) for column in (errors[:, None] * self.features).T])

    def look(self, theta: Floats) -> tuple[float, Floats]:
        """The total loss of fixed parameters, and its slope."""
        path = self.fixed(theta)
        return self.total(path), self.slope(path)

    def only(self, j: int) -> _Problem:
        """The rows in which parameter j is active, as a problem of one parameter."""
        rows = self.features[:, j] != 0.0
        features, path = self.features[rows][:, j : j + 1], self.path[rows][:, j : j + 1]
        return _Problem(self.loss, self.link, self.labels[rows], self.offsets[rows], features, path)


def _problem(
    loss: Loss, link: Link | None, rows: RowsLike, labels: ColumnLike, offsets: Offsets, thetas: ArrayLike | None
) -> _Problem:
    """Checked columns, without the rows that have no label."""
    y = floats(labels, "labels", missing=True)
    check_labels(y)
    f = np.zeros(len(y)) if offsets is None else floats(offsets, "offsets")
    same_length(f, "offsets", len(y))
    check_finite(f, "offsets")
    path = None
    if thetas is not None:
        array = np.asarray(thetas)
        path = floats(array, "thetas", dimensions=2 if array.ndim == 2 else 1).reshape(len(array), -1)
        same_length(path, "thetas", len(y))
        check_finite(path, "thetas")
    dimension = path.shape[1] if path is not None else _parameter_count(rows)
    columns = table(rows, dimension, len(y))
    same_length(y, "labels", len(columns))
    columns.check(0, len(y))
    entries = spelled(columns.cut(0, len(y)), dimension)
    z = np.zeros((len(y), dimension))
    np.add.at(z, (np.repeat(np.arange(len(y)), np.diff(entries.starts)), entries.params), entries.values)
    labelled = y == y
    path = np.zeros_like(z) if path is None else path
    return _Problem(loss, link or Identity(), y[labelled], f[labelled], z[labelled], path[labelled])


def _lower_bounds_at_kink(problem: _Problem, theta: float, rho: float) -> list[float]:
    """Lower bounds of the total, from the tangents on both sides of a kink: they meet just below it."""
    bounds, h = [], 1e-3 * (1.0 + abs(theta))
    while h > 1e-16 * (1.0 + abs(theta)):
        ends = [max(-rho, theta - h), min(rho, theta + h)]
        (f, s), (g, r) = ((total, float(slope[0])) for total, slope in (problem.look(np.array([x])) for x in ends))
        if s <= 0.0 <= r:
            bounds.append(max(min(f + s * (ends[1] - ends[0]), f), min(g + r * (ends[0] - ends[1]), g)))
        h *= 0.01
    return bounds or [-math.inf]


def _minimum_in_ball(problem: _Problem, radius: float) -> Least:
    try:
        return least_in_ball(problem.look, problem.dimension, radius)
    except OverflowError:
        raise BadInput(f"radius {radius:g}: the losses overflow there; give a smaller one") from None


def _newton_minimum(problem: _Problem) -> tuple[Floats, bool]:
    """Damped Newton steps from 0, with curvatures from slopes nearby; whether they converged."""
    z, u = problem.features, np.zeros(problem.dimension)
    for _ in range(NEWTON_STEPS):
        total, g = problem.look(u)
        if math.hypot(*g) * (2.0 * math.hypot(*u) + 1.0) <= 1e-12 * (abs(total) + 1e-300):
            return u, True
        if not np.isfinite(g).all():
            return u, False
        curvatures = [  # of the loss at each row
            (problem.loss.slope(s + h, y) - problem.loss.slope(s - h, y)) / (2.0 * h)
            for s, y in problem.served(problem.fixed(u))
            if (h := 1e-5 * (1.0 + abs(s)))
        ]
        hessian = z.T @ (np.array(curvatures)[:, None] * z)
        small = 1e-12 * float(np.trace(hessian)) + 1e-300
        if not np.isfinite(hessian).all():
            return u, False
        step = np.linalg.lstsq(hessian + small * np.eye(len(u)), g, rcond=None)[0]
        scale = 1.0
        for _ in range(40):
            trial = u - scale * step
            if problem.total(problem.fixed(trial)) < total:
                break
            scale *= 0.5
        else:
            return u, False
        u = trial
    return u, False


def _minimum(problem: _Problem, radius: float | None = None) -> Floats:
    if len(problem.labels) == 0:
        raise BadInput("no labels: every parameter is as good as any other; give at least one label")
    identity = isinstance(problem.link, Identity)
    if isinstance(problem.loss, (Squared, Linear)) and identity:
        residuals = problem.labels - problem.offsets
        if problem.dimension == 1:
            z = problem.features[:, 0]
            return np.array([math.fsum(z * residuals) / max(math.fsum(z * z), 1e-300)])
        solution, *_ = np.linalg.lstsq(problem.features, residuals, rcond=None)
        return np.asarray(solution, dtype=np.float64)
    if problem.dimension == 1:
        return np.array([_minimum_of_one(problem)])
    if not ((problem.features != 0.0).sum(axis=1) > 1).any():
        parts = [problem.only(j) for j in range(problem.dimension)]
        return np.array([_minimum_of_one(part) if len(part.labels) else 0.0 for part in parts])
    if not identity:
        raise BadInput(
            f"the minimiser of {problem.loss!r} behind {problem.link!r} over overlapping parameters is not convex; "
            "give a comparator, or a loss of the margin such as Logistic() or Poisson()"
        )
    u, converged = _newton_minimum(problem)
    if converged:
        return u
    if radius is not None:
        return _minimum_in_ball(problem, radius).at
    reach = 2.0 * math.hypot(*u) + 1.0  # where Newton's method does not get there, cutting planes
    for _ in range(ENLARGEMENTS):
        try:
            u = _minimum_in_ball(problem, reach).at
        except BadInput:  # the losses overflow farther out
            break
        if math.hypot(*u) <= 0.9 * reach:
            break
        reach *= 4.0
    return u


def _minimum_of_one(problem: _Problem) -> float:
    identity = isinstance(problem.link, Identity)
    if isinstance(problem.loss, Quantile) and identity and (problem.features == 1.0).all():
        residuals = np.sort(problem.labels - problem.offsets)
        return float(residuals[max(0, math.ceil(problem.loss.level * len(residuals)) - 1)])

    def slope(theta: float) -> float:
        return float(problem.slope(np.full_like(problem.path, theta))[0])

    reach = 1.0
    while reach < 1e300 and not (slope(-reach) <= 0.0 <= slope(reach)):
        reach *= 2.0
        if reach > 700.0 and not identity:
            break  # the link is constant from here on: the minimum is at infinity
    return bisect(slope, -reach, reach)


def _parameter_count(rows: RowsLike) -> int:
    if rows is None:
        return 1
    if isinstance(rows, Sparse):
        indices = np.asarray(rows.index)
    elif isinstance(rows, PairRows):
        indices = np.concatenate((np.asarray(rows.a), np.asarray(rows.b)))
    else:
        array = np.asarray(rows)
        if array.ndim == 2:
            return max(1, int(array.shape[1]))
        indices = array
    return int(indices.max()) + 1 if indices.size else 1
