"""Quantile tracking at several levels: lazy isotonic projection, straight or through the sinh link.

Everything of a level is flat: entry j * count + k belongs to parameter (or row) j and level k; base forecasts come
sorted. With the sinh link the tracked unit is asinh((. - m) / s): m the middle forecast, s the running scale of
|y - m| over posted labels, so that the step has no unit (results 8.6, B3). ``a`` holds the base forecasts in the
tracked unit, ``wish`` those moved by z'u, ``theta`` their projection, ``errors`` and ``losses`` those of what was
served and then of the base: scratch of one row each. Events call the same functions as the loop over many rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from gradeq.geometries.isotonic import pool_within
from gradeq.kernels.account import COLUMNS, ROUND, Floats, Ints, enter
from gradeq.kernels.descent import drag
from gradeq.links import Sinh
from gradeq.losses import pinball, pinball_slope
from gradeq.penalties import Penalty

FADE = 2.0 ** (-1.0 / 100.0)  # the running scale forgets half of the past in 100 labels
LEAST = 1e-9  # of |m|: a scale below this would be lost in the digits of m
MOST = 1e300  # a scale above this would make 0 times infinity


@dataclass(frozen=True)
class One:
    """A part of the loop for one level: its number, known when the loop is compiled, makes it a third quicker."""

    def count(self, taus: Floats) -> int:
        """One."""
        return 1


@dataclass(frozen=True)
class Several:
    """A part of the loop for any number of levels."""

    def count(self, taus: Floats) -> int:
        """As many as there are."""
        return len(taus)


def scale_at(num: float, den: float, m: float) -> float:
    """s_t = max(num / den, 1e-9 |m|); 0 while no label has differed from its forecast."""
    if num > 0.0:
        return min(MOST, max(num / den, LEAST * abs(m)))
    return 0.0


def fade(nums: Floats, dens: Floats, key: int, m: float, y: float) -> None:
    """Enter |y - m| of a posted label into the running scale."""
    nums[key] = FADE * nums[key] + abs(y - m)
    dens[key] = FADE * dens[key] + 1.0


def place(
    link: Sinh, curved: bool, count: int, base: Floats, at: int, m: float, scale: float, a: Floats
) -> None:
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
    link: Sinh,
    curved: bool,
    count: int,
    u: Floats,
    index: Ints,
    value: Floats,
    start: int,
    stop: int,
    base: Floats,
    at: int,
    m: float,
    scale: float,
    a: Floats,
    wish: Floats,
    theta: Floats,
    served: Floats,
) -> None:
    """Serve one row: forecasts plus z'u, projected so that levels do not cross; forecasts while the scale is 0."""
    if curved and scale == 0.0:
        for k in range(count):
            served[at + k] = base[at + k]
        return
    rising = True
    for k in range(count):
        v = 0.0
        for i in range(start, stop):
            v = v + u[index[i] * count + k] * value[i]
        wish[k] = a[k] + v
        theta[k] = wish[k]
        if k > 0 and wish[k - 1] > wish[k]:
            rising = False
    if not rising:
        pool_within(wish, theta)
    for k in range(count):
        s = link.serve(m, theta[k], scale) if curved else theta[k]
        if k > 0 and s < served[at + k - 1]:  # sinh is monotone but for its last digit
            s = served[at + k - 1]
        served[at + k] = s


def judge(
    count: int,
    taus: Floats,
    base: Floats,
    served: Floats,
    at: int,
    y: float,
    errors: Floats,
    losses: Floats,
) -> None:
    """The miss 1{y <= .} - tau and the pinball loss of what was served at each level, then of the base forecasts."""
    for k in range(count):
        tau, s, f = taus[k], served[at + k], base[at + k]
        errors[k] = pinball_slope(tau, s, y)
        errors[count + k] = pinball_slope(tau, f, y)
        losses[k] = pinball(tau, s, y)
        losses[count + k] = pinball(tau, f, y)


def learn(
    count: int,
    u: Floats,
    index: Ints,
    value: Floats,
    start: int,
    stop: int,
    errors: Floats,
    eta: float,
    w: float,
) -> None:
    """u_k <- u_k - eta (w e_k) z at every level."""
    for k in range(count):
        e = w * errors[k]
        for i in range(start, stop):
            j = index[i] * count + k
            u[j] = u[j] - eta * (e * value[i])


def looseness(curved: bool) -> float:
    """What rounding may hide of a label's place in asinh units: the scale is at least 1e-9 of the forecast."""
    return 1e-6 if curved else 0.0


def target_of(link: Sinh, curved: bool, y: float, m: float, scale: float) -> float:
    """The label in the tracked unit; nan while there is no scale."""
    if not curved:
        return y
    if scale == 0.0:
        return math.nan
    return link.margin(y, m, scale)


def tally(
    count: int,
    a: Floats,
    target: float,
    loose: float,
    errors: Floats,
    losses: Floats,
    w: float,
    eta: float,
    sign: float,
    index: Ints,
    value: Floats,
    start: int,
    stop: int,
    sums: Floats,
    gaps: Floats,
    total: Floats,
) -> None:
    """Enter one posted row into the accounts of its parameters, and into that of all rows where there is one.

    The range of an account is that of the label's distance from the forecast in the tracked unit; its reach counts
    the rows that were served before there was a scale (those ignored u). ``gaps`` are the widest distances of
    neighbouring forecasts, count - 1 for each parameter.
    """
    for i in range(start, stop):
        enter_levels(
            count, a, target, loose, errors, losses, w, value[i], eta, sign, sums, index[i]
        )
        at = index[i] * (count - 1) - 1
        for k in range(1, count):
            if a[k] - a[k - 1] > gaps[at + k]:
                gaps[at + k] = a[k] - a[k - 1]
    if len(total) > 0:
        enter_levels(count, a, target, loose, errors, losses, w, 1.0, eta, sign, total, 0)


def enter_levels(
    count: int,
    a: Floats,
    target: float,
    loose: float,
    errors: Floats,
    losses: Floats,
    w: float,
    z: float,
    eta: float,
    sign: float,
    sums: Floats,
    j: int,
) -> None:
    """Enter one posted row into the accounts of parameter j, level by level."""
    reach = 0.0 if target == target else 1.0
    for k in range(count):
        blur = loose + ROUND * (abs(target) + abs(a[k]))
        enter(
            sums, (j * count + k) * COLUMNS, errors[k], errors[count + k], losses[k], losses[count + k],
            target - a[k], blur, reach, w, z, eta, sign,
        )  # fmt: skip


def tracked(
    link: Sinh,
    penalty: Penalty,
    size: One | Several,
    curved: bool,
    taus: Floats,
    base: Floats,
    labels: Floats,
    weights: Floats,
    etas: Floats,
    starts: Ints,
    index: Ints,
    value: Floats,
    keys: Ints,
    first: int,
    cuts: Ints,
    posts: Ints,
    u: Floats,
    nums: Floats,
    dens: Floats,
    sums: Floats,
    gaps: Floats,
    total: Floats,
    pulls: Floats,
    drags: Floats,
    slopes: Floats,
    a: Floats,
    wish: Floats,
    theta: Floats,
    errors: Floats,
    losses: Floats,
    scales: Floats,
    served: Floats,
) -> None:
    """Labels at once or late, in any order: before row i is served, posts[: cuts[i]] have been posted.

    Rows before ``first`` were served in an earlier run: their ``served`` and ``scales`` are given. A penalty (where
    ``pulls`` is not empty) goes with one level and labels at once: its slopes are those that served the row.
    """
    n, count = len(labels), size.count(taus)
    p, placed = 0, -1
    for i in range(first, n + 1):
        due = cuts[i] if i < n else len(posts)
        while p < due:
            r = posts[p]
            at, start, stop = r * count, starts[r], starts[r + 1]
            m, scale, y, w, eta = base[at + count // 2], scales[r], labels[r], weights[r], etas[r]
            if placed != r:  # a label at once finds its own row in ``a``
                place(link, curved, count, base, at, m, scale, a)
                placed = r
            judge(count, taus, base, served, at, y, errors, losses)
            if len(pulls) > 0:
                for j in range(len(u)):
                    slopes[j] = penalty.slope(u[j])
                drag(u, index, value, start, stop, eta, w * errors[0], slopes, pulls, drags)
            else:
                learn(count, u, index, value, start, stop, errors, eta, w)
            target = target_of(link, curved, y, m, scale)
            tally(
                count, a, target, looseness(curved), errors, losses, w, eta, 1.0, index, value, start, stop,
                sums, gaps, total,
            )  # fmt: skip
            if curved:
                fade(nums, dens, keys[r], m, y)
            p += 1
        if i < n:
            at, m = i * count, base[i * count + count // 2]
            if curved:
                scales[i] = scale_at(nums[keys[i]], dens[keys[i]], m)
            place(link, curved, count, base, at, m, scales[i], a)
            placed = i
            serve(
                link, curved, count, u, index, value, starts[i], starts[i + 1], base, at, m, scales[i], a,
                wish, theta, served,
            )  # fmt: skip
