"""What a learner has seen, as far as a bound depends on it: ranges, sizes of rows, and the steps as they were taken.

Offsets are measured from the parameters that a run began with: f + z'theta = (f + z'theta_1) + z'(theta - theta_1),
so every bound for a start at zero holds for any start.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gradeq.engine.checks import Floats
from gradeq.kernels.account import ROWS
from gradeq.ledger.batch import Batch, Rows, reordered, spelled
from gradeq.ledger.state import SUM, Column
from gradeq.ledger.state import State as Columns
from gradeq.links import Exp, Identity, Link, Logit, Multiplicative, Shift, Sigmoid
from gradeq.losses import (
    Absolute,
    Expectile,
    Huber,
    Linear,
    Logistic,
    Loss,
    Poisson,
    Quantile,
    Squared,
)
from gradeq.rules.lean import STEP

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


class Task(NamedTuple):
    """What a loss behind a link is to theory: its name, and the numbers that it depends on.

    ``factor``: the slope is at most so many times that of the task; ``low`` and ``high`` are the ends of a logistic
    mean, ``width`` that of a Huber loss.
    """

    name: str
    level: float = 0.5
    factor: float = 1.0
    low: float = 0.0
    high: float = 1.0
    width: float = 0.0


OWN = Task("own")


def task_of(loss: Loss, link: Link) -> Task:
    """The task of a loss and a link; ``OWN`` where nothing is known of them."""
    squared = isinstance(loss, (Squared, Linear))
    if isinstance(link, Identity):
        if squared:
            return Task("mean")
        if isinstance(loss, Expectile):
            return Task("mean", factor=2.0 * max(loss.tilt, 1.0 - loss.tilt))
        if isinstance(loss, Quantile):
            return Task("quantile", loss.level)
        if isinstance(loss, Absolute):
            return Task("quantile", 0.5, 2.0)
        if isinstance(loss, Huber):
            return Task("huber", width=loss.width)
        if isinstance(loss, Logistic):
            return Task("logistic", low=loss.low, high=loss.high)
        return Task("count") if isinstance(loss, Poisson) else OWN
    if squared and isinstance(link, Shift):
        return Task("logistic", low=-1.0, high=1.0)
    if squared and isinstance(link, Logit):
        return Task("logistic")
    if squared and isinstance(link, Sigmoid):
        return Task("logistic", low=link.low, high=link.high)
    return Task("count") if squared and isinstance(link, (Exp, Multiplicative)) else OWN


class Observer(NamedTuple):
    """The recipe as far as what was seen depends on it; ``identity`` tells it from others by a number."""

    task: Task
    link: Link
    identity: float


def observer_of(loss: Loss, link: Link, *more: Any) -> Observer:
    """Of a loss, a link, and whatever else must stay the same for a bound to hold."""
    task = task_of(loss, link)
    return Observer(
        task, link, float(zlib.crc32(repr((task, type(link).__name__, *more)).encode()))
    )


class Labels(NamedTuple):
    """Labels as they are learned from, in order: their rows, base predictions, labels, weights and steps."""

    rows: Rows
    base: Floats
    y: Floats
    weights: Floats
    steps: Floats


def labels_of(batch: Batch, width: int) -> Labels:
    """The labels of a run that are learned from."""
    posts, rows = batch.posts, batch.rows
    if len(posts) == len(batch.base):
        return Labels(rows, batch.base, batch.labels, batch.weights, batch.etas)
    if rows.dense:
        rows = rows._replace(values=rows.values.reshape(-1, width)[posts].reshape(-1))
    else:
        rows = reordered(rows, posts)
    picked = (column[posts] for column in (batch.base, batch.labels, batch.weights, batch.etas))
    return Labels(rows, *picked)


def observe(observer: Observer, columns: Columns, heard: Sequence[float], new: Labels) -> None:
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
        seen[:] = np.where(np.isfinite(seen) & (abs(seen) < _LARGEST), seen, 0.0)
        seen[COMPLETE] = 0.0


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


def _tracked(columns: Columns, task: Task, link: Link, new: Labels) -> tuple[Floats, Floats]:
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


def _margins(columns: Columns, new: Labels) -> Floats:
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


def _note_steps(
    seen: Floats, last: float, steps: Floats, sigma: Floats, squared: Floats, residuals: Floats
) -> None:
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
