"""Checks of a custom loss: what is wrong with it, one line each.

A loss needs ``value(u, y)`` and ``slope(u, y)`` in plain scalar Python; batches, late labels and certificates follow.
The slope alone decides what equilibrium means; if it is a subgradient of the value, it is that of the loss.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from gradeq.engine.scalars import as_number, flag, several
from gradeq.errors import BadInput
from gradeq.kernels.choice import is_refusal
from gradeq.kernels.compile import compiled, fields
from gradeq.kernels.descent import Alone, DescentBuffers, DescentInputs, Free, Later, Same, at_once
from gradeq.links import Identity
from gradeq.losses import Loss
from gradeq.numerics import raised
from gradeq.penalties import Ridge

POINTS = (-30.0, -3.0, -1.0, -0.5, 0.0, 0.25, 0.5, 1.0, 2.0, 7.5, 40.0)
FAR = (20.0, 50.0, 200.0)
SPREADS = (3.0, 10.0, 30.0)  # how far beyond the labels the slope is checked, in units of their spread
FADED = 1e-6  # a slope times its distance counts as zero below this share of its value among the labels
ADVICE = ("compiles", "restorative", "several parameters")  # failing these costs only speed or a bound


class Finding(NamedTuple):
    """One line of a report: what was checked, whether it passed, and what was seen."""

    what: str
    passed: bool
    seen: str

    def __str__(self) -> str:
        return f"{'ok  ' if self.passed else 'FAIL'}  {self.what}: {self.seen}"


class Report(NamedTuple):
    """The findings about one loss."""

    loss: str
    findings: tuple[Finding, ...]

    @property
    def passed(self) -> bool:
        """Whether the loss can be used; notes on speed and on bounds do not count."""
        return all(f.passed for f in self.findings if f.what not in ADVICE)

    def __str__(self) -> str:
        return "\n".join((self.loss, *(f"  {finding}" for finding in self.findings)))


def check_loss(
    loss: Loss,
    labels: Iterable[float] = (-2.0, 0.0, 0.5, 1.0, 3.0),
    *,
    raise_error: bool = False,
    quiet: bool = False,
) -> Report:
    """Check a loss over a grid of predictions and these labels; prints and returns a line for each finding.

    ``labels``: typical labels of your loss. Whether the slope points back to them is checked a few of their spreads
    away. ``raise_error`` turns a failure into an error.

    >>> from gradeq.losses import Squared
    >>> report = check_loss(Squared(), quiet=True)
    >>> report.passed
    True
    """
    raise_error, quiet = flag(raise_error, "raise_error"), flag(quiet, "quiet")
    low, high = getattr(loss, "low", -math.inf), getattr(loss, "high", math.inf)
    numbers = [as_number(y, "one of labels:") for y in several(labels, "labels", "numbers")]
    ys = [y for y in numbers if low <= y <= high]
    if not ys:
        raise BadInput("check_loss: no label to check with; give labels that the loss is made for")
    findings: list[Finding] = []
    for check in (_has_methods, _is_scalar, _is_finite):  # each makes sense only if the one before passed
        if all(finding.passed for finding in findings):
            findings.append(check(loss, ys))
    if findings[-1].passed:
        findings += [check(loss, ys) for check in (_subgradient, _compiles, _restorative, _several_parameters)]
    report = Report(repr(loss), tuple(findings))
    if not quiet:
        print(report)
    if raise_error and not report.passed:
        first = next(f for f in findings if not f.passed)
        raise BadInput(f"{report.loss}: {first.what}: {first.seen}")
    return report


def _has_methods(loss: Loss, ys: list[float]) -> Finding:
    what = "a value with two methods"
    if isinstance(loss, type):
        return Finding(what, False, f"{loss.__name__} is a class; give an instance of it")
    missing = [name for name in ("value", "slope") if not callable(getattr(loss, name, None))]
    if missing:
        return Finding(what, False, f"no method {' and '.join(missing)}(u, y)")
    hint = "" if dataclasses.is_dataclass(loss) else " (a frozen dataclass could also be saved)"
    return Finding(what, True, f"value and slope are there{hint}")


def _is_scalar(loss: Loss, ys: list[float]) -> Finding:
    """One float in, one float out, the same each time: then a column is the same formula row by row."""
    what = "plain scalar"
    for name, u, y in itertools.product(("value", "slope"), POINTS, ys):
        method = getattr(loss, name)
        try:
            first, second = method(u, y), method(u, y)
        except Exception as error:
            return Finding(what, False, f"{name}({u}, {y}) raises {type(error).__name__}: {error}")
        if isinstance(first, np.ndarray) or not isinstance(first, (int, float, np.floating)):
            return Finding(what, False, f"{name}({u}, {y}) is a {type(first).__name__}, not a float")
        if first != second and not (first != first and second != second):
            return Finding(what, False, f"{name}({u}, {y}) is {first}, then {second}")
    return Finding(what, True, "one float out for one float in, the same each time")


def _is_finite(loss: Loss, ys: list[float]) -> Finding:
    for name, u, y in itertools.product(("value", "slope"), (*POINTS, *FAR, *(-u for u in FAR)), ys):
        try:
            result = getattr(loss, name)(u, y)
        except Exception as error:
            return Finding("finite", False, f"{name}({u}, {y}) raises {type(error).__name__}")
        if not math.isfinite(result):
            return Finding("finite", False, f"{name}({u}, {y}) is {result}")
    return Finding("finite", True, "for predictions up to 200")


def _subgradient(loss: Loss, ys: list[float]) -> Finding:
    """value(v) >= value(u) + slope(u) (v - u) if convex; otherwise at least its one-sided derivatives."""
    not_convex = _line_above_value(loss, ys)
    if not not_convex:
        return Finding("subgradient", True, "the slope supports the value everywhere: convex")
    for y in ys:
        for u in _points(loss, y):
            h = 1e-5 * (1.0 + abs(u))
            left = (loss.value(u, y) - loss.value(u - h, y)) / h
            right = (loss.value(u + h, y) - loss.value(u, y)) / h
            rounding = 1e-15 * abs(loss.value(u, y)) / h  # of the differences, with large labels
            slack = 1e-3 * (1.0 + abs(left) + abs(right)) + rounding
            slope, rise = loss.slope(u, y), 0.5 * (left + right)
            if not min(left, right) - slack <= slope <= max(left, right) + slack:
                bad = f"slope({u}, {y}) is {slope:.6g}, but the value there rises by {rise:.6g} per unit"
                return Finding("subgradient", False, bad)
    return Finding("subgradient", True, f"the slope is the derivative, but not convex: {not_convex}")


def _line_above_value(loss: Loss, ys: list[float]) -> str:
    """The first point where a tangent lies above the value, in words; empty for a convex loss."""
    for y in ys:
        for u, v in itertools.product(_points(loss, y), repeat=2):
            value, rise = loss.value(u, y), loss.slope(u, y) * (v - u)
            below = loss.value(v, y) - value - rise
            if below < -1e-9 * (1.0 + abs(value) + abs(rise)):
                return f"value({v}, {y}) lies {-below:.3g} below the line through u = {u}"
    return ""


def _points(loss: Loss, y: float) -> tuple[float, ...]:
    """Where slope and value are compared: at the label too, if u can be there (exp of a count overflows)."""
    try:
        return (*POINTS, y) if math.isfinite(loss.value(y, y) + loss.slope(y, y)) else POINTS
    except Exception:
        return POINTS


def _compiles(loss: Loss, ys: list[float]) -> Finding:
    """Long columns run compiled; a loss that numba refuses runs interpreted, some 30 times slower."""
    what = "compiles"
    base = np.array([u for u in POINTS for _ in ys])
    labels = np.array([y for _ in POINTS for y in ys])
    steepest = max(abs(float(loss.slope(u, y))) for u in POINTS for y in ys)
    eta = 0.01 / max(1.0, float(abs(labels).max()), steepest)  # predictions stay where they are
    empty, step = np.empty(0), np.array([eta])
    index = empty.astype(np.uint64)
    columns = DescentInputs(base, base, labels, empty, step, index, index, empty, np.empty(len(base)))
    buffers = DescentBuffers(np.zeros(1), *[empty] * 5)
    plain_columns, plain_buffers = DescentInputs(*map(np.ndarray.tolist, columns)), DescentBuffers([0.0], *[[]] * 5)
    parts = (Identity(), loss, Ridge(1.0), Alone(), Same(), Free(), Later())
    loop = None
    try:
        loop = compiled(at_once, (*parts, columns, buffers))
        if loop is None:
            return Finding(what, False, "not tried: numba or the source text is missing; interpreted instead")
        loop(*(fields(part) for part in (*parts, columns, buffers)))
    except Exception as error:
        if loop is not None and not is_refusal(error):
            raise
        return Finding(what, False, f"interpreted instead: {_one_line(error)}")
    try:
        at_once(*parts, plain_columns, plain_buffers)
    except OverflowError:
        return Finding(what, False, "interpreted instead: compiled, what is too large is infinite")
    if [*buffers.u, *columns.served] != [*plain_buffers.u, *plain_columns.served]:
        return Finding(what, False, "compiled and interpreted differ in the last digits")
    return Finding(what, True, "and agrees with the interpreted formula bit for bit")


def _restorative(loss: Loss, ys: list[float]) -> Finding:
    """Above the labels the slope must not be negative, below them not positive, unless it fades away quickly.

    Distances are in spreads of the labels, so that their unit does not matter. If u is a margin (a log, a logit), it
    has another unit; a loss whose slope is larger above the labels than below, like a convex one, is checked at
    margins too.
    """
    low, high = min(ys), max(ys)
    spread = high - low or abs(high) or 1.0
    outside = [(low - k * spread, high + k * spread) for k in SPREADS]
    away = _points_away(loss, ys, outside, spread)
    if away is None:
        return Finding("restorative", True, "beyond the labels the slope points back, or fades")
    margins = [(-u, u) for u in FAR[1:]]
    rises = not any(_slope(loss, u, y) > _slope(loss, v, y) for u, v in outside for y in ys)
    back = any(_slope(loss, u, y) < 0.0 or _slope(loss, v, y) > 0.0 for u, v in margins for y in ys)
    if rises and back and _points_away(loss, ys, margins, 1.0) is None:
        return Finding("restorative", True, f"at margins of {FAR[1]:g} and more the slope points back, or fades")
    return Finding("restorative", False, f"{away} points away from the labels: no bound holds")


def _several_parameters(loss: Loss, ys: list[float]) -> Finding:
    """With features theta moves in all directions: the slope must be bounded, or grow no faster than the prediction.

    A bounded slope and slope times margin >= -kappa give a bound for any step (result G2'); growth like that of the
    squared error gives one for small steps. With a steeper slope a constant step can diverge.
    """
    what, largest = "several parameters", max(1.0, *map(abs, ys))
    reach = 10.0 * largest
    # Margins have another unit than labels, so both are checked; across a label the slope may have a kink.
    for u, most in ((10.0, 100.0), (50.0, 100.0), (reach, 1.5)):
        near, far = _growth(loss, ys, u), _growth(loss, ys, 2.0 * u)
        if not far <= most * near + FADED:
            seen = "the slope grows faster than the prediction: a constant step can diverge"
            return Finding(what, False, seen)
    if any(_slope(loss, 2.0 * reach, y) < _slope(loss, -2.0 * reach, y) for y in ys):
        return Finding(what, False, "the slope falls as the prediction rises: no bound holds")
    steepest = _growth(loss, ys, 2.0 * reach)
    lipschitz = max(abs(_slope(loss, side * 4.0 * reach, y)) for y in ys for side in (-1.0, 1.0))
    if steepest * reach > 0.02 * lipschitz:
        seen = f"a slope that grows by {steepest:.3g} per unit: step x ||z||^2 below {2.0 / steepest:.3g}"
        return Finding(what, True, seen)
    fine = (2.0 * largest * (k / 2000.0 - 1.0) for k in range(4001))
    coarse = (reach * (k / 50.0 - 4.0) for k in range(401))
    kappa = _pull(loss, ys, sorted({0.0, *ys, *fine, *coarse}))
    seen = " and ".join(f"{name}={raised(x, '.3g'):g}" for name, x in (("lipschitz", lipschitz), ("kappa", kappa)))
    return Finding(what, True, f"on a grid, with these labels, {seen}")


def _growth(loss: Loss, ys: list[float], u: float) -> float:
    """How much the slope changes per unit from u to 2 u, or from -u to -2 u."""
    return max(abs(_slope(loss, 2.0 * v, y) - _slope(loss, v, y)) / u for y in ys for v in (-u, u))


def _pull(loss: Loss, ys: list[float], grid: list[float]) -> float:
    """An upper limit of -u slope(u, y) if the slope rises with u: each piece of the grid by both of its ends."""
    most = 0.0
    for y in ys:
        slopes = [_slope(loss, u, y) for u in grid]
        for (u, first), (v, last) in itertools.pairwise(zip(grid, slopes, strict=True)):
            most = max(most, -v * first if u >= 0.0 else -u * last)
    return most


def _points_away(loss: Loss, ys: list[float], pairs: list[tuple[float, float]], unit: float) -> str | None:
    """The first slope that points outwards, below or above, and is not negligible next to those in the middle."""
    middle = 0.5 * (pairs[0][0] + pairs[0][1])
    negligible = FADED * unit * max(abs(_slope(loss, middle, y)) for y in ys)
    for y in ys:
        for below, above in pairs:
            for u in (above, below):
                if not _slope(loss, u, y) * (middle - u) <= negligible:  # nan counts as pointing outwards
                    return f"slope({u}, {y})"
    return None


def _slope(loss: Loss, u: float, y: float) -> float:
    try:
        return float(loss.slope(u, y))
    except Exception:  # exp of a large margin, for example
        return math.nan


def _one_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line for line in lines if not line.startswith("Failed in nopython")]
    return (causes or lines or [type(error).__name__])[0][:160]
