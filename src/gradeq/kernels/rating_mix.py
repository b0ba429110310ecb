"""The loop of Elo's automatic step: seven ratings mixed by their log loss, then one step on the logit of the mix.

``experts`` are flat: entry j * EXPERTS + k is the rating of player j by expert k. A memo is what each expert said,
then their mix.
"""

from __future__ import annotations

import math
from typing import Any

from gradeq.kernels.account import Floats, Ints
from gradeq.kernels.mixing import blend, weigh
from gradeq.kernels.rating import gap, move, offset, step, win_chance
from gradeq.losses import Loss

EXPERTS = 7
MEMO = EXPERTS + 1
SHOWN = 4  # the expert whose ratings are shown; the variances are its own
BAYES = math.log(EXPERTS)  # with this Delta weights are exp(-L_k): those of Bayes for log loss


def speak(
    experts: Floats, losses: Floats, a: int, b: int, h: float, weights: Floats, memos: Floats, at: int
) -> float:  # fmt: skip
    """What each expert says and their mix, noted from ``at`` on; ``weights`` is scratch."""
    for i in range(EXPERTS):
        memos[at + i] = win_chance(gap(experts, a * EXPERTS + i, b * EXPERTS + i, i, h))
    weigh(losses, BAYES, weights)
    memos[at + EXPERTS] = blend(weights, memos, at)
    return memos[at + EXPERTS]  # type: ignore[no-any-return]


def hear(
    loss: Loss, rates: Floats, game: Any, memos: Floats, at: int, experts: Floats, variances: Floats, losses: Floats
) -> None:  # fmt: skip
    """Each expert moves by its own error, by its own rate or by eta if that is less; losses add up."""
    a, b, h, y, w, eta = game
    for i in range(EXPERTS):
        p, rate = memos[at + i], min(rates[i], eta)
        e = w * (p - y)
        move(experts, a * EXPERTS + i, b * EXPERTS + i, i, h, rate, e, 1.0)
        if i == SHOWN:
            keep, noise = 1.0 - rate * (w * (p * (1.0 - p))), rate * e
            variances[a] = keep * keep * variances[a] + noise * noise
            variances[b] = keep * keep * variances[b] + noise * noise
        losses[i] = losses[i] + loss.value(p, y)


def mixed(
    loss: Loss, rates: Floats, last: float, home: Floats, a: Ints, b: Ints, scores: Floats, weights: Floats,
    etas: Floats, first: int, cuts: Ints, posts: Ints, u: Floats, sums: Floats, total: Floats, experts: Floats,
    variances: Floats, losses: Floats, scratch: Floats, apart: int, memos: Floats, served: Floats,
) -> None:  # fmt: skip
    """Scores in any order, as in ``rating.played``; the step on the mix is ``last``, or that of the label if less.

    Memos are ``apart`` numbers apart; with 0 there is room for one, which is enough when every score is at once.
    """
    p = 0
    for i in range(first, len(a) + 1):
        due = cuts[i] if i < len(a) else len(posts)
        while p < due:
            k = posts[p]
            j, m, h, y, w, at = a[k], b[k], home[k], scores[k], weights[k], k * apart
            o, eta = offset(memos[at + EXPERTS]), min(last, etas[k])
            step(loss, u, sums, total, (j, m, h, y, w, eta), o, served[k])
            game = (j, m, h, y, w, etas[k])
            hear(loss, rates, game, memos, at, experts, variances, losses)
            p += 1
        if i < len(a):
            o = offset(speak(experts, losses, a[i], b[i], home[i], scratch, memos, i * apart))
            served[i] = win_chance(o + gap(u, a[i], b[i], 0, home[i]))
