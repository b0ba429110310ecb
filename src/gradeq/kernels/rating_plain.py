"""The quick loops of Elo: every game scored at once, one constant step, no weights, no penalty, no first side.

The same arithmetic as in ``rating`` (a test holds them to the same bits), in two passes: the first has nothing but
the ratings in it, the second keeps the sums of all games in local variables.
"""

from __future__ import annotations

import math

from gradeq.kernels.loops import Floats, Ints
from gradeq.kernels.rating import (
    ALL_GAMES,
    ALL_WEIGHT,
    BEFORE,
    COLUMNS,
    DECIDED,
    ERROR,
    LOSS,
    SMALL,
    TIED,
    TIES,
    clipped,
    decided_factor,
    enter,
    plain_score,
    surprise,
    tie,
    tied_factor,
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
        move = eta * (p - scores[i])
        u[j] = u[j] - move
        u[k] = u[k] + move


def accounted(
    loss: Loss,
    a: Ints,
    b: Ints,
    scores: Floats,
    eta: float,
    served: Floats,
    sums: Floats,
    total: Floats,
) -> None:
    """Enter the games into the accounts of both players and of all games."""
    surprised, decided, tied = total[LOSS], total[DECIDED], total[TIED]
    error, before, ties = total[ERROR], total[BEFORE], total[TIES]
    for i in range(len(a)):
        p, y = served[i], scores[i]
        e = p - y
        slope = p * (1.0 - p)
        enter(sums, a[i] * COLUMNS, y, 1.0, e, eta, slope, 1.0)
        enter(sums, b[i] * COLUMNS, 1.0 - y, 1.0, -e, eta, slope, 1.0)
        error = error + e
        before = before + (0.5 - y)
        if plain_score(y):
            q = clipped(p)
            ties = ties + tie(y)
            decided = decided * decided_factor(q, y)
            tied = tied * tied_factor(q, y)
            if decided < SMALL or tied < SMALL:
                surprised = surprised - surprise(decided, tied)
                decided = 1.0
                tied = 1.0
        else:
            surprised = surprised + loss.value(p, y)
    total[LOSS] = surprised
    total[DECIDED] = decided
    total[TIED] = tied
    total[ERROR] = error
    total[BEFORE] = before
    total[TIES] = ties
    total[ALL_GAMES] = total[ALL_GAMES] + len(a)
    total[ALL_WEIGHT] = total[ALL_WEIGHT] + len(a)


def swept(
    loss: Loss,
    a: Ints,
    b: Ints,
    scores: Floats,
    etas: Floats,
    u: Floats,
    losses: Floats,
    likely: Floats,
    chances: Floats,
) -> None:
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
            move = etas[s] * (chances[s] - y)
            first[s] = first[s] - move
            second[s] = second[s] + move
        if plain_score(y):
            t = tie(y)
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
