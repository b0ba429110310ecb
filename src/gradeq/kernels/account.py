"""The accounts of a parameter: sums behind every certificate, entered label by label."""

from __future__ import annotations

import math
from collections import namedtuple
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gradeq.losses import pinball
from gradeq.numerics import within


def is_finite(block: NDArray[np.float64]) -> bool:
    """Whether all are finite; numpy is as quick as a compiled loop, and is there from the first row on.

    >>> is_finite(np.array([1.0, np.inf]))
    False
    """
    return bool(np.isfinite(block).all())


Floats = Any  # a list or array of floats when interpreted, a float64 array when compiled
Ints = Any

# LOW and HIGH: the range of the residual in the tracked unit; REACH: the odds that result C1 sums (or, for quantiles,
# the rows that were served before there was a scale).
ROWS, WEIGHT, GRADIENT, MOVED, BEFORE, LOSS_BEFORE, LOSS_AFTER, LOW, HIGH, REACH = range(10)
COLUMNS = 10
ROUND = 2.0**-51  # twice the rounding of a sum, relative to its terms
LEAN = 2  # a lean account is GRADIENT and MOVED alone: with the weight of all rows, what a certificate needs
EMPTY = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, math.inf, -math.inf, 0.0)
# The weights of labels that were all taken back add up to nothing but rounding, which may be below zero.
SMALLEST = (0.0, -1e-6, *(-math.inf,) * 8)
MERGED = ("sum", "sum", "sum", "sum", "sum", "sum", "sum", "least", "most", "sum")

# How the steps of a parameter varied: 1 / last step, sum of |1 / eta_i - 1 / eta_{i-1}|, 1 / first step.
LAST, VARIATION, FIRST = range(3)
PATH = 3
# Sums of its steps times weights, m = eta w: of m, of m^2, and of both as they were before each change of 1 / eta,
# times that change (result 1.9).
MASS, SQUARES, MASS_CHANGES, SQUARES_CHANGES = range(4)
STEPS = 4


def enter(
    sums: Floats,
    at: int,
    error: float,
    raw: float,
    after: float,
    before: float,
    residual: float,
    blur: float,
    reach: float,
    w: float,
    z: float,
    eta: float,
    sign: float,
) -> None:
    """Enter one label into the account that begins at ``at``.

    A residual of nan has no range; ``blur`` is what rounding may hide of it: f + u need not move with u.
    """
    weight, g, moved, g_before, before, after = amounts(error, raw, after, before, w, z, eta, sign)
    sums[at] += sign
    sums[at + WEIGHT] += weight
    sums[at + GRADIENT] += g
    sums[at + MOVED] += moved
    sums[at + BEFORE] += g_before
    sums[at + LOSS_BEFORE] += before
    sums[at + LOSS_AFTER] += after
    low, high = residual - blur + 0.0, residual + blur + 0.0  # no -0.0, which equals 0.0
    lowest, highest = sums[at + LOW], sums[at + HIGH]
    # Chosen without a branch: of many series each label may be a new extreme, or not.
    sums[at + LOW] = low if low < lowest else lowest
    sums[at + HIGH] = high if high > highest else highest
    sums[at + REACH] += sign * reach


def amounts(
    error: Floats, raw: Floats, after: Floats, before: Floats, w: Floats, z: Floats, eta: Floats, sign: Floats
) -> tuple[Floats, ...]:  # fmt: skip
    """What a label adds to the sums from WEIGHT to LOSS_AFTER; of many labels, columns."""
    g = sign * ((w * error) * z)
    return sign * w, g, eta * g, sign * ((w * raw) * z), sign * (w * before), sign * (w * after)


def enter_many(sums: Any, at: Any, z: Any, terms: tuple[Any, ...], label: tuple[Any, ...]) -> None:
    """The same for columns of labels, in order, so the sums are the same to the last bit.

    at[i] says which account label i belongs to; ``terms`` are w, eta and sign, ``label`` all from error to reach.
    """
    (w, eta, sign), (error, raw, after, before, residual, blur, reach) = terms, label
    table = sums.reshape(-1, COLUMNS)
    with np.errstate(over="ignore", invalid="ignore"):  # of losses, which may be squares of anything
        added = (sign, *amounts(error, raw, after, before, w, z, eta, sign))
        for c, amount in enumerate(added):
            np.add.at(table[:, c], at, amount)
        np.add.at(table[:, REACH], at, sign * reach)
        low, high = residual - blur + 0.0, residual + blur + 0.0
        if low.min() != low.min():  # nan has no range; minimum is many times as quick as fmin
            low, high = np.fmin(low, np.inf), np.fmax(high, -np.inf)
        np.minimum.at(table[:, LOW], at, low)
        np.maximum.at(table[:, HIGH], at, high)


def enter_lean(sums: Floats, at: int, e: float, z: float, eta: float, sign: float) -> None:
    """The sums of g = e z and of eta g, where e is the error times the weight."""
    g = sign * (e * z)
    sums[at] = sums[at] + g
    sums[at + 1] = sums[at + 1] + eta * g


def follow(path: Floats, steps: Floats, j: int, eta: float, w: float, count: float) -> None:
    """Follow the steps of parameter j in the order of posting (result 1.2): ``count`` labels of this step."""
    inverse = 1.0 / eta
    last = path[j * PATH]
    at = j * STEPS
    if last > 0.0:
        change = abs(inverse - last)
        path[j * PATH + VARIATION] = path[j * PATH + VARIATION] + change
        if change > 0.0:  # sums that are not known are infinite
            steps[at + MASS_CHANGES] = steps[at + MASS_CHANGES] + steps[at] * change
            steps[at + SQUARES_CHANGES] = steps[at + SQUARES_CHANGES] + steps[at + SQUARES] * change
    else:
        path[j * PATH + FIRST] = inverse
    path[j * PATH] = inverse
    mass = eta * w
    steps[at] = steps[at] + count * mass
    steps[at + SQUARES] = steps[at + SQUARES] + count * (mass * mass)


class StepTotals(NamedTuple):
    """How steps varied and what they add up to, by parameter and in all."""

    path: Floats
    total_path: Floats
    steps: Floats
    total_steps: Floats


def followed(kept: StepTotals, etas: Floats, weights: Floats, posts: Ints, starts: Ints, index: Ints) -> None:
    """Follow the steps of posted rows at every parameter that they touch, and of all of them."""
    for p in range(len(posts)):
        i = posts[p]
        eta, w = etas[i], weights[i]
        for a in range(starts[i], starts[i + 1]):
            follow(kept.path, kept.steps, index[a], eta, w, 1.0)
        follow(kept.total_path, kept.total_steps, 0, eta, w, 1.0)


CHANGES = 2


@dataclass(frozen=True)
class ShownLimits:
    """``interval``: the first level is the lower end of an interval.

    That end is inclusive where it lies at a limit; else a label there would count as outside.
    """

    taus: tuple[float, ...]
    low: float
    high: float
    interval: bool

    def covers(self, k: int, shown: float, y: float) -> float:
        """1 if a label counts as at or below what is shown at level k, else 0."""
        if self.interval and k == 0 and (shown == self.low or shown == self.high):
            return 1.0 if y < shown else 0.0
        return 1.0 if y <= shown else 0.0

    def enter(self, k: int, s: float, y: float, w: float, sign: float, changes: Floats, at: int) -> None:
        """Enter what the limits change at level k for one label; the value before them is s."""
        shown, tau = within(s, self.low, self.high), self.taus[k]
        more = self.covers(k, shown, y) - (1.0 if y <= s else 0.0)
        changes[at] = changes[at] + sign * (w * more)
        lost = pinball(tau, shown, y) - pinball(tau, s, y)
        changes[at + 1] = changes[at + 1] + sign * (w * lost)


class Posted(namedtuple("Posted", "count served labels weights starts index posts limited total_limited")):
    """The labels of a run in the order of posting, and where they are entered; ``served`` is flat, row after row."""


def enter_limited(limits: ShownLimits, rows: Posted) -> None:
    """Enter the labels of a run in the order of posting."""
    width = CHANGES * rows.count
    for p in range(len(rows.posts)):
        i = rows.posts[p]
        y, w = rows.labels[i], rows.weights[i]
        for k in range(rows.count):
            s = rows.served[i * rows.count + k]
            for a in range(rows.starts[i], rows.starts[i + 1]):
                limits.enter(k, s, y, w, 1.0, rows.limited, rows.index[a] * width + CHANGES * k)
            if len(rows.total_limited) > 0:
                limits.enter(k, s, y, w, 1.0, rows.total_limited, CHANGES * k)
