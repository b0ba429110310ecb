"""The quick loops of Elo: every game scored at once, one constant step, no weights, no penalty, no first side.

The same arithmetic as in ``rating`` (a test holds them to the same bits), in two passes: the first has nothing but
the ratings in it, the second keeps the sums of all games in local variables.
"""

from __future__ import annotations

import math

from gradeq.kernels.account import BEFORE, GRADIENT, MOVED, WEIGHT, Floats, Ints
from gradeq.kernels.rating import (
    DECIDED,
    LOSS,
    STRIDE,
    TIED,
    clipped,
    enter,
    judged,
    move,
    tie,
    win_chance,
)
from gradeq.losses import Loss

ROUND = 16  # games: their clipped likelihoods, squared, multiply to no less than 1e-192


def rated(a: Ints, b: Ints, scores: Floats, eta: float, u: Floats, served: Floats) -> None:
    """Predict each game, then move both ratings."""
    for i in range(len(a)):
        j, k = a[i], b[i]
        p = win_chance(u[j] - u[k])
        served[i] = p
        move(u, j, k, 0, 0.0, eta, p - scores[i], 1.0)


def accounted(
    loss: Loss, a: Ints, b: Ints, scores: Floats, eta: float, served: Floats, sums: Floats, total: Floats
) -> None:  # fmt: skip
    """Enter the games into the accounts of both players and of all games."""
    surprised, decided, tied = total[LOSS], total[DECIDED], total[TIED]
    error, moved, before = total[GRADIENT], total[MOVED], total[BEFORE]
    for i in range(len(a)):
        p, y = served[i], scores[i]
        e, even = p - y, 0.5 - y
        enter(sums, a[i] * STRIDE, 1.0, 1.0, e, eta, even)
        enter(sums, b[i] * STRIDE, 1.0, 1.0, -e, eta, -even)
        error = error + e
        moved = moved + eta * e
        before = before + even
        surprised, decided, tied = judged(loss, surprised, decided, tied, p, y, 1.0)
    total[LOSS], total[DECIDED], total[TIED] = surprised, decided, tied
    total[GRADIENT], total[MOVED], total[BEFORE] = error, moved, before
    total[0] = total[0] + len(a)
    total[WEIGHT] = total[WEIGHT] + len(a)


def swept(
    loss: Loss, a: Ints, b: Ints, scores: Floats, etas: Floats, u: Floats, losses: Floats, likely: Floats,
    chances: Floats,
) -> None:  # fmt: skip
    """Many constant steps in one pass: the rating of player j under step s is u[j][s].

    ``likely`` (ones at first) are products of squared likelihoods; the caller takes what is left in them. Chances
    have a loop of their own (``chances`` is scratch), so that all the rest is done for several steps at a time.
    """
    steps = len(etas)
    for i in range(len(a)):
        first, second, y = u[a[i]], u[b[i]], scores[i]
        for s in range(steps):
            chances[s] = win_chance(first[s] - second[s])
        for s in range(steps):
            down = etas[s] * (chances[s] - y)
            first[s] = first[s] - down
            second[s] = second[s] + down
        t = tie(y)
        if t * (1.0 - t) == 0.0:
            for s in range(steps):
                q = clipped(chances[s])
                h = 1.0 - abs(q - y)
                likely[s] = likely[s] * (h * h + t * (q * (1.0 - q) - h * h))
        else:
            for s in range(steps):
                losses[s] = losses[s] + loss.value(chances[s], y)
        if i % ROUND == ROUND - 1:
            for s in range(steps):
                losses[s] = losses[s] - 0.5 * math.log(likely[s])
                likely[s] = 1.0
