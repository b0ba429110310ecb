"""The loops of plain descent, each with the sum of its gradients: what a certificate needs beside the state.

As in ``loops``: u is the state, s the served value, e the error, g = e z, and u moves as u - eta ((w e) z).
``sums`` gathers g per parameter. The add does not wait for the next margin, so it is nearly free; and so is
counting, in the loops for one constant step, the rows with a number that is not finite. They answer that count: if
it is not 0 the caller throws the result away and looks more closely.
"""

from __future__ import annotations

from gradeq.kernels.finite import LARGEST
from gradeq.kernels.loops import Floats, Ints, margin
from gradeq.links import Link
from gradeq.losses import Loss
from gradeq.schedules import Schedule


def scalar(
    link: Link,
    loss: Loss,
    base: Floats,
    labels: Floats,
    eta: float,
    u: Floats,
    sums: Floats,
    served: Floats,
) -> int:
    """One parameter, z = 1, every label at once, one constant step."""
    bad = 0
    v = u[0]
    total = sums[0]
    for i in range(len(base)):
        s = link.serve(base[i], v)
        served[i] = s
        e = loss.slope(s, labels[i])
        v = v - eta * e
        total = total + e
        bad = bad + unusable(base[i], labels[i], s)
    u[0] = v
    sums[0] = total
    return bad


def indexed(
    link: Link,
    loss: Loss,
    base: Floats,
    labels: Floats,
    eta: float,
    index: Ints,
    u: Floats,
    sums: Floats,
    served: Floats,
) -> int:
    """One active parameter a row (disjoint groups, keyed series), every label at once, one constant step."""
    bad = 0
    for i in range(len(base)):
        j = index[i]
        if j < 0 or j >= len(u):
            return 1
        s = link.serve(base[i], u[j])
        served[i] = s
        e = loss.slope(s, labels[i])
        u[j] = u[j] - eta * e
        sums[j] = sums[j] + e
        bad = bad + unusable(base[i], labels[i], s)
    return bad


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
) -> int:
    """Dense rows, every label at once, one constant step."""
    bad = 0
    for i in range(len(base)):
        m = 0.0
        for j in range(len(u)):
            m = m + u[j] * rows[i][j]
        s = link.serve(base[i], m)
        served[i] = s
        e = loss.slope(s, labels[i])
        for j in range(len(u)):
            g = e * rows[i][j]
            u[j] = u[j] - eta * g
            sums[j] = sums[j] + g
        bad = bad + unusable(base[i], labels[i], s)
    return bad


def sparse(
    link: Link,
    loss: Loss,
    base: Floats,
    labels: Floats,
    eta: float,
    starts: Ints,
    index: Ints,
    value: Floats,
    u: Floats,
    sums: Floats,
    served: Floats,
) -> int:
    """Sparse rows, every label at once, one constant step."""
    bad = 0
    for i in range(len(base)):
        start, stop = starts[i], starts[i + 1]
        s = link.serve(base[i], margin(u, index, value, start, stop))
        served[i] = s
        e = loss.slope(s, labels[i])
        for a in range(start, stop):
            j = index[a]
            g = e * value[a]
            u[j] = u[j] - eta * g
            sums[j] = sums[j] + g
        bad = bad + unusable(base[i], labels[i], s)
    return bad


def unusable(f: float, y: float, s: float) -> int:
    """1 if one of the three is not finite (or the sum of their sizes overflows), else 0."""
    return 0 if abs(f) + abs(y) + abs(s) <= LARGEST else 1


def varied(
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
    sums: Floats,
    moves: Floats,
    served: Floats,
) -> None:
    """Sparse rows, labels at once or missing (nan), own step and weight for each row."""
    for i in range(len(base)):
        start, stop = starts[i], starts[i + 1]
        s = link.serve(base[i], margin(u, index, value, start, stop))
        served[i] = s
        y = labels[i]
        if y == y and weights[i] > 0.0:
            e = weights[i] * loss.slope(s, y)
            post(index, value, start, stop, etas[i], e, u, sums, moves)


def post(
    index: Ints,
    value: Floats,
    start: int,
    stop: int,
    eta: float,
    e: float,
    u: Floats,
    sums: Floats,
    moves: Floats,
) -> None:
    """One row's label: u <- u - eta e z.

    ``moves`` gathers eta g as it was applied: with varying steps the displacement is this sum, not eta times
    the sum of gradients (prop:gd_simple_lrt).
    """
    for a in range(start, stop):
        j = index[a]
        g = e * value[a]
        u[j] = u[j] - eta * g
        sums[j] = sums[j] + g
        moves[j] = moves[j] + eta * g


def timed(schedule: Schedule, before: int, etas: Floats) -> None:
    """The steps of the rows that follow the first ``before``."""
    for i in range(len(etas)):
        etas[i] = schedule.step(before + i + 1)
