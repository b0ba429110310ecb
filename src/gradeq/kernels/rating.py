"""The loops of Elo, each written once: a game moves two ratings against the error, by the same step.

Parameter 0 is the advantage of the first side (0 when there is none), players follow. With z = +1 at a and -1 at b,
p = sigmoid(u_a - u_b + h u_0) is the probability that a wins, y its score, e = p - y. (The paper writes the same game
with z = -1 at a and y = 1 when b wins.) So the gradient of a player is predicted minus actual result from the
player's own side, and its average is minus the rating over eta times games (result 8.5). "Before" is a coin, p = 1/2.
"""

from __future__ import annotations

import math
from typing import Protocol

from gradeq.kernels.account import BEFORE, GRADIENT, MOVED, WEIGHT, Floats, Ints
from gradeq.losses import Loss
from gradeq.numerics import bounded_exp, logit
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


class Rule(Protocol):
    """How a rating is read and moved when a penalty works on all of them without touching each."""

    def read(self, u: Floats, j: int, marks: Floats, notes: Floats) -> float:
        """The rating of j now."""
        ...

    def touch(
        self, u: Floats, j: int, drags: Floats, pulls: Floats, marks: Floats, notes: Floats
    ) -> None:
        """Bring what the penalty did to j since it was last touched into its account."""
        ...

    def before(self, eta: float, notes: Floats) -> None:
        """What the penalty does ahead of a game's step."""
        ...

    def after(self, eta: float, notes: Floats) -> None:
        """What the penalty does once a game's step is taken."""
        ...

    def unit(self, notes: Floats) -> float:
        """What a stored rating is multiplied by."""
        ...

    def spent(self, notes: Floats) -> bool:
        """Whether that factor is so small that the ratings should be written out."""
        ...


def win_chance(m: float) -> float:
    """1 / (1 + exp(-m)), in the form without a branch: the sign of m is as hard to guess as the game."""
    return 1.0 / (1.0 + bounded_exp(-m))


def clipped(p: float) -> float:
    """p within [CLIP, 1 - CLIP]."""
    return min(1.0 - CLIP, max(CLIP, p))


def tie(y: float) -> float:
    """1 for a score of 1/2, 0 for 0 and 1."""
    return 4.0 * (y * (1.0 - y))


def decided_factor(q: float, y: float, t: float) -> float:
    """The likelihood of a win or a loss under q, and 1 for a tie: without a branch, which nobody could predict."""
    h = 1.0 - abs(q - y)
    return h + t * (1.0 - h)


def tied_factor(q: float, t: float) -> float:
    """The squared likelihood q (1 - q) of a tie, and 1 for a win or a loss."""
    return 1.0 + t * (q * (1.0 - q) - 1.0)


def plain_score(t: float) -> bool:
    """Whether y is 0, 1/2 or 1, in one comparison that is nearly always true; t = tie(y)."""
    return t * (1.0 - t) == 0.0


def judge(loss: Loss, total: Floats, p: float, y: float, w: float) -> None:
    """Add the log loss of one game."""
    t = tie(y)
    if w == 1.0 and plain_score(t):
        q = clipped(p)
        total[DECIDED] = total[DECIDED] * decided_factor(q, y, t)
        total[TIED] = total[TIED] * tied_factor(q, t)
        if total[DECIDED] < SMALL or total[TIED] < SMALL:
            total[LOSS] = total[LOSS] - surprise(total[DECIDED], total[TIED])
            total[DECIDED] = 1.0
            total[TIED] = 1.0
    else:
        total[LOSS] = total[LOSS] + w * loss.value(p, y)


def surprise(decided: float, tied: float) -> float:
    """The logarithm of what was multiplied up."""
    return math.log(decided) + 0.5 * math.log(tied)


def enter(
    sums: Floats, at: int, count: float, w: float, g: float, eta: float, before: float
) -> None:
    """Enter one game into the account that begins at ``at``: g and ``before`` are from this side, times w."""
    sums[at] = sums[at] + count
    sums[at + WEIGHT] = sums[at + WEIGHT] + w
    sums[at + GRADIENT] = sums[at + GRADIENT] + g
    sums[at + MOVED] = sums[at + MOVED] + eta * g
    sums[at + BEFORE] = sums[at + BEFORE] + before


def widen(variances: Floats, at: int, g: float, eta: float, slope: float, unit: float) -> None:
    """The variance of a rating follows the linearised step.

    What is there contracts by 1 - eta p (1 - p), the error adds (eta e)^2.
    """
    keep = 1.0 - eta * slope
    noise = eta * g / unit
    variances[at] = keep * keep * variances[at] + noise * noise


def count(
    sums: Floats,
    total: Floats,
    a: int,
    b: int,
    h: float,
    games: float,
    w: float,
    e: float,
    eta: float,
    before: float,
) -> None:
    """Enter one game into the accounts of both players, of the first side, and of all games.

    ``games`` is 1, or -1 to take a game back; w, e and ``before`` then have that sign too.
    """
    enter(sums, a * STRIDE, games, w, e, eta, before)
    enter(sums, b * STRIDE, games, w, -e, eta, -before)
    if h != 0.0:
        enter(sums, 0, games, w, e * h, eta, before * h)
    enter(total, 0, games, w, e, eta, before)


def account(
    loss: Loss,
    sums: Floats,
    total: Floats,
    a: int,
    b: int,
    h: float,
    o: float,
    p: float,
    y: float,
    w: float,
    eta: float,
    unit: float,
) -> None:
    """Enter a game that was played: all its sums, the variances of both ratings, the log loss."""
    e = w * (p - y)
    slope = w * (p * (1.0 - p))
    count(sums, total, a, b, h, 1.0, w, e, eta, w * (0.5 - y))
    widen(sums, a * STRIDE + VARIANCE, e, eta, slope, unit)
    widen(sums, b * STRIDE + VARIANCE, -e, eta, slope, unit)
    if h != 0.0:
        widen(sums, VARIANCE, e * h, eta, slope * (h * h), unit)
    total[OFFSET] = max(total[OFFSET], abs(o))
    judge(loss, total, p, y, w)


def margin(rule: Rule, u: Floats, marks: Floats, notes: Floats, a: int, b: int, h: float) -> float:
    """u_a - u_b + h u_0."""
    gap = rule.read(u, a, marks, notes) - rule.read(u, b, marks, notes)
    return gap + h * rule.read(u, 0, marks, notes)


def shift(
    rule: Rule,
    u: Floats,
    drags: Floats,
    pulls: Floats,
    marks: Floats,
    notes: Floats,
    j: int,
    down: float,
) -> None:
    """Move the rating of j down by ``down``."""
    rule.touch(u, j, drags, pulls, marks, notes)
    u[j] = u[j] - down / rule.unit(notes)


def move(
    rule: Rule,
    u: Floats,
    drags: Floats,
    pulls: Floats,
    marks: Floats,
    notes: Floats,
    a: int,
    b: int,
    h: float,
    eta: float,
    e: float,
) -> None:
    """Move both players and the first side against the error e."""
    shift(rule, u, drags, pulls, marks, notes, a, eta * e)
    shift(rule, u, drags, pulls, marks, notes, b, -(eta * e))
    if h != 0.0:
        shift(rule, u, drags, pulls, marks, notes, 0, eta * (e * h))


def learn(
    rule: Rule,
    loss: Loss,
    u: Floats,
    sums: Floats,
    total: Floats,
    drags: Floats,
    pulls: Floats,
    marks: Floats,
    notes: Floats,
    a: int,
    b: int,
    h: float,
    o: float,
    p: float,
    y: float,
    w: float,
    eta: float,
) -> None:
    """Move both players (and the first side) against the error of one game, and enter it."""
    rule.before(eta, notes)
    move(rule, u, drags, pulls, marks, notes, a, b, h, eta, w * (p - y))
    account(loss, sums, total, a, b, h, o, p, y, w, eta, rule.unit(notes))
    rule.after(eta, notes)
    if rule.spent(notes):
        write_out(rule, u, sums, drags, pulls, marks, notes)


def amend(
    rule: Rule,
    loss: Loss,
    u: Floats,
    sums: Floats,
    total: Floats,
    drags: Floats,
    pulls: Floats,
    marks: Floats,
    notes: Floats,
    a: int,
    b: int,
    h: float,
    p: float,
    y: float,
    w: float,
    eta: float,
    sign: float,
) -> None:
    """Take one score back (sign -1), or put one in its place: ratings and sums, no penalty, no variance."""
    e = sign * (w * (p - y))
    move(rule, u, drags, pulls, marks, notes, a, b, h, eta, e)
    count(sums, total, a, b, h, sign, sign * w, e, eta, sign * (w * (0.5 - y)))
    total[LOSS] = total[LOSS] + sign * (w * loss.value(p, y))


def write_out(
    rule: Rule,
    u: Floats,
    sums: Floats,
    drags: Floats,
    pulls: Floats,
    marks: Floats,
    notes: Floats,
) -> None:
    """Bring every rating up to date and multiply the common factor into it; begin again from 1."""
    unit = rule.unit(notes)
    for j in range(len(u)):
        rule.touch(u, j, drags, pulls, marks, notes)
        u[j] = u[j] * unit
        at = j * STRIDE + VARIANCE
        sums[at] = sums[at] * (unit * unit)
        marks[2 * j] = 0.0
        marks[2 * j + 1] = 0.0
    notes[0] = 1.0
    notes[1] = 0.0
    notes[2] = 0.0


def played(
    rule: Rule,
    loss: Loss,
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
    drags: Floats,
    pulls: Floats,
    marks: Floats,
    notes: Floats,
    served: Floats,
) -> None:
    """Scores in any order: before game i is served, posts[: cuts[i]] have been learned from, each as it was served.

    Games before ``first`` were served in an earlier run: their ``served`` is given.
    """
    p = 0
    for i in range(first, len(a) + 1):
        due = cuts[i] if i < len(a) else len(posts)
        while p < due:
            k = posts[p]
            learn(
                rule, loss, u, sums, total, drags, pulls, marks, notes, a[k], b[k], home[k], 0.0,
                served[k], scores[k], weights[k], etas[k],
            )  # fmt: skip
            p += 1
        if i < len(a):
            served[i] = win_chance(margin(rule, u, marks, notes, a[i], b[i], home[i]))


def learn_dense(
    loss: Loss,
    slopes: Floats,
    u: Floats,
    sums: Floats,
    total: Floats,
    drags: Floats,
    pulls: Floats,
    a: int,
    b: int,
    h: float,
    p: float,
    y: float,
    w: float,
    eta: float,
) -> None:
    """As ``learn``, with the slopes of a penalty that moves every parameter; ``slopes`` is used up."""
    e = w * (p - y)
    for j in range(len(u)):
        pulls[j] = pulls[j] + slopes[j]
        drags[j] = drags[j] + eta * slopes[j]
    slopes[a] = slopes[a] + e
    slopes[b] = slopes[b] - e
    slopes[0] = slopes[0] + e * h
    for j in range(len(u)):
        u[j] = u[j] - eta * slopes[j]
    account(loss, sums, total, a, b, h, 0.0, p, y, w, eta, 1.0)


def played_dense(
    penalty: Penalty,
    loss: Loss,
    home: Floats,
    a: Ints,
    b: Ints,
    scores: Floats,
    weights: Floats,
    etas: Floats,
    u: Floats,
    sums: Floats,
    total: Floats,
    drags: Floats,
    pulls: Floats,
    slopes: Floats,
    served: Floats,
) -> None:
    """Scores at once or missing (nan), with a penalty whose subgradient moves every parameter (paper Section 3)."""
    for i in range(len(a)):
        j, k, h, y, w = a[i], b[i], home[i], scores[i], weights[i]
        p = win_chance((u[j] - u[k]) + h * u[0])
        served[i] = p
        if y == y and w > 0.0:
            for m in range(len(u)):
                slopes[m] = penalty.slope(u[m])
            learn_dense(loss, slopes, u, sums, total, drags, pulls, j, k, h, p, y, w, etas[i])


def offset(p: float) -> float:
    """The logit of a base probability, clipped: what it adds to the margin."""
    return logit(clipped(p))
