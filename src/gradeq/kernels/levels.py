"""Quantile tracking at several levels: lazy isotonic projection, straight or through the sinh link.

Everything of a level is flat: entry j * count + k belongs to parameter (or row) j and level k; base forecasts come
sorted. With the sinh link the tracked unit is asinh((. - m) / s): m the middle forecast, s the running scale of
|y - m| over posted labels, so that the step has no unit (results 8.6, B3). ``a`` holds the base forecasts in the
tracked unit, ``wish`` those moved by z'u, ``theta`` their projection, ``errors`` and ``losses`` those of what was
served and then of the base: scratch of one row each. Events call the same functions as the loop over many rows.
"""

from __future__ import annotations

import math
from collections import namedtuple
from dataclasses import dataclass
from typing import Any

from gradeq.geometries import pool_within
from gradeq.kernels.account import COLUMNS, ROUND, Floats, Ints, enter
from gradeq.kernels.choice import PassRows
from gradeq.kernels.descent import drag
from gradeq.links import Sinh
from gradeq.losses import pinball, pinball_slope
from gradeq.penalties import Penalty

FADE = 2.0 ** (-1.0 / 100.0)  # the running scale forgets half of the past in 100 labels
LEAST = 1e-9  # of |m|: a scale below this would be lost in the digits of m
AGREED = 49.5  # what den is after 60 labels
MOST = 1e300  # a scale above this would make 0 times infinity
LOOSE = 1e-6  # of a place in asinh units: the scale is at least 1e-9 of the forecast
SINH = Sinh()
ONE = 1


@dataclass(frozen=True)
class One:
    """A part of the loop for one level: its number, known when the loop is compiled, makes it a third quicker."""

    def count(self, room: object) -> int:
        return ONE


@dataclass(frozen=True)
class SeveralLevels:
    """A part of the loop for any number of levels."""

    def count(self, room: Any) -> int:
        return room.count


def scale_at(num: float, den: float, m: float) -> float:
    """s_t = max(num / den, 1e-9 |m|); 0 while none of the first 60 labels has differed from its forecast.

    While it is 0 what is served does not follow u. If forecasts go on to be right to the last digit, the least scale
    makes it follow again: else u would run away, and serve nonsense once they are no longer right.
    """
    least = LEAST * abs(m)
    if num > 0.0:
        scale = num / den
        if least > scale:
            scale = least
        return scale if scale < MOST else MOST
    if den > AGREED:
        return least if least > 0.0 else LEAST
    return 0.0


def fade(nums: Floats, dens: Floats, key: int, keep: float, m: float, y: float) -> None:
    """Enter |y - m| of a posted label into the running scale, which keeps this much of its past."""
    # A sum that is too large for a state could not be read again.
    nums[key] = min(1e305, keep * nums[key] + abs(y - m))
    dens[key] = keep * dens[key] + 1.0


def place(link: Sinh, curved: bool, count: int, base: Floats, at: int, m: float, scale: float, a: Floats) -> None:
    """The base forecasts of one row in the tracked unit."""
    for k in range(count):
        f = base[at + k]
        if not curved:
            a[k] = f
        elif f == m or scale == 0.0:
            a[k] = 0.0
        else:
            a[k] = link.margin(f, m, scale)


def serve(
    link: Sinh, curved: bool, count: int, u: Floats, index: Ints, value: Floats, start: int, stop: int, base: Floats,
    at: int, m: float, scale: float, a: Floats, wish: Floats, theta: Floats, served: Floats,
) -> None:  # fmt: skip
    """Serve one row: forecasts plus z'u, projected so that levels do not cross; forecasts while the scale is 0."""
    if curved and scale == 0.0:
        for k in range(count):
            served[at + k] = base[at + k]
        return
    rising, last = True, -math.inf
    for k in range(count):
        x = 0.0
        for i in range(start, stop):
            x = x + u[index[i] * count + k] * value[i]
        x = a[k] + x
        wish[k] = theta[k] = x
        if x < last:
            rising = False
        last = x
    if not rising:
        pool_within(wish, theta)
    last, x = math.nan, -math.inf
    for k in range(count):
        if not curved:
            x = theta[k]
        elif theta[k] != last:  # else levels that are pooled
            last, below = theta[k], x
            x = link.serve(m, last, scale)
            if x < below:  # sinh is monotone but for its last digit
                x = below
        served[at + k] = x


def judge(
    count: int, taus: Floats, base: Floats, served: Floats, at: int, y: float, errors: Floats, losses: Floats
) -> None:  # fmt: skip
    """The miss 1{y <= .} - tau and the pinball loss of what was served at each level, then of the base forecasts."""
    for k in range(count):
        tau, s, f = taus[k], served[at + k], base[at + k]
        errors[k] = pinball_slope(tau, s, y)
        errors[count + k] = pinball_slope(tau, f, y)
        losses[k] = pinball(tau, s, y)
        losses[count + k] = pinball(tau, f, y)


def learn(
    count: int, u: Floats, index: Ints, value: Floats, start: int, stop: int, errors: Floats, eta: float, w: float
) -> None:  # fmt: skip
    for i in range(start, stop):
        for k in range(count):
            j = index[i] * count + k
            u[j] = u[j] - eta * ((w * errors[k]) * value[i])


def target_of(link: Sinh, y: float, m: float, scale: float) -> float:
    """The label in the tracked unit of the sinh link; nan until the scale is known."""
    if scale == 0.0:
        return math.nan
    return link.margin(y, m, scale)


def tally(
    count: int, a: Floats, target: float, loose: float, errors: Floats, losses: Floats, w: float, eta: float,
    sign: float, index: Ints, value: Floats, start: int, stop: int, sums: Floats, gaps: Floats, total: Floats,
) -> None:  # fmt: skip
    """Enter one posted row into the accounts of its parameters, and into that of all rows where there is one.

    The range of an account is that of the label's distance from the forecast in the tracked unit; its reach counts
    the rows that were served before there was a scale (those ignored u). ``gaps`` are the widest distances of
    neighbouring forecasts, count - 1 for each parameter.
    """
    for i in range(start, stop):
        enter_levels(count, a, target, loose, errors, losses, w, value[i], eta, sign, sums, index[i])
        at = index[i] * (count - 1) - 1
        for k in range(1, count):
            if a[k] - a[k - 1] > gaps[at + k]:
                gaps[at + k] = a[k] - a[k - 1]
    if len(total) > 0:
        enter_levels(count, a, target, loose, errors, losses, w, 1.0, eta, sign, total, 0)


def enter_levels(
    count: int, a: Floats, target: float, loose: float, errors: Floats, losses: Floats, w: float, z: float,
    eta: float, sign: float, sums: Floats, j: int,
) -> None:  # fmt: skip
    """Enter one posted row into the accounts of parameter j, level by level."""
    reach = 0.0 if target == target else 1.0
    for k in range(count):
        blur = loose + ROUND * (abs(target) + abs(a[k]))
        enter(
            sums, (j * count + k) * COLUMNS, errors[k], errors[count + k], losses[k], losses[count + k],
            target - a[k], blur, reach, w, z, eta, sign,
        )  # fmt: skip


class Tracking(namedtuple("Tracking", "u nums dens sums gaps total pulls drags")):
    """What levels learn; a column that a rule does not keep is empty."""


class LevelsScratch(namedtuple("Room", "count scales served a wish theta errors losses slopes")):
    """What was served with which scale, row by row (given for rows before the first), and scratch of one row."""


@dataclass(frozen=True)
class LevelsModel:
    """The model of ``driven``: levels around the base forecasts."""

    taus: tuple[float, ...]
    curved: bool

    def post(
        self,
        size: One | SeveralLevels,
        penalty: Penalty,
        rows: PassRows,
        state: object,
        room: object,
        i: int,
        r: int,
        fresh: bool,
    ) -> None:  # fmt: skip
        """One label moves every level and enters the accounts."""
        count = size.count(room)
        post_row(self.curved, count, self.taus, penalty, rows, state, room, rows.base, r, fresh)

    def serve(
        self,
        size: One | SeveralLevels,
        penalty: Penalty,
        rows: PassRows,
        state: Tracking,
        room: LevelsScratch,
        i: int,
    ) -> None:
        """The levels of one row."""
        count = size.count(room)
        serve_row(self.curved, count, rows, state, room, rows.base, i)


def serve_row(curved: bool, count: int, rows: PassRows, state: Any, room: Any, centre: Floats, i: int) -> None:
    """Serve row i around ``centre``: the base forecasts themselves, or a mix that was made of them."""
    at = i * count
    m = centre[at + count // 2]
    if curved:
        room.scales[i] = scale_at(state.nums[rows.keys[i]], state.dens[rows.keys[i]], m)
    place(SINH, curved, count, centre, at, m, room.scales[i], room.a)
    serve(
        SINH, curved, count, state.u, rows.index, rows.value, rows.starts[i], rows.starts[i + 1], centre, at, m,
        room.scales[i], room.a, room.wish, room.theta, room.served,
    )  # fmt: skip


def post_row(
    curved: bool, count: int, taus: Floats, penalty: Penalty, rows: PassRows, state: Any, room: Any, centre: Floats,
    r: int, fresh: bool,
) -> None:  # fmt: skip
    """Post the label of row r; a fresh one finds its row in ``a``.

    A penalty (where ``pulls`` is not empty) goes with one level and labels at once: its slopes are those that served.
    """
    at, start, stop = r * count, rows.starts[r], rows.starts[r + 1]
    y, w, eta = rows.labels[r], rows.weights[r], rows.etas[r]
    m, scale = centre[at + count // 2], room.scales[r]
    judge(count, taus, rows.base, room.served, at, y, room.errors, room.losses)
    if len(state.pulls) > 0:
        for j in range(len(state.u)):
            room.slopes[j] = penalty.slope(state.u[j])
        drag(
            state.u, rows.index, rows.value, start, stop, eta, w * room.errors[0], room.slopes, state.pulls,
            state.drags,
        )  # fmt: skip
    else:
        learn(count, state.u, rows.index, rows.value, start, stop, room.errors, eta, w)
    if not fresh:
        place(SINH, curved, count, centre, at, m, scale, room.a)
    target, loose = y, 0.0
    if curved:
        target, loose = target_of(SINH, y, m, scale), LOOSE
    tally(
        count, room.a, target, loose, room.errors, room.losses, w, eta, 1.0, rows.index, rows.value, start, stop,
        state.sums, state.gaps, state.total,
    )  # fmt: skip
    if curved:
        fade(state.nums, state.dens, rows.keys[r], FADE, m, y)
