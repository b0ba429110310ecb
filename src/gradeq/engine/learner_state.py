"""The state of a `Learner`, and what it has observed that bounds depend on."""

from __future__ import annotations

import math
import zlib
from array import array
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gradeq.engine.scalars import Floats
from gradeq.errors import StateError
from gradeq.kernels.account import LEAN, ROWS, WEIGHT
from gradeq.ledger.batch import Batch, Rows, reordered, spelled
from gradeq.ledger.state import MOST, SUM, Column, column
from gradeq.ledger.state import State as Columns
from gradeq.links import Exp, Identity, Link, Logit, Multiplicative, Shift, Sigmoid
from gradeq.losses import Absolute, Expectile, Huber, Linear, Logistic, Loss, Poisson, Quantile, Squared
from gradeq.records import copy_with
from gradeq.rules.descent import PROXIMAL_COLUMNS
from gradeq.rules.rule import LEAN_COLUMNS, PENALTY_COLUMNS, STEP

# The numbers of the column. LOW, HIGH: the range of what the task tracks. REACH: the largest offset (its size, but
# for counts). ODDS: sum of w e^|offset|. STEPS: sum of sigma = step x weight; SQUARES: sum of sigma^2 ||z||^2;
# RESIDUALS: sum of sigma r^2 / (2 - sigma ||z||^2), what a squared error may add to ||theta - theta_1||^2. CHANGES:
# sum of |1/s_i - 1/s_{i-1}|, and the last three the same with each change times STEPS, SQUARES, RESIDUALS before it.
(
    COMPLETE, TASK, STALE, LOW, HIGH, REACH, ODDS, LARGEST_LABEL, ROW_SIZE, LARGEST_ENTRY, OVERLAPPING, HEAVIEST,
    FIRST_STEP, SMALLEST_STEP, LARGEST_STEP, STEPS, SQUARES, RESIDUALS, CHANGES, STEPS_CHANGED, SQUARES_CHANGED,
    RESIDUALS_CHANGED, OWN_GRADIENTS, DIRECTIONS,
) = range(24)  # fmt: skip
OBSERVED = Column("observed", "layer", (0.0,) * 24, (SUM,) * 24, later=True)
SUMS = (STEPS, SQUARES, RESIDUALS)
SUMS_CHANGED = (STEPS_CHANGED, SQUARES_CHANGED, RESIDUALS_CHANGED)
_LARGEST = 1e300  # beyond this a number says nothing any more


class LossTask(NamedTuple):
    """What a loss behind a link is to theory: its name, and the numbers that it depends on.

    ``factor``: the slope is at most this multiple of the task's; ``low`` and ``high`` are the ends of a logistic
    mean, ``width`` that of a Huber loss.
    """

    name: str
    level: float = 0.5
    factor: float = 1.0
    low: float = 0.0
    high: float = 1.0
    width: float = 0.0


OWN = LossTask("own")


def task_of(loss: Loss, link: Link) -> LossTask:
    """The task of a loss and a link; ``OWN`` where nothing is known of them."""
    squared = isinstance(loss, (Squared, Linear))
    if isinstance(link, Identity):
        if squared:
            return LossTask("mean")
        if isinstance(loss, Expectile):
            return LossTask("mean", factor=2.0 * max(loss.tilt, 1.0 - loss.tilt))
        if isinstance(loss, Quantile):
            return LossTask("quantile", loss.level)
        if isinstance(loss, Absolute):
            return LossTask("quantile", 0.5, 2.0)
        if isinstance(loss, Huber):
            return LossTask("huber", width=loss.width)
        if isinstance(loss, Logistic):
            return LossTask("logistic", low=loss.low, high=loss.high)
        return LossTask("count") if isinstance(loss, Poisson) else OWN
    if squared and isinstance(link, Shift):
        return LossTask("logistic", low=-1.0, high=1.0)
    if squared and isinstance(link, Logit):
        return LossTask("logistic")
    if squared and isinstance(link, Sigmoid):
        return LossTask("logistic", low=link.low, high=link.high)
    return LossTask("count") if squared and isinstance(link, (Exp, Multiplicative)) else OWN


class Observer(NamedTuple):
    """The recipe as far as what was seen depends on it; ``identity`` tells it from others by a number."""

    task: LossTask
    link: Link
    identity: float


def observer_of(loss: Loss, link: Link, *more: object) -> Observer:
    """Of a loss, a link, and whatever else must stay the same for a bound to hold."""
    task = task_of(loss, link)
    return Observer(task, link, float(zlib.crc32(repr((task, type(link).__name__, *more)).encode())))


class LearnedLabels(NamedTuple):
    """Labels as they are learned from, in order: their rows, base predictions, labels, weights and steps."""

    rows: Rows
    base: Floats
    y: Floats
    weights: Floats
    steps: Floats


def labels_of(batch: Batch, width: int) -> LearnedLabels:
    """The labels of a run that are learned from."""
    posts, rows = batch.posts, batch.rows
    if len(posts) == len(batch.base):
        return LearnedLabels(rows, batch.base, batch.labels, batch.weights, batch.etas)
    if rows.dense:
        rows = copy_with(rows, values=rows.values.reshape(-1, width)[posts].reshape(-1))
    else:
        rows = reordered(rows, posts)
    picked = (column[posts] for column in (batch.base, batch.labels, batch.weights, batch.etas))
    return LearnedLabels(rows, *picked)


def observe(observer: Observer, columns: Columns, heard: Sequence[float], new: LearnedLabels) -> None:
    """Enter labels, each learned from at the parameters that served it; ``heard``: the column before them."""
    task, link = observer.task, observer.link
    if not len(new.y):
        return
    seen, first = columns.view("observed"), not heard[ROWS]
    _recognise(seen, observer.identity, first)
    if not seen[COMPLETE]:
        return
    with np.errstate(all="ignore"):
        sizes = _row_sizes(new.rows, len(columns.u), len(new.y))
        tracked, offsets = _tracked(columns, task, link, new)
        _widen(seen, first, LOW, HIGH, tracked)
        sigma = new.steps * new.weights
        if task.name == "logistic":
            seen[REACH] = max(seen[REACH], float(abs(offsets).max()))
            seen[ODDS] = _running(seen[ODDS], new.weights * np.exp(abs(offsets)))[-1]
        elif task.name == "count":
            top = float(offsets.max())
            seen[REACH] = top if first else max(seen[REACH], top)
            seen[LARGEST_LABEL] = max(seen[LARGEST_LABEL], float(new.y.max()))
        _note_sizes(seen, sizes, new.weights)
        room = 2.0 - task.factor * sigma * sizes.squared
        grows = task.factor * sigma * tracked * tracked / np.where(room > 0.0, room, np.nan)
        residuals = grows if task.name == "mean" else np.zeros(len(sigma))
        _note_steps(seen, heard[STEP], new.steps, sigma, sizes.squared, residuals)
    if not (np.isfinite(seen) & (abs(seen) < _LARGEST)).all():
        # Nothing can be said any more. Events and runs notice at other rows: what they summed up until then goes.
        known = [TASK, STALE, OWN_GRADIENTS, DIRECTIONS]
        kept = seen[known]
        seen[:] = 0.0
        seen[known] = kept
        if not (room > 0.0).all():  # the reason stays: a step that is too large for its row
            seen[[LARGEST_STEP, HEAVIEST, ROW_SIZE]] = 1.0, 1.0, 2.0 / task.factor


def observe_gradient(
    observer: Observer, columns: Columns, heard: Sequence[float], step: float, directed: bool
) -> None:
    """Enter a step along a gradient of the caller's own; ``directed``: the step went elsewhere."""
    seen = columns.view("observed")
    _recognise(seen, observer.identity, not heard[ROWS])
    seen[OWN_GRADIENTS] += 1.0
    seen[DIRECTIONS] += float(directed)
    if seen[COMPLETE]:
        one = np.ones(1)
        _note_sizes(seen, RowSizes(one, one, True), one)
        _note_steps(seen, heard[STEP], step * one, step * one, one, np.zeros(1))


def _recognise(seen: Floats, identity: float, first: bool) -> None:
    if first:
        seen[COMPLETE], seen[TASK] = 1.0, identity
    elif seen[TASK] != identity:
        seen[COMPLETE] = 0.0


def _tracked(columns: Columns, task: LossTask, link: Link, new: LearnedLabels) -> tuple[Floats, Floats]:
    """What the ranges are about, and the offset of the margin, both seen from where the run began."""
    offsets = new.base
    if isinstance(link, Logit):
        p = np.clip(new.base, link.clip, 1.0 - link.clip)
        offsets = np.log(p / (1.0 - p))
    elif isinstance(link, Multiplicative):
        offsets = np.log(new.base)
    elif isinstance(link, Shift):
        offsets = np.zeros_like(new.base)
    if any(columns.first):
        offsets = offsets + _margins(columns, new)
    if task.name == "logistic":
        return (new.y - new.base if isinstance(link, Shift) else new.y), offsets
    if task.name == "count":
        return new.y * np.exp(-offsets), offsets
    return new.y - offsets, offsets


def _margins(columns: Columns, new: LearnedLabels) -> Floats:
    """z'theta_1 of each row."""
    start = columns.view("first")
    rows = spelled(new.rows, len(start))
    found = np.zeros(len(new.y))
    row = np.repeat(np.arange(len(new.y)), np.diff(rows.starts))
    np.add.at(found, row, rows.values * start[rows.params])
    return found


class RowSizes(NamedTuple):
    """||z||^2 and the largest |z_j| of each row, and whether any row is more than one parameter with z = 1."""

    squared: Floats
    largest: Floats
    overlapping: bool


def _row_sizes(rows: Rows, width: int, count: int) -> RowSizes:
    if rows.single:
        return RowSizes(np.ones(count), np.ones(count), False)
    if rows.dense:
        z = rows.values.reshape(count, width)
        squared = np.zeros(count)
        for column in z.T:  # one after the other, as the entries of a single event
            squared = squared + column * column
        alone = ((z != 0.0).sum(axis=1) <= 1) & ((z == 0.0) | (z == 1.0)).all(axis=1)
        return RowSizes(squared, abs(z).max(axis=1), not bool(alone.all()))
    row = np.repeat(np.arange(count), np.diff(rows.starts))
    places, at = np.unique(row * width + rows.params, return_inverse=True)
    values = np.zeros(len(places))  # entries of one parameter add up
    np.add.at(values, at, rows.values)
    squared, largest, entries = np.zeros(count), np.zeros(count), np.zeros(count)
    owner = places // width
    np.add.at(squared, owner, values * values)
    np.maximum.at(largest, owner, abs(values))
    np.add.at(entries, owner, values != 0.0)
    alone = bool((entries <= 1).all()) and bool(((values == 0.0) | (values == 1.0)).all())
    return RowSizes(squared, largest, not alone)


def _note_sizes(seen: Floats, sizes: RowSizes, weights: Floats) -> None:
    seen[ROW_SIZE] = max(seen[ROW_SIZE], float(sizes.squared.max()))
    seen[LARGEST_ENTRY] = max(seen[LARGEST_ENTRY], float(sizes.largest.max()))
    seen[OVERLAPPING] = max(seen[OVERLAPPING], float(sizes.overlapping))
    seen[HEAVIEST] = max(seen[HEAVIEST], float(weights.max()))


def _note_steps(seen: Floats, last: float, steps: Floats, sigma: Floats, squared: Floats, residuals: Floats) -> None:
    """Sums of the steps and of what they add, and how 1/step changed from label to label (result 1.2)."""
    begun = last > 0.0
    changes = abs(np.diff(1.0 / np.append(last if begun else steps[0], steps)))
    terms = (sigma, sigma * sigma * squared, residuals)
    for at, changed, added in zip(SUMS, SUMS_CHANGED, terms, strict=True):
        sums = _running(seen[at], added)
        seen[changed] = _running(seen[changed], changes * sums[:-1])[-1]
        seen[at] = sums[-1]
    seen[CHANGES] = _running(seen[CHANGES], changes)[-1]
    if not begun:
        seen[FIRST_STEP] = steps[0]
    _widen(seen, not begun, SMALLEST_STEP, LARGEST_STEP, steps)


def _widen(seen: Floats, first: bool, low: int, high: int, values: Floats) -> None:
    least, most = float(values.min()), float(values.max())
    seen[low] = least if first else min(seen[low], least)
    seen[high] = most if first else max(seen[high], most)


def _running(start: float, terms: Floats) -> Floats:
    """The sums so far, added one after the other, so that it does not matter where a run is cut."""
    return np.asarray(np.add.accumulate(np.append(start, terms)))


OWN_COLUMNS = (column("first", "parameter", (0.0,), MOST), column("served", "layer", (0.0,)), OBSERVED)
_KNOWN = (*OWN_COLUMNS, *LEAN_COLUMNS, *PENALTY_COLUMNS, *PROXIMAL_COLUMNS)


class LearnerState:
    """Where a learner stands, with exactly what its certificates need; nothing can change it.

    ``u`` is the dual point and ``first`` the one it began from; ``theta`` the parameters that serve. The sums run
    over the rows learned from: ``gradients`` (w e z, without penalty), ``penalties`` (its slopes), ``normals`` (what
    the geometry brought back, divided by the step), and ``moves`` (u_1 - u as it was applied). ``n`` counts these
    rows, ``weight`` sums their weights, ``t`` counts the rows served, ``step`` is the last step taken (0 before the
    first). Two states are equal when all their numbers are. ``internals`` is not a public interface.
    """

    __slots__ = ("internals",)

    def __init__(self, columns: Columns) -> None:
        self.internals = columns

    def __eq__(self, other: object) -> bool:
        return self.internals == other.internals if isinstance(other, LearnerState) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.n, self.t, self.u.tobytes()))

    def __repr__(self) -> str:
        shown = ", ".join(f"{x:.6g}" for x in self.theta[:4])
        more = ", ..." if len(self.theta) > 4 else ""
        return f"State(n={self.n}, t={self.t}, theta=[{shown}{more}])"

    @property
    def dimension(self) -> int:
        """How many parameters there are."""
        return len(self.internals.u)

    @property
    def u(self) -> Floats:
        """The dual point."""
        return self._vector("u")

    @property
    def first(self) -> Floats:
        """The dual point before any row."""
        return self._vector("first")

    @property
    def theta(self) -> Floats:
        """The parameters that serve."""
        return self._vector("theta" if hasattr(self.internals, "theta") else "u")

    @property
    def gradients(self) -> Floats:
        """The sum of w e z."""
        return self._vector("sums", 0, LEAN)

    @property
    def penalties(self) -> Floats:
        """The sum of the penalty's slopes."""
        return self._vector("pulls")

    @property
    def normals(self) -> Floats:
        """The sum of what the geometry brought back, each divided by its step."""
        return self._vector("normals")

    @property
    def moves(self) -> Floats:
        """u_1 - u, summed up as it was applied."""
        moved = self._vector("sums", 1, LEAN) + self._vector("drags") + self._vector("returned")
        moved.flags.writeable = False
        return moved

    @property
    def n(self) -> int:
        """Rows learned from."""
        return int(self.internals.heard[ROWS])

    @property
    def weight(self) -> float:
        """Their weights, added up."""
        return float(self.internals.heard[WEIGHT])

    @property
    def step(self) -> float:
        """The last step taken."""
        return float(self.internals.heard[STEP])

    @property
    def t(self) -> int:
        """Rows served."""
        return int(self.internals.served[0])

    def _vector(self, name: str, at: int = 0, stride: int = 1) -> Floats:
        """A read-only column; zeros where this learner has none."""
        kept = hasattr(self.internals, name)
        found: Floats = self.internals.view(name)[at::stride] if kept else np.zeros(self.dimension)
        found.flags.writeable = False
        return found

    def after_serving(self) -> LearnerState:
        """The same, one row later."""
        columns = object.__new__(Columns)
        columns.__dict__.update(self.internals.__dict__)  # shares all that is the same
        columns.served = array("d", [columns.served[0] + 1.0])
        return LearnerState(columns)

    def as_dict(self) -> dict[str, list[float]]:
        """All columns as lists of numbers, for JSON."""
        return {name: list(values) for name, values in self.internals.saved().items()}

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> LearnerState:
        """The state that ``as_dict`` wrote; anything else is refused."""
        needed = {each.name for each in (*OWN_COLUMNS, *LEAN_COLUMNS) if not each.later}
        if not needed <= set(saved) <= {each.name for each in _KNOWN}:
            raise StateError("not a learner's state: columns are missing or unknown")
        try:
            values = {name: array("d", numbers) for name, numbers in saved.items()}
        except (TypeError, ValueError):
            raise StateError("not a learner's state: a column is not made of numbers") from None
        if not all(math.isfinite(x) for numbers in values.values() for x in numbers):
            raise StateError("not a learner's state: a number is not finite")
        columns = Columns([each for each in _KNOWN if each.later or each.name in saved])
        columns.restore(values, len(values["u"]), 1)
        state = cls(columns)
        if not (0 <= state.n <= state.t and state.weight >= 0.0 and state.step >= 0.0):
            raise StateError("not a learner's state: impossible counts or weights")
        return state


class LearnerRun(NamedTuple):
    """What a batch served, the state after it, and theta before every k-th row if a trace was asked for."""

    served: Floats
    state: LearnerState
    trace: Floats | None
