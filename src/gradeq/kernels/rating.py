"""The loops of Elo, each written once: a game moves two ratings against the error, by the same step.

Parameter 0 is the advantage of the first side (0 when there is none), players follow. With z = +1 at a and -1 at b,
p = sigmoid(u_a - u_b + h u_0) is the probability that a wins, y its score, e = p - y. (The paper writes the same game
with z = -1 at a and y = 1 when b wins.) So the gradient of a player is predicted minus actual result from the
player's own side, and its average is minus the rating over eta times games (result 8.5). "Before" is a coin, p = 1/2.

A game travels as (a, b, h, y, w, eta), what a penalty keeps (``rating_rules``) as (drags, pulls, marks, notes).
"""

from __future__ import annotations

import math
from typing import Any

from gradeq.kernels.account import BEFORE, GRADIENT, MOVED, WEIGHT, Floats, Ints
from gradeq.kernels.rating_rules import TINY, Way
from gradeq.losses import Loss
from gradeq.numerics import logit
from gradeq.penalties import Penalty

# The account of a parameter begins with the five sums that every account begins with.
VARIANCE = 5
STRIDE = 6
# So does that of all games. The log loss is LOSS - log(DECIDED) - log(TIED) / 2: likelihoods are multiplied up, and
# their logarithm is taken only when a product has become small. OFFSET is the largest |offset| of a margin.
LOSS, DECIDED, TIED, OFFSET = range(5, 9)
TOTALS = 9
CLIP = 1e-6  # probabilities are judged within [CLIP, 1 - CLIP]
SMALL = 1e-200


def win_chance(m: float) -> float:
    """1 / (1 + exp(-m)), in the form without a branch on the sign of m, which is as hard to guess as the game."""
    return 1.0 / (1.0 + math.exp(-m if m > -700.0 else 700.0))


def clipped(p: float) -> float:
    """p within [CLIP, 1 - CLIP]."""
    return min(1.0 - CLIP, max(CLIP, p))


def offset(p: float) -> float:
    """The logit of a base probability, clipped: what it adds to the margin."""
    return logit(clipped(p))


def tie(y: float) -> float:
    """1 for a score of 1/2, 0 for 0 and 1: t (1 - t) == 0 is nearly always true, and says that y is one of these."""
    return 4.0 * (y * (1.0 - y))


def judged(
    loss: Loss, surprised: float, decided: float, tied: float, p: float, y: float, w: float
) -> tuple[float, float, float]:
    """LOSS, DECIDED and TIED with one more game: without a branch on the score, which nobody could predict."""
    t = tie(y)
    if w == 1.0 and t * (1.0 - t) == 0.0:
        q = p if CLIP < p < 1.0 - CLIP else clipped(p)
        h = 1.0 - abs(q - y)
        decided = decided * (h + t * (1.0 - h))  # the likelihood of a win or a loss, 1 for a tie
        tied = tied * (1.0 + t * (q * (1.0 - q) - 1.0))  # that of a tie, squared, else 1
        if decided < SMALL or tied < SMALL:
            surprised = surprised - surprise(decided, tied)
            decided = 1.0
            tied = 1.0
    else:
        surprised = surprised + w * loss.value(p, y)
    return surprised, decided, tied


def surprise(decided: float, tied: float) -> float:
    """The logarithm of what was multiplied up."""
    return math.log(decided) + 0.5 * math.log(tied)


def enter(
    sums: Floats, at: int, n: float, w: float, g: float, eta: float, before: float, keep: float, noise: float
) -> None:  # fmt: skip
    """Enter one game into the account that begins at ``at``: g and ``before`` are from this side, times w.

    The variance of a rating follows the linearised step: what is there contracts by ``keep``, 1 - eta p (1 - p), and
    the error adds ``noise`` squared, that of eta e; (1, 0) leaves it as it is.
    """
    sums[at] = sums[at] + n
    sums[at + WEIGHT] = sums[at + WEIGHT] + w
    sums[at + GRADIENT] = sums[at + GRADIENT] + g
    sums[at + MOVED] = sums[at + MOVED] + eta * g
    sums[at + BEFORE] = sums[at + BEFORE] + before
    sums[at + VARIANCE] = keep * keep * sums[at + VARIANCE] + noise * noise


def count(
    sums: Floats, total: Floats, game: Any, n: float, e: float, slope: float, unit: float
) -> None:
    """Enter one game into the accounts of both players, of the first side, and of all games.

    n is 1, or -1 to take a game back; its weight and e then have that sign too.
    """
    a, b, h, y, w, eta = game
    even, keep, noise = w * (0.5 - y), 1.0 - eta * slope, eta * e / unit
    enter(sums, a * STRIDE, n, w, e, eta, even, keep, noise)
    enter(sums, b * STRIDE, n, w, -e, eta, -even, keep, noise)
    if h != 0.0:
        aside = 1.0 - eta * (slope * (h * h))
        enter(sums, 0, n, w, e * h, eta, even * h, aside, eta * (e * h) / unit)
    total[0] = total[0] + n
    total[WEIGHT] = total[WEIGHT] + w
    total[GRADIENT] = total[GRADIENT] + e
    total[MOVED] = total[MOVED] + eta * e
    total[BEFORE] = total[BEFORE] + even


def account(
    loss: Loss, sums: Floats, total: Floats, game: Any, o: float, p: float, unit: float
) -> None:
    """Enter a game that was played: all its sums, the variances of both ratings, the log loss."""
    _, _, _, y, w, _ = game
    count(sums, total, game, 1.0, w * (p - y), w * (p * (1.0 - p)), unit)
    if abs(o) > total[OFFSET]:
        total[OFFSET] = abs(o)
    total[LOSS], total[DECIDED], total[TIED] = judged(
        loss, total[LOSS], total[DECIDED], total[TIED], p, y, w
    )


def gap(u: Floats, a: int, b: int, side: int, h: float) -> float:
    """u_a - u_b + h u_side."""
    return (u[a] - u[b]) + h * u[side]  # type: ignore[no-any-return]


def move(u: Floats, a: int, b: int, side: int, h: float, eta: float, e: float, unit: float) -> None:
    """Move both players and the first side by eta against the error e; ``unit`` is that of the stored ratings."""
    down = eta * e / unit
    u[a] = u[a] - down
    u[b] = u[b] + down
    if h != 0.0:
        u[side] = u[side] - eta * (e * h) / unit


def step(loss: Loss, u: Floats, sums: Floats, total: Floats, game: Any, o: float, p: float) -> None:
    """Move both players and the first side against the error of one game, and enter it; o is added to the margin."""
    a, b, h, y, w, eta = game
    move(u, a, b, 0, h, eta, w * (p - y), 1.0)
    account(loss, sums, total, game, o, p, 1.0)


def margin(way: Way, u: Floats, own: Any, a: int, b: int, h: float) -> float:
    """u_a - u_b + h u_0, under a penalty."""
    return (way.read(u, a, own) - way.read(u, b, own)) + h * way.read(u, 0, own)


def shift(way: Way, u: Floats, own: Any, game: Any, e: float) -> None:
    """As ``move``, once what a penalty did to these ratings is in their accounts."""
    a, b, h, _, _, eta = game
    way.touch(u, a, own)
    way.touch(u, b, own)
    if h != 0.0:
        way.touch(u, 0, own)
    move(u, a, b, 0, h, eta, e, way.unit(own))


def learn(
    way: Way, loss: Loss, u: Floats, sums: Floats, total: Floats, own: Any, game: Any, p: float
) -> None:
    """As ``step``, under a penalty."""
    _, _, _, y, w, eta = game
    way.before(eta, own)
    shift(way, u, own, game, w * (p - y))
    account(loss, sums, total, game, 0.0, p, way.unit(own))
    way.after(eta, own)
    if way.unit(own) < TINY:
        write_out(way, u, sums, own)


def amend(
    way: Way, loss: Loss, u: Floats, sums: Floats, total: Floats, own: Any, game: Any, p: float, sign: float
) -> None:  # fmt: skip
    """Take one score back (sign -1), or put one in its place: ratings and sums, no penalty, no variance."""
    a, b, h, y, w, eta = game
    e = sign * (w * (p - y))
    shift(way, u, own, game, e)
    count(sums, total, (a, b, h, y, sign * w, eta), sign, e, 0.0, math.inf)
    total[LOSS] = total[LOSS] + sign * (w * loss.value(p, y))


def write_out(way: Way, u: Floats, sums: Floats, own: Any) -> None:
    """Bring every rating up to date and multiply the common factor into it; begin again from 1."""
    _, _, marks, notes = own
    unit = way.unit(own)
    for j in range(len(u)):
        way.touch(u, j, own)
        u[j] = u[j] * unit
        at = j * STRIDE + VARIANCE
        sums[at] = sums[at] * (unit * unit)
        marks[2 * j] = 0.0
        marks[2 * j + 1] = 0.0
    notes[0] = 1.0
    notes[1] = 0.0
    notes[2] = 0.0


def played(
    way: Way, loss: Loss, home: Floats, a: Ints, b: Ints, scores: Floats, weights: Floats, etas: Floats,
    first: int, cuts: Ints, posts: Ints, u: Floats, sums: Floats, total: Floats, drags: Floats, pulls: Floats,
    marks: Floats, notes: Floats, served: Floats,
) -> None:  # fmt: skip
    """Scores in any order: before game i is served, posts[: cuts[i]] have been learned from, each as it was served.

    Games before ``first`` were served in an earlier run: their ``served`` is given.
    """
    p, own = 0, (drags, pulls, marks, notes)
    for i in range(first, len(a) + 1):
        due = cuts[i] if i < len(a) else len(posts)
        while p < due:
            k = posts[p]
            game = (a[k], b[k], home[k], scores[k], weights[k], etas[k])
            learn(way, loss, u, sums, total, own, game, served[k])
            p += 1
        if i < len(a):
            served[i] = win_chance(margin(way, u, own, a[i], b[i], home[i]))


def learn_dense(
    loss: Loss, slopes: Floats, u: Floats, sums: Floats, total: Floats, own: Any, game: Any, p: float
) -> None:  # fmt: skip
    """As ``learn``, with the slopes of a penalty that moves every parameter; ``slopes`` is used up."""
    a, b, h, y, w, eta = game
    drags, pulls, _, _ = own
    e = w * (p - y)
    for j in range(len(u)):
        pulls[j] = pulls[j] + slopes[j]
        drags[j] = drags[j] + eta * slopes[j]
    slopes[a] = slopes[a] + e
    slopes[b] = slopes[b] - e
    slopes[0] = slopes[0] + e * h
    for j in range(len(u)):
        u[j] = u[j] - eta * slopes[j]
    account(loss, sums, total, game, 0.0, p, 1.0)


def played_dense(
    penalty: Penalty, loss: Loss, home: Floats, a: Ints, b: Ints, scores: Floats, weights: Floats, etas: Floats,
    u: Floats, sums: Floats, total: Floats, drags: Floats, pulls: Floats, slopes: Floats, served: Floats,
) -> None:  # fmt: skip
    """Scores at once or missing (nan), with a penalty whose subgradient moves every parameter (paper Section 3)."""
    own = (drags, pulls, slopes, slopes)
    for i in range(len(a)):
        j, k, h, y, w = a[i], b[i], home[i], scores[i], weights[i]
        p = win_chance(gap(u, j, k, 0, h))
        served[i] = p
        if y == y and w > 0.0:
            for m in range(len(u)):
                slopes[m] = penalty.slope(u[m])
            learn_dense(loss, slopes, u, sums, total, own, (j, k, h, y, w, etas[i]), p)
