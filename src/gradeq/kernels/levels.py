"""One row of quantile tracking at several levels: lazy isotonic projection, straight or through the sinh link.

Everything of a level is flat: entry j * count + k belongs to parameter (or row) j and level k; base forecasts come
sorted. With the sinh link the tracked unit is asinh((. - m) / s): m the middle forecast, s the running scale of
|y - m| over posted labels, so that the step has no unit (results 8.6, B3). ``a`` holds the base forecasts in the
tracked unit, ``wish`` those moved by z'u, ``theta`` their projection: scratch of one row each.
"""

from __future__ import annotations

from gradeq.geometries.isotonic import pool
from gradeq.kernels.loops import (
    BEFORE,
    COLUMNS,
    GRADIENT,
    HIGH,
    LOSS_AFTER,
    LOSS_BEFORE,
    LOW,
    MOVED,
    REACH,
    WEIGHT,
    Floats,
    Ints,
)
from gradeq.links import Sinh
from gradeq.losses import pinball, pinball_slope

FADE = 2.0 ** (-1.0 / 100.0)  # the running scale forgets half of the past in 100 labels
LEAST = 1e-9  # of |m|: a scale below this would be lost in the digits of m
MOST = 1e300  # a scale above this would make 0 times infinity


def scale_at(num: float, den: float, m: float) -> float:
    """s_t = max(num / den, 1e-9 |m|); 0 while no label has differed from its forecast."""
    if num > 0.0:
        return min(MOST, max(num / den, LEAST * abs(m)))
    return 0.0


def fade(nums: Floats, dens: Floats, unit: int, m: float, y: float) -> None:
    """Enter |y - m| of a posted label into the running scale."""
    nums[unit] = FADE * nums[unit] + abs(y - m)
    dens[unit] = FADE * dens[unit] + 1.0


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
    to: int,
) -> None:
    """Serve one row: forecasts plus z'u, projected so that levels do not cross; forecasts while the scale is 0."""
    if curved and scale == 0.0:
        for k in range(count):
            served[to + k] = base[at + k]
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
        pool(wish, theta)
    for k in range(count):
        s = link.serve(m, theta[k], scale) if curved else theta[k]
        if k > 0 and s < served[to + k - 1]:  # sinh is monotone but for its last digit
            s = served[to + k - 1]
        served[to + k] = s


def learn(
    count: int,
    taus: Floats,
    u: Floats,
    index: Ints,
    value: Floats,
    start: int,
    stop: int,
    served: Floats,
    to: int,
    eta: float,
    w: float,
    y: float,
) -> None:
    """u_k <- u_k - eta w (1{y <= served_k} - tau_k) z at every level."""
    for k in range(count):
        e = w * pinball_slope(taus[k], served[to + k], y)
        for i in range(start, stop):
            j = index[i] * count + k
            u[j] = u[j] - eta * (e * value[i])


def enter(
    link: Sinh,
    curved: bool,
    count: int,
    taus: Floats,
    base: Floats,
    at: int,
    m: float,
    scale: float,
    a: Floats,
    served: Floats,
    to: int,
    eta: float,
    w: float,
    y: float,
    z: float,
    sums: Floats,
    gaps: Floats,
    j: int,
) -> None:
    """Enter one posted row into the accounts of parameter j, level by level, and its widest base gaps.

    LOW and HIGH are the range of the label's distance from the forecast in the tracked unit; REACH counts rows
    that were served before there was a scale (those ignored u).
    """
    ranged = not curved or scale > 0.0
    target = y
    if curved and ranged:
        target = link.margin(y, m, scale)
    for k in range(count):
        c = (j * count + k) * COLUMNS
        f, s = base[at + k], served[to + k]
        g = (w * pinball_slope(taus[k], s, y)) * z
        sums[c] = sums[c] + 1.0
        sums[c + WEIGHT] = sums[c + WEIGHT] + w
        sums[c + GRADIENT] = sums[c + GRADIENT] + g
        sums[c + MOVED] = sums[c + MOVED] + eta * g
        sums[c + BEFORE] = sums[c + BEFORE] + (w * pinball_slope(taus[k], f, y)) * z
        sums[c + LOSS_BEFORE] = sums[c + LOSS_BEFORE] + w * pinball(taus[k], f, y)
        sums[c + LOSS_AFTER] = sums[c + LOSS_AFTER] + w * pinball(taus[k], s, y)
        if ranged:
            r = target - a[k]
            if r < sums[c + LOW]:
                sums[c + LOW] = r
            if r > sums[c + HIGH]:
                sums[c + HIGH] = r
            if k > 0 and a[k] - a[k - 1] > gaps[j * count + k - 1]:
                gaps[j * count + k - 1] = a[k] - a[k - 1]
        else:
            sums[c + REACH] = sums[c + REACH] + 1.0


def tally(
    link: Sinh,
    curved: bool,
    count: int,
    taus: Floats,
    base: Floats,
    at: int,
    m: float,
    scale: float,
    a: Floats,
    served: Floats,
    to: int,
    eta: float,
    w: float,
    y: float,
    index: Ints,
    value: Floats,
    start: int,
    stop: int,
    sums: Floats,
    gaps: Floats,
    total: Floats,
    widest: Floats,
) -> None:
    """Enter one posted row into the accounts of its parameters, and of the whole layer where there is one."""
    for i in range(start, stop):
        enter(
            link, curved, count, taus, base, at, m, scale, a, served, to, eta, w, y,
            value[i], sums, gaps, index[i],
        )  # fmt: skip
    if len(total) > 0:
        enter(
            link, curved, count, taus, base, at, m, scale, a, served, to, eta, w, y,
            1.0, total, widest, 0,
        )  # fmt: skip


def drag(
    count: int,
    taus: Floats,
    u: Floats,
    index: Ints,
    value: Floats,
    start: int,
    stop: int,
    served: Floats,
    to: int,
    eta: float,
    w: float,
    y: float,
    slopes: Floats,
    pulls: Floats,
    drags: Floats,
) -> None:
    """As ``learn``, with the penalty's slopes at serving added; ``slopes`` is used up."""
    for j in range(len(slopes)):
        pulls[j] = pulls[j] + slopes[j]
        drags[j] = drags[j] + eta * slopes[j]
    for k in range(count):
        e = w * pinball_slope(taus[k], served[to + k], y)
        for i in range(start, stop):
            j = index[i] * count + k
            slopes[j] = slopes[j] + e * value[i]
    for j in range(len(slopes)):
        u[j] = u[j] - eta * slopes[j]


def judged(count: int, taus: Floats, served: Floats, labels: Floats, losses: Floats) -> None:
    """The pinball loss of each row, added over the levels; rows without a label get 0."""
    for i in range(len(labels)):
        losses[i] = 0.0
        if labels[i] == labels[i]:
            for k in range(count):
                losses[i] = losses[i] + pinball(taus[k], served[i * count + k], labels[i])
