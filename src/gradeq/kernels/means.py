"""Experts that are running means of the known residuals, mixed by their loss, under a final layer of descent.

An expert forgets over a number of labels of the whole layer. It says link(f, a + d of the row's groups) and learns
from a label as if it had come at once: by the error of its PRESENT state, so nothing is fed back through the delay.
Entry j * EXPERTS + k belongs to group j and expert k.
"""

from __future__ import annotations

import math

from gradeq.kernels.account import Floats, Ints
from gradeq.kernels.forms import margin, move
from gradeq.kernels.mixing import DELTA, LARGEST, blend, settle, weigh
from gradeq.links import Link
from gradeq.losses import Loss

EXPERTS = 8
SAID = EXPERTS + 1  # the raw prediction comes first
PRIOR = 3.0  # the precision that an offset of 0 has before any label
FLATTEST = 1e-3  # the least curvature of a probability
HEAVIEST = 1e300  # of a weight: above it a precision would no longer be finite


def offset(
    offsets: Floats, own_offsets: Floats, k: int, grouped: bool, index: Ints, start: int, stop: int
) -> float:
    """Where expert k stands for one row: its common offset, and those of the row's groups."""
    x: float = offsets[k]
    if grouped:
        for a in range(start, stop):
            x = x + own_offsets[index[a] * EXPERTS + k]
    return x


def speak(
    link: Link,
    bounded: bool,
    f: float,
    offsets: Floats,
    own_offsets: Floats,
    guard: Floats,
    grouped: bool,
    index: Ints,
    start: int,
    stop: int,
    losses: Floats,
    hedge: Floats,
    weights: Floats,
    memo: Floats,
    to: int,
) -> float:
    """What each expert says of one row, raw first, and their mix, which is given back.

    Where labels have no bounds an expert's offset stays within the residuals seen, and the mix with it.
    """
    memo[to] = f
    for k in range(EXPERTS):
        x = offset(offsets, own_offsets, k, grouped, index, start, stop)
        if not bounded:
            x = min(max(x, guard[0]), guard[1])
        memo[to + 1 + k] = link.serve(f, x)
    weigh(losses, hedge[DELTA], weights)
    return blend(weights, memo, to)


def judge(loss: Loss, memo: Floats, at: int, w: float, y: float, lost: Floats) -> None:
    """What each expert lost by what it said when the row was served."""
    for k in range(SAID):
        lost[k] = min(LARGEST, w * loss.value(memo[at + k], y))


def hear(
    link: Link,
    loss: Loss,
    bounded: bool,
    groups: float,
    keeps: Floats,
    fades: Floats,
    f: float,
    y: float,
    w: float,
    waited: float,
    memo: Floats,
    at: int,
    grouped: bool,
    index: Ints,
    start: int,
    stop: int,
    offsets: Floats,
    precisions: Floats,
    losses: Floats,
    hedge: Floats,
    heard: Floats,
    guard: Floats,
    own_offsets: Floats,
    own_precisions: Floats,
    own_last: Floats,
    weights: Floats,
    lost: Floats,
) -> None:
    """One label: the weights learn from what was said when the row was served, the experts from what they say now.

    ``keeps``: 1 - 1 / memory of each expert, ``fades`` their logarithms; ``weights`` and ``lost`` are scratch.
    """
    guard[0] = min(guard[0], y - f)
    guard[1] = max(guard[1], y - f)
    judge(loss, memo, at, w, y, lost)
    settle(losses, hedge, heard, waited, lost, weights)
    labels, w = heard[0], min(HEAVIEST, w)
    for k in range(EXPERTS):
        q = link.serve(f, offset(offsets, own_offsets, k, grouped, index, start, stop))
        e = q - y
        v = w * max(q * (1.0 - q), FLATTEST) if bounded else w
        precisions[k] = keeps[k] * precisions[k] + v
        offsets[k] = offsets[k] - e * (w / (precisions[k] + PRIOR))
        if grouped:
            for a in range(start, stop):
                j = index[a]
                c = j * EXPERTS + k
                faded = math.exp(fades[k] * (labels - own_last[j])) * own_precisions[c]
                own_precisions[c] = faded + v
                own_offsets[c] = own_offsets[c] - e * (w / (own_precisions[c] + PRIOR)) / groups
    if grouped:
        for a in range(start, stop):
            own_last[index[a]] = labels


def mixed(
    link: Link,
    loss: Loss,
    bounded: bool,
    groups: float,
    keeps: Floats,
    fades: Floats,
    base: Floats,
    labels: Floats,
    weighing: Floats,
    etas: Floats,
    starts: Ints,
    index: Ints,
    value: Floats,
    first: int,
    cuts: Ints,
    posts: Ints,
    numbers: Floats,
    before: float,
    offsets: Floats,
    precisions: Floats,
    losses: Floats,
    hedge: Floats,
    heard: Floats,
    guard: Floats,
    own_offsets: Floats,
    own_precisions: Floats,
    own_last: Floats,
    weights: Floats,
    lost: Floats,
    u: Floats,
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
    p = 0
    for i in range(first, len(base) + 1):
        due = cuts[i] if i < len(base) else len(posts)
        while p < due:
            r = posts[p]
            f, y, w = base[r], labels[r], weighing[r]
            start, stop = starts[r], starts[r + 1]
            number = numbers[r] if r < first else before + (r - first) + 1.0
            waited = max(0.0, before + (i - first) - number)
            move(u, index, value, start, stop, etas[r], w * loss.slope(served[r], y))
            hear(
                link, loss, bounded, groups, keeps, fades, f, y, w, waited, memos, r * apart, grouped,
                index, start, stop, offsets, precisions, losses, hedge, heard, guard, own_offsets, own_precisions,
                own_last, weights, lost,
            )  # fmt: skip
            p += 1
        if i < len(base):
            start, stop = starts[i], starts[i + 1]
            mixes[i] = speak(
                link, bounded, base[i], offsets, own_offsets, guard, grouped, index, start, stop,
                losses, hedge, weights, memos, i * apart,
            )  # fmt: skip
            served[i] = link.serve(mixes[i], margin(u, index, value, start, stop))
