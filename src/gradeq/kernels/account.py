"""The account of a parameter: the sums that its certificate and its bound are read from, entered in one place.

Every loop and every event enters a label with ``enter``. With sign -1 the label is taken back (its range is not).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Floats = Any  # a list or array of floats when interpreted, a float64 array when compiled
Ints = Any

# LOW and HIGH: the range of the residual in the tracked unit; REACH: the odds that result C1 sums (or, for quantiles,
# the rows that were served before there was a scale).
ROWS, WEIGHT, GRADIENT, MOVED, BEFORE, LOSS_BEFORE, LOSS_AFTER, LOW, HIGH, REACH = range(10)
COLUMNS = 10
ROUND = 2.0**-51  # twice the rounding of a sum, relative to its terms
LEAN = 2  # a lean account is GRADIENT and MOVED alone: with the weight of all rows, what a certificate needs
EMPTY = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, math.inf, -math.inf, 0.0)
SMALLEST = (0.0, 0.0, *(-math.inf,) * 8)
MERGED = ("sum", "sum", "sum", "sum", "sum", "sum", "sum", "least", "most", "sum")

# How the steps of a parameter varied: 1 / last step, sum of |1 / eta_i - 1 / eta_{i-1}|, 1 / first step.
LAST, VARIATION, FIRST = range(3)
PATH = 3


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
    with np.errstate(
        over="ignore", invalid="ignore"
    ):  # of losses, which may be squares of anything
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


def follow(path: Floats, at: int, eta: float) -> None:
    """Follow the steps of a parameter in the order of posting (result 1.2)."""
    inverse = 1.0 / eta
    if path[at] > 0.0:
        path[at + VARIATION] = path[at + VARIATION] + abs(inverse - path[at])
    else:
        path[at + FIRST] = inverse
    path[at] = inverse


def followed(
    etas: Floats, posts: Ints, starts: Ints, index: Ints, path: Floats, total: Floats
) -> None:
    """Follow the steps of posted rows at every parameter that they touch, and of all of them."""
    for p in range(len(posts)):
        i = posts[p]
        eta = etas[i]
        for a in range(starts[i], starts[i + 1]):
            follow(path, index[a] * PATH, eta)
        follow(total, 0, eta)
