"""The loops over rows, each written once: interpreted on lists, compiled on arrays (see ``compile``).

Notation as in the paper: u is the state, m = z'u the margin, s the served value, e the error, g = e z.
A row is sparse: entries starts[i] to starts[i + 1] of ``index`` (which parameters) and ``value`` (z).
Every loop that moves u does so as u - eta ((w e) z): the same expression everywhere, so that batch, stream and
resumed runs agree to the last bit. Loops do not check their arguments: callers do, once, at the door.
"""

from __future__ import annotations

from typing import Any

from gradeq.links import Link
from gradeq.losses import Loss
from gradeq.penalties import Penalty
from gradeq.schedules import Schedule

Floats = Any  # a list of floats when interpreted, a float64 array when compiled
Ints = Any

# Columns of the accounts that are kept for each parameter and for the whole layer.
ROWS, WEIGHT, GRADIENT, MOVED, BEFORE, LOSS_BEFORE, LOSS_AFTER, LOW, HIGH, REACH = range(10)
COLUMNS = 10


def scalar(
    link: Link, loss: Loss, base: Floats, labels: Floats, eta: float, u: float, served: Floats
) -> float:
    """One parameter, z = 1, every label at once, one constant step."""
    for i in range(len(base)):
        s = link.serve(base[i], u)
        served[i] = s
        u = u - eta * loss.slope(s, labels[i])
    return u


def indexed(
    link: Link,
    loss: Loss,
    base: Floats,
    labels: Floats,
    eta: float,
    index: Ints,
    u: Floats,
    served: Floats,
) -> None:
    """One active parameter a row (disjoint groups, keyed series), every label at once, one constant step."""
    for i in range(len(base)):
        j = index[i]
        s = link.serve(base[i], u[j])
        served[i] = s
        u[j] = u[j] - eta * loss.slope(s, labels[i])


def margin(u: Floats, index: Ints, value: Floats, start: int, stop: int) -> float:
    """m = z'u over the entries of one row."""
    m = 0.0
    for a in range(start, stop):
        m = m + u[index[a]] * value[a]
    return m


def move(
    u: Floats, index: Ints, value: Floats, start: int, stop: int, eta: float, e: float
) -> None:
    """u <- u - eta e z over the entries of one row."""
    for a in range(start, stop):
        j = index[a]
        u[j] = u[j] - eta * (e * value[a])


def sparse(
    link: Link,
    loss: Loss,
    base: Floats,
    labels: Floats,
    weights: Floats,
    etas: Floats,
    starts: Ints,
    index: Ints,
    value: Floats,
    u: Floats,
    served: Floats,
) -> None:
    """Sparse rows, labels at once or missing (nan), own step and weight for each row."""
    for i in range(len(base)):
        start, stop = starts[i], starts[i + 1]
        s = link.serve(base[i], margin(u, index, value, start, stop))
        served[i] = s
        y = labels[i]
        if y == y and weights[i] > 0.0:
            move(u, index, value, start, stop, etas[i], weights[i] * loss.slope(s, y))


def late(
    link: Link,
    loss: Loss,
    base: Floats,
    labels: Floats,
    weights: Floats,
    etas: Floats,
    starts: Ints,
    index: Ints,
    value: Floats,
    first: int,
    cuts: Ints,
    posts: Ints,
    u: Floats,
    served: Floats,
) -> None:
    """Labels in any order: before row i is served, posts[: cuts[i]] have been posted, each as it was served.

    Rows before ``first`` were served in an earlier run: their ``served`` and ``etas`` are given.
    """
    p = 0
    for i in range(first, len(base)):
        while p < cuts[i]:
            k = posts[p]
            e = weights[k] * loss.slope(served[k], labels[k])
            move(u, index, value, starts[k], starts[k + 1], etas[k], e)
            p += 1
        served[i] = link.serve(base[i], margin(u, index, value, starts[i], starts[i + 1]))
    while p < len(posts):
        k = posts[p]
        e = weights[k] * loss.slope(served[k], labels[k])
        move(u, index, value, starts[k], starts[k + 1], etas[k], e)
        p += 1


def penalised(
    link: Link,
    loss: Loss,
    penalty: Penalty,
    base: Floats,
    labels: Floats,
    weights: Floats,
    etas: Floats,
    starts: Ints,
    index: Ints,
    value: Floats,
    u: Floats,
    pulls: Floats,
    drags: Floats,
    slopes: Floats,
    served: Floats,
) -> None:
    """As ``sparse``, with a penalty that moves every parameter at each labelled row.

    ``pulls`` gathers the sum of the penalty's slopes, ``drags`` that of eta times them; ``slopes`` is scratch.
    """
    for i in range(len(base)):
        start, stop = starts[i], starts[i + 1]
        s = link.serve(base[i], margin(u, index, value, start, stop))
        served[i] = s
        y = labels[i]
        if y == y and weights[i] > 0.0:
            e = weights[i] * loss.slope(s, y)
            for j in range(len(u)):
                slopes[j] = penalty.slope(u[j])
                pulls[j] = pulls[j] + slopes[j]
                drags[j] = drags[j] + etas[i] * slopes[j]
            for a in range(start, stop):
                slopes[index[a]] = slopes[index[a]] + e * value[a]
            for j in range(len(u)):
                u[j] = u[j] - etas[i] * slopes[j]


def tally(
    link: Link,
    loss: Loss,
    base: Floats,
    labels: Floats,
    weights: Floats,
    etas: Floats,
    served: Floats,
    posts: Ints,
    starts: Ints,
    index: Ints,
    value: Floats,
    sums: Floats,
) -> None:
    """Enter the posted rows, in the order of posting, into the accounts of their parameters."""
    for p in range(len(posts)):
        i = posts[p]
        f, s, y, w, eta = base[i], served[i], labels[i], weights[i], etas[i]
        for a in range(starts[i], starts[i + 1]):
            enter(link, loss, sums, index[a] * COLUMNS, f, s, y, w, value[a], eta)


def tally_indexed(
    link: Link,
    loss: Loss,
    base: Floats,
    labels: Floats,
    eta: float,
    served: Floats,
    index: Ints,
    sums: Floats,
) -> None:
    """As ``tally``, for one active parameter a row, z = 1, weight 1, constant step, every row labelled."""
    for i in range(len(base)):
        enter(link, loss, sums, index[i] * COLUMNS, base[i], served[i], labels[i], 1.0, 1.0, eta)


def enter(
    link: Link,
    loss: Loss,
    sums: Floats,
    at: int,
    f: float,
    s: float,
    y: float,
    w: float,
    z: float,
    eta: float,
) -> None:
    """Enter one posted row into the account that begins at ``at``."""
    g = (w * loss.slope(s, y)) * z
    sums[at] = sums[at] + 1.0
    sums[at + WEIGHT] = sums[at + WEIGHT] + w
    sums[at + GRADIENT] = sums[at + GRADIENT] + g
    sums[at + MOVED] = sums[at + MOVED] + eta * g
    sums[at + BEFORE] = sums[at + BEFORE] + (w * loss.slope(f, y)) * z
    sums[at + LOSS_BEFORE] = sums[at + LOSS_BEFORE] + w * loss.value(f, y)
    sums[at + LOSS_AFTER] = sums[at + LOSS_AFTER] + w * loss.value(s, y)
    r = y - f
    if r < sums[at + LOW]:
        sums[at + LOW] = r
    if r > sums[at + HIGH]:
        sums[at + HIGH] = r
    sums[at + REACH] = sums[at + REACH] + w * link.reach(f)


def topped(units: Ints, norms: Floats, tops: Floats, out: Floats) -> None:
    """The largest squared norm of each unit's rows so far, this one included."""
    for i in range(len(units)):
        k = units[i]
        if norms[i] > tops[k]:
            tops[k] = norms[i]
        out[i] = tops[k]


def ticked(clock: Ints, counts: Ints, ticks: Ints) -> None:
    """t of each row by its own clock: how many rows this clock has served, this one included."""
    for i in range(len(clock)):
        k = clock[i]
        counts[k] = counts[k] + 1
        ticks[i] = counts[k]


def stepped(schedule: Schedule, ticks: Ints, etas: Floats) -> None:
    """The step of each row: the schedule's at its time t."""
    for i in range(len(ticks)):
        etas[i] = schedule.step(ticks[i])


def cap(eta: float, limit: float, crowd: float) -> float:
    """min(eta, limit / Q); Q = 0 means that no more than one ticket was ever open (no cap)."""
    if crowd > 0.0:
        return min(eta, limit / crowd)
    return eta


def crowded(
    first: int,
    cuts: Ints,
    leaves: Ints,
    opens: Ints,
    starts: Ints,
    cells: Ints,
    norms: Floats,
    open_now: Ints,
    peaks: Ints,
    crowd: Floats,
) -> None:
    """Q of each row, from the most tickets ever open at once; 0 while no more than one ever was.

    ``cells`` are the counters of a row (its groups, or the layer); ``norms`` the largest squared norm of a
    feature row so far, 1 without features; ``opens`` says which rows open a ticket at all; before row i is
    served the tickets leaves[: cuts[i]] have been closed, by their label or by expiry.
    """
    p = 0
    for i in range(first, len(crowd)):
        while p < cuts[i]:
            k = leaves[p]
            for a in range(starts[k], starts[k + 1]):
                open_now[cells[a]] = open_now[cells[a]] - 1
            p += 1
        if opens[i]:
            total = 0
            most = 0
            for a in range(starts[i], starts[i + 1]):
                j = cells[a]
                open_now[j] = open_now[j] + 1
                if open_now[j] > peaks[j]:
                    peaks[j] = open_now[j]
                total = total + peaks[j]
                if peaks[j] > most:
                    most = peaks[j]
            if most >= 2:
                crowd[i] = total * norms[i]
    while p < len(leaves):
        k = leaves[p]
        for a in range(starts[k], starts[k + 1]):
            open_now[cells[a]] = open_now[cells[a]] - 1
        p += 1
