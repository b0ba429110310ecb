"""Loops of quantile tracking at several levels over many rows; ``levels`` has what happens in one row.

Labels at once, at once with a penalty, or late in any order. Each loop keeps the accounts as it goes.
"""

from __future__ import annotations

from gradeq.kernels.levels import drag, fade, learn, place, scale_at, serve, tally
from gradeq.kernels.loops import Floats, Ints
from gradeq.links import Sinh
from gradeq.penalties import Penalty


def at_once(
    link: Sinh,
    curved: bool,
    count: int,
    taus: Floats,
    base: Floats,
    labels: Floats,
    weights: Floats,
    etas: Floats,
    starts: Ints,
    index: Ints,
    value: Floats,
    units: Ints,
    u: Floats,
    nums: Floats,
    dens: Floats,
    sums: Floats,
    gaps: Floats,
    total: Floats,
    widest: Floats,
    a: Floats,
    wish: Floats,
    theta: Floats,
    served: Floats,
) -> None:
    """Every label right after its row, or missing (nan)."""
    for i in range(len(labels)):
        at, start, stop, unit = i * count, starts[i], starts[i + 1], units[i]
        m = base[at + count // 2]
        scale = scale_at(nums[unit], dens[unit], m) if curved else 1.0
        place(link, curved, count, base, at, m, scale, a)
        serve(
            link, curved, count, u, index, value, start, stop, base, at, m, scale, a, wish,
            theta, served, at,
        )  # fmt: skip
        y, w, eta = labels[i], weights[i], etas[i]
        if y == y and w > 0.0:
            learn(count, taus, u, index, value, start, stop, served, at, eta, w, y)
            tally(
                link, curved, count, taus, base, at, m, scale, a, served, at, eta, w, y,
                index, value, start, stop, sums, gaps, total, widest,
            )  # fmt: skip
            if curved:
                fade(nums, dens, unit, m, y)


def penalised(
    link: Sinh,
    penalty: Penalty,
    curved: bool,
    count: int,
    taus: Floats,
    base: Floats,
    labels: Floats,
    weights: Floats,
    etas: Floats,
    starts: Ints,
    index: Ints,
    value: Floats,
    units: Ints,
    u: Floats,
    nums: Floats,
    dens: Floats,
    sums: Floats,
    gaps: Floats,
    total: Floats,
    widest: Floats,
    a: Floats,
    wish: Floats,
    theta: Floats,
    served: Floats,
    pulls: Floats,
    drags: Floats,
    slopes: Floats,
) -> None:
    """As ``at_once``, with a penalty that moves every parameter at each labelled row."""
    for i in range(len(labels)):
        at, start, stop, unit = i * count, starts[i], starts[i + 1], units[i]
        m = base[at + count // 2]
        scale = scale_at(nums[unit], dens[unit], m) if curved else 1.0
        place(link, curved, count, base, at, m, scale, a)
        serve(
            link, curved, count, u, index, value, start, stop, base, at, m, scale, a, wish,
            theta, served, at,
        )  # fmt: skip
        y, w, eta = labels[i], weights[i], etas[i]
        if y == y and w > 0.0:
            for j in range(len(u)):
                slopes[j] = penalty.slope(u[j])
            drag(
                count,
                taus,
                u,
                index,
                value,
                start,
                stop,
                served,
                at,
                eta,
                w,
                y,
                slopes,
                pulls,
                drags,
            )
            tally(
                link, curved, count, taus, base, at, m, scale, a, served, at, eta, w, y,
                index, value, start, stop, sums, gaps, total, widest,
            )  # fmt: skip
            if curved:
                fade(nums, dens, unit, m, y)


def late(
    link: Sinh,
    curved: bool,
    count: int,
    taus: Floats,
    base: Floats,
    labels: Floats,
    weights: Floats,
    etas: Floats,
    starts: Ints,
    index: Ints,
    value: Floats,
    units: Ints,
    u: Floats,
    nums: Floats,
    dens: Floats,
    sums: Floats,
    gaps: Floats,
    total: Floats,
    widest: Floats,
    a: Floats,
    wish: Floats,
    theta: Floats,
    served: Floats,
    scales: Floats,
    first: int,
    cuts: Ints,
    posts: Ints,
) -> None:
    """Labels in any order: before row i is served, posts[: cuts[i]] have been posted, each as it was served.

    Rows before ``first`` were served in an earlier run: their ``served``, ``scales`` and ``etas`` are given.
    """
    p = 0
    for i in range(first, len(labels) + 1):
        due = cuts[i] if i < len(labels) else len(posts)
        while p < due:
            r = posts[p]
            at, start, stop = r * count, starts[r], starts[r + 1]
            m, scale = base[at + count // 2], scales[r]
            y, w, eta = labels[r], weights[r], etas[r]
            place(link, curved, count, base, at, m, scale, a)
            learn(count, taus, u, index, value, start, stop, served, at, eta, w, y)
            tally(
                link, curved, count, taus, base, at, m, scale, a, served, at, eta, w, y,
                index, value, start, stop, sums, gaps, total, widest,
            )  # fmt: skip
            if curved:
                fade(nums, dens, units[r], m, y)
            p += 1
        if i < len(labels):
            at = i * count
            m = base[at + count // 2]
            scales[i] = scale_at(nums[units[i]], dens[units[i]], m) if curved else 1.0
            place(link, curved, count, base, at, m, scales[i], a)
            serve(
                link, curved, count, u, index, value, starts[i], starts[i + 1], base, at, m,
                scales[i], a, wish, theta, served, at,
            )  # fmt: skip
