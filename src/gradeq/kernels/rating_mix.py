"""The loop of Elo's automatic step: seven ratings mixed by their log loss, then one step on the logit of the mix.

``experts`` are flat: entry j * EXPERTS + k is the rating of player j by expert k. A memo is what each expert said,
then their mix.
"""

from __future__ import annotations

import math

from gradeq.kernels.account import Floats, Ints
from gradeq.kernels.mixing import blend, weigh
from gradeq.kernels.rating import Rule, learn, margin, offset, widen, win_chance
from gradeq.losses import Loss

EXPERTS = 7
MEMO = EXPERTS + 1
SHOWN = 4  # the expert whose ratings are shown; the variances are its own
BAYES = math.log(EXPERTS)  # with this Delta weights are exp(-L_k): those of Bayes for log loss


def speak(
    experts: Floats,
    losses: Floats,
    a: int,
    b: int,
    h: float,
    weights: Floats,
    memos: Floats,
    at: int,
) -> float:
    """What each expert says and their mix, noted from ``at`` on; ``weights`` is scratch."""
    j, k = a * EXPERTS, b * EXPERTS
    for i in range(EXPERTS):
        memos[at + i] = win_chance((experts[j + i] - experts[k + i]) + h * experts[i])
    weigh(losses, BAYES, weights)
    memos[at + EXPERTS] = blend(weights, memos, at)
    return memos[at + EXPERTS]  # type: ignore[no-any-return]


def hear(
    loss: Loss,
    rates: Floats,
    a: int,
    b: int,
    h: float,
    y: float,
    w: float,
    eta: float,
    memos: Floats,
    at: int,
    experts: Floats,
    variances: Floats,
    losses: Floats,
) -> None:
    """Each expert moves by its own error, by its own rate or by eta if that is less; losses add up."""
    for i in range(EXPERTS):
        p, step = memos[at + i], min(rates[i], eta)
        e = w * (p - y)
        j, k = a * EXPERTS + i, b * EXPERTS + i
        experts[j] = experts[j] - step * e
        experts[k] = experts[k] + step * e
        if h != 0.0:
            experts[i] = experts[i] - step * (e * h)
        if i == SHOWN:
            slope = w * (p * (1.0 - p))
            widen(variances, a, e, step, slope, 1.0)
            widen(variances, b, -e, step, slope, 1.0)
        losses[i] = losses[i] + loss.value(p, y)


def mixed(
    rule: Rule,
    loss: Loss,
    rates: Floats,
    last: float,
    home: Floats,
    a: Ints,
    b: Ints,
    scores: Floats,
    weights: Floats,
    etas: Floats,
    first: int,
    cuts: Ints,
    posts: Ints,
    u: Floats,
    sums: Floats,
    total: Floats,
    experts: Floats,
    variances: Floats,
    losses: Floats,
    nothing: Floats,
    scratch: Floats,
    apart: int,
    memos: Floats,
    served: Floats,
) -> None:
    """Scores in any order, as in ``rating.played``; the step on the mix is ``last``, or that of the label if less.

    Memos are ``apart`` numbers apart; with 0 there is room for one, which is enough when every score is at once.
    """
    p = 0
    for i in range(first, len(a) + 1):
        due = cuts[i] if i < len(a) else len(posts)
        while p < due:
            k = posts[p]
            j, m, h, y, w, at = a[k], b[k], home[k], scores[k], weights[k], k * apart
            learn(
                rule, loss, u, sums, total, nothing, nothing, nothing, nothing, j, m, h,
                offset(memos[at + EXPERTS]), served[k], y, w, min(last, etas[k]),
            )  # fmt: skip
            hear(loss, rates, j, m, h, y, w, etas[k], memos, at, experts, variances, losses)
            p += 1
        if i < len(a):
            o = offset(speak(experts, losses, a[i], b[i], home[i], scratch, memos, i * apart))
            served[i] = win_chance(o + margin(rule, u, nothing, nothing, a[i], b[i], home[i]))
