"""The loops of plain descent over rows, each written once: interpreted on lists, compiled on arrays (``compile``).

Notation as in the paper: u is the state, m = z'u the margin, s the served value, e the error, g = e z.
A row is sparse: entries starts[i] to starts[i + 1] of ``index`` (which parameters) and ``value`` (z).
Every loop that moves u does so as u - eta ((w e) z): the same expression everywhere, so that batch, stream and
resumed runs agree to the last bit. The accounts are a second pass (``tally``), which does not wait for the first.
Loops do not check their arguments: callers do, once.
"""

from __future__ import annotations

from gradeq.kernels.account import COLUMNS, LEAN, ROUND, Floats, Ints, enter, enter_lean
from gradeq.links import Link
from gradeq.losses import Loss
from gradeq.penalties import Penalty
from gradeq.schedules import Schedule


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


def dense(
    link: Link,
    loss: Loss,
    base: Floats,
    labels: Floats,
    eta: float,
    rows: Floats,
    u: Floats,
    sums: Floats,
    served: Floats,
) -> None:
    """Dense rows, every label at once, one constant step, with lean accounts: here they hide behind the margin."""
    for i in range(len(base)):
        m = 0.0
        for j in range(len(u)):
            m = m + u[j] * rows[i][j]
        s = link.serve(base[i], m)
        served[i] = s
        e = loss.slope(s, labels[i])
        for j in range(len(u)):
            u[j] = u[j] - eta * (e * rows[i][j])
        for j in range(len(u)):
            enter_lean(sums, j * LEAN, e, rows[i][j], eta, 1.0)


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

    Rows before ``first`` were served in an earlier run: their ``served`` is given.
    """
    p = 0
    for i in range(first, len(base) + 1):
        due = cuts[i] if i < len(base) else len(posts)
        while p < due:
            k = posts[p]
            e = weights[k] * loss.slope(served[k], labels[k])
            move(u, index, value, starts[k], starts[k + 1], etas[k], e)
            p += 1
        if i < len(base):
            served[i] = link.serve(base[i], margin(u, index, value, starts[i], starts[i + 1]))


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
    """As ``sparse``, with a penalty that moves every parameter at each labelled row; ``slopes`` is scratch."""
    for i in range(len(base)):
        start, stop = starts[i], starts[i + 1]
        s = link.serve(base[i], margin(u, index, value, start, stop))
        served[i] = s
        y = labels[i]
        if y == y and weights[i] > 0.0:
            for j in range(len(u)):
                slopes[j] = penalty.slope(u[j])
            e = weights[i] * loss.slope(s, y)
            drag(u, index, value, start, stop, etas[i], e, slopes, pulls, drags)


def drag(
    u: Floats,
    index: Ints,
    value: Floats,
    start: int,
    stop: int,
    eta: float,
    e: float,
    slopes: Floats,
    pulls: Floats,
    drags: Floats,
) -> None:
    """As ``move``, with the penalty's slopes at serving added; ``slopes`` is used up."""
    gather(index, value, start, stop, eta, e, slopes, pulls, drags)
    for j in range(len(u)):
        u[j] = u[j] - eta * slopes[j]


def gather(
    index: Ints,
    value: Floats,
    start: int,
    stop: int,
    eta: float,
    e: float,
    slopes: Floats,
    pulls: Floats,
    drags: Floats,
) -> None:
    """Add e z to the penalty's slopes; ``pulls`` sums up the slopes alone, ``drags`` eta times them."""
    for j in range(len(slopes)):
        pulls[j] = pulls[j] + slopes[j]
        drags[j] = drags[j] + eta * slopes[j]
    for a in range(start, stop):
        slopes[index[a]] = slopes[index[a]] + e * value[a]


def tally(
    link: Link,
    loss: Loss,
    base: Floats,
    centre: Floats,
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
    """Enter the posted rows, in the order of posting, into the accounts of their parameters.

    ``centre`` is what z'u moves: the base prediction itself, or a mix that was made of it.
    """
    for p in range(len(posts)):
        i = posts[p]
        f, m, s, y, w, eta = base[i], centre[i], served[i], labels[i], weights[i], etas[i]
        error, raw = loss.slope(s, y), loss.slope(f, y)
        after, before, reach = loss.value(s, y), loss.value(f, y), w * link.reach(m)
        r, blur = link.tracked(m, y), ROUND * (abs(m) + abs(y))
        for a in range(starts[i], starts[i + 1]):
            at = index[a] * COLUMNS
            enter(sums, at, error, raw, after, before, r, blur, reach, w, value[a], eta, 1.0)


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
        f, s, y = base[i], served[i], labels[i]
        error, raw, after, before = (
            loss.slope(s, y),
            loss.slope(f, y),
            loss.value(s, y),
            loss.value(f, y),
        )
        at = index[i] * COLUMNS
        r, blur, reach = link.tracked(f, y), ROUND * (abs(f) + abs(y)), link.reach(f)
        enter(sums, at, error, raw, after, before, r, blur, reach, 1.0, 1.0, eta, 1.0)


def tally_lean(
    loss: Loss,
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
    """As ``tally``, for the lean accounts of a ``Learner``."""
    for p in range(len(posts)):
        i = posts[p]
        e = weights[i] * loss.slope(served[i], labels[i])
        for a in range(starts[i], starts[i + 1]):
            enter_lean(sums, index[a] * LEAN, e, value[a], etas[i], 1.0)


def ticked(clock: Ints, counts: Floats, ticks: Ints) -> None:
    """t of each row by its own clock: how many rows this clock has served, this one included."""
    for i in range(len(clock)):
        k = clock[i]
        counts[k] = counts[k] + 1.0
        ticks[i] = int(counts[k])


def stepped(schedule: Schedule, ticks: Ints, etas: Floats) -> None:
    """The step of each row: the schedule's at its time t."""
    for i in range(len(ticks)):
        etas[i] = schedule.step(ticks[i])


def swept(
    link: Link,
    loss: Loss,
    etas: Floats,
    base: Floats,
    labels: Floats,
    weights: Floats,
    starts: Ints,
    params: Ints,
    value: Floats,
    u: Floats,
    errors: Floats,
    losses: Floats,
) -> None:
    """As ``sparse`` with a constant step, for every step at once; u[k] are the parameters under step k."""
    for i in range(len(base)):
        y = labels[i]
        if y == y and weights[i] > 0.0:
            start, stop = starts[i], starts[i + 1]
            for k in range(len(etas)):
                s = link.serve(base[i], margin(u[k], params, value, start, stop))
                e = weights[i] * loss.slope(s, y)
                move(u[k], params, value, start, stop, etas[k], e)
                errors[k] = errors[k] + e
                losses[k] = losses[k] + weights[i] * loss.value(s, y)
