"""Experts that track quantiles of the known residuals, mixed by their pinball loss, under a final tracker.

An expert is an offset in asinh units for each level, common and by group; its unit is the running scale of |y - f|.
It learns from a label as if it had come at once: by whether its PRESENT state, the scale included, covers it. Judged
in the scale of its ticket it would answer a rise of the scale twice, and without end where the ticket had none.
Entry (j * trackers + e) * count + k belongs to group j, tracker e and level k. A row's memo has the scale of the
final tracker and what each expert said level by level (raw first, where there is one).
"""

from __future__ import annotations

from gradeq.geometries.isotonic import pool
from gradeq.kernels.account import Floats, Ints
from gradeq.kernels.levels import (
    fade,
    judge,
    learn,
    looseness,
    place,
    scale_at,
    serve,
    tally,
    target_of,
)
from gradeq.kernels.mixing import DELTA, LARGEST, settle, weigh
from gradeq.links import Sinh
from gradeq.losses import pinball, pinball_slope

SCALE = 1  # a memo begins with the scale of the final tracker
FARTHEST = 1e300
COMMON = 10.0  # labels after which a common step is no longer that of a mean, if its rate is 0
OWN = 30.0  # the same for the offset of a group


def bounded(x: float) -> float:
    """x, kept well inside the finite numbers."""
    return min(FARTHEST, max(-FARTHEST, x))


def said(
    link: Sinh,
    count: int,
    base: Floats,
    at: int,
    scale: float,
    a: Floats,
    offsets: Floats,
    own_offsets: Floats,
    c: int,
    k: int,
    grouped: bool,
    index: Ints,
    start: int,
    stop: int,
) -> float:
    """What a tracker says at level k (its entry c) with this scale: the forecast while there is none."""
    if scale == 0.0:
        f: float = base[at + k]
        return f
    x = offsets[c]
    if grouped:
        for i in range(start, stop):
            x = x + own_offsets[index[i] * len(offsets) + c]
    return bounded(link.serve(base[at + count // 2], a[k] + x, scale))


def speak(
    link: Sinh,
    raw: int,
    count: int,
    base: Floats,
    at: int,
    scale: float,
    a: Floats,
    offsets: Floats,
    own_offsets: Floats,
    grouped: bool,
    index: Ints,
    start: int,
    stop: int,
    losses: Floats,
    hedge: Floats,
    weights: Floats,
    memo: Floats,
    to: int,
    wish: Floats,
    theta: Floats,
    mixes: Floats,
) -> None:
    """What each expert says of one row, level by level, and their mix, projected so that levels do not cross.

    One forecast for several levels is a quantile of none of them: raw then says what the others say together, which
    leaves the mix to them.
    """
    place(link, True, count, base, at, base[at + count // 2], scale, a)
    weigh(losses, hedge[DELTA], weights)
    others = 0.0
    for e in range(raw, len(losses)):
        others = others + weights[e]
    asleep = raw > 0 and count > 1 and base[at] == base[at + count - 1] and others > 0.0
    rising = True
    for k in range(count):
        m = 0.0
        for e in range(raw, len(losses)):
            x = said(
                link, count, base, at, scale, a, offsets, own_offsets, (e - raw) * count + k, k,
                grouped, index, start, stop,
            )  # fmt: skip
            memo[to + e * count + k] = x
            m = m + weights[e] * x
        if raw > 0:
            memo[to + k] = m / others if asleep else base[at + k]
            m = m + weights[0] * memo[to + k]
        wish[k] = m if scale > 0.0 else base[at + k]
        theta[k] = wish[k]
        if k > 0 and wish[k - 1] > wish[k]:
            rising = False
    if not rising:
        pool(wish, theta)
    for k in range(count):
        mixes[at + k] = theta[k]


def weighed(
    count: int, taus: Floats, memo: Floats, at: int, w: float, y: float, lost: Floats
) -> None:
    """What each expert lost by what it said when the row was served, added over the levels."""
    for e in range(len(lost)):
        total = 0.0
        for k in range(count):
            total = total + pinball(taus[k], memo[at + e * count + k], y)
        lost[e] = min(LARGEST, w * total)


def hear(
    link: Sinh,
    count: int,
    taus: Floats,
    groups: float,
    rates: Floats,
    base: Floats,
    at: int,
    y: float,
    w: float,
    waited: float,
    memo: Floats,
    to: int,
    grouped: bool,
    index: Ints,
    start: int,
    stop: int,
    offsets: Floats,
    losses: Floats,
    hedge: Floats,
    heard: Floats,
    scale_num: Floats,
    scale_den: Floats,
    own_offsets: Floats,
    own_heard: Floats,
    a: Floats,
    weights: Floats,
    lost: Floats,
) -> None:
    """One label: the weights learn from what was said when the row was served, the experts from what they say now.

    The first label to differ from its forecast makes the scale that it is judged in; before it there is nothing to
    learn. ``a``, ``weights`` and ``lost`` are scratch.
    """
    m = base[at + count // 2]
    labels = heard[0]
    weighed(count, taus, memo, to, w, y, lost)
    settle(losses, hedge, heard, waited, lost, weights)
    scale = scale_at(scale_num[0], scale_den[0], m)
    fade(scale_num, scale_den, 0, m, y)
    if scale == 0.0:
        scale = scale_at(scale_num[0], scale_den[0], m)
    place(link, True, count, base, at, m, scale, a)
    for e in range(len(rates) if scale > 0.0 else 0):
        common = max(rates[e], 1.0 / (labels + COMMON))
        for k in range(count):
            c = e * count + k
            x = said(
                link, count, base, at, scale, a, offsets, own_offsets, c, k, grouped, index, start, stop,
            )  # fmt: skip
            miss = w * pinball_slope(taus[k], x, y)
            offsets[c] = bounded(offsets[c] - common * miss)
            if grouped:
                for i in range(start, stop):
                    j = index[i]
                    own = max(rates[e], 1.0 / (own_heard[j] + OWN)) / groups
                    d = j * len(offsets) + c
                    own_offsets[d] = bounded(own_offsets[d] - own * miss)
    if grouped:
        for i in range(start, stop):
            own_heard[index[i]] = own_heard[index[i]] + 1.0


def mixed(
    link: Sinh,
    raw: int,
    count: int,
    taus: Floats,
    groups: float,
    rates: Floats,
    base: Floats,
    labels: Floats,
    weighing: Floats,
    etas: Floats,
    starts: Ints,
    index: Ints,
    value: Floats,
    keys: Ints,
    first: int,
    cuts: Ints,
    posts: Ints,
    numbers: Floats,
    before: float,
    offsets: Floats,
    losses: Floats,
    hedge: Floats,
    heard: Floats,
    scale_num: Floats,
    scale_den: Floats,
    own_offsets: Floats,
    own_heard: Floats,
    u: Floats,
    nums: Floats,
    dens: Floats,
    sums: Floats,
    gaps: Floats,
    total: Floats,
    a: Floats,
    wish: Floats,
    theta: Floats,
    errors: Floats,
    lost_levels: Floats,
    weights: Floats,
    lost: Floats,
    apart: int,
    memos: Floats,
    mixes: Floats,
    served: Floats,
) -> None:
    """Labels at once or in any order: before row i is served, posts[: cuts[i]] have been posted.

    Rows before ``first`` were served in an earlier run, as rows ``numbers`` of the layer; ``before`` rows were served
    before row ``first``. ``apart``: numbers from one row's memo to the next, 0 when every label comes at once.
    """
    grouped = groups > 0.0
    n = len(labels)
    p = 0
    for i in range(first, n + 1):
        due = cuts[i] if i < n else len(posts)
        while p < due:
            r = posts[p]
            at, to, start, stop = r * count, r * apart, starts[r], starts[r + 1]
            y, w, eta = labels[r], weighing[r], etas[r]
            m, scale = mixes[at + count // 2], memos[to]
            judge(count, taus, base, served, at, y, errors, lost_levels)
            learn(count, u, index, value, start, stop, errors, eta, w)
            place(link, True, count, mixes, at, m, scale, a)
            tally(
                count, a, target_of(link, True, y, m, scale), looseness(True), errors, lost_levels, w, eta,
                1.0, index, value, start, stop, sums, gaps, total,
            )  # fmt: skip
            fade(nums, dens, keys[r], m, y)
            number = numbers[r] if r < first else before + (r - first) + 1.0
            hear(
                link, count, taus, groups, rates, base, at, y, w, max(0.0, before + (i - first) - number),
                memos, to + SCALE, grouped, index, start, stop, offsets, losses, hedge, heard, scale_num,
                scale_den, own_offsets, own_heard, a, weights, lost,
            )  # fmt: skip
            p += 1
        if i < n:
            at, to, start, stop = i * count, i * apart, starts[i], starts[i + 1]
            scale = scale_at(scale_num[0], scale_den[0], base[at + count // 2])
            speak(
                link, raw, count, base, at, scale, a, offsets, own_offsets, grouped, index, start, stop,
                losses, hedge, weights, memos, to + SCALE, wish, theta, mixes,
            )  # fmt: skip
            m = mixes[at + count // 2]
            memos[to] = scale_at(nums[keys[i]], dens[keys[i]], m)
            place(link, True, count, mixes, at, m, memos[to], a)
            serve(
                link, True, count, u, index, value, start, stop, mixes, at, m, memos[to], a, wish,
                theta, served,
            )  # fmt: skip
