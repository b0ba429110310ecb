"""Loops over games: plain Elo, penalties, drift."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from gradeq.kernels.account import BEFORE, GRADIENT, MOVED, WEIGHT, Floats, Ints
from gradeq.losses import Loss
from gradeq.numerics import logit
from gradeq.penalties import Penalty

# The account of a parameter is the five sums that every account begins with.
STRIDE = 5
# That of all games begins with them too. The log loss is LOSS - log(DECIDED) - log(TIED) / 2: likelihoods are
# multiplied up, and the logarithm is taken only when a product is small. OFFSET is the largest |offset| of a margin.
LOSS, DECIDED, TIED, OFFSET = range(5, 9)
TOTALS = 9
CLIP = 1e-6  # probabilities are judged within [CLIP, 1 - CLIP]
SMALL = 1e-200


Ratings = Any  # the buffers of a pass, or for one game the state itself: they have the same fields
Game = tuple[int, int, float, float, float, float]  # a, b, h, y, w, eta: see ``count``


class PassGames(NamedTuple):
    """What a pass reads of games, and ``served``, which it writes."""

    home: Floats
    a: Ints
    b: Ints
    scores: Floats
    weights: Floats
    etas: Floats
    served: Floats


class RatingBuffers(NamedTuple):
    """What a pass writes: ratings, accounts, what a penalty keeps (``rating_rules``), filters (``forecaster``).

    ``slopes``, ``memos`` and ``when`` are scratch; what a rule does not keep is empty.
    """

    u: Floats
    sums: Floats
    total: Floats
    drags: Floats
    pulls: Floats
    marks: Floats
    notes: Floats
    experts: Floats
    spreads: Floats
    taught: Floats
    last: Floats
    shares: Floats
    slopes: Floats
    memos: Floats
    when: Floats


def win_chance(m: float) -> float:
    """1 / (1 + exp(-m)), in the form without a branch on the sign of m, which is as hard to guess as the game."""
    return 1.0 / (1.0 + math.exp(-m if m > -700.0 else 700.0))


def clipped(p: float) -> float:
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
    """LOSS, DECIDED and TIED with one more game, without an unpredictable branch on the score."""
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
    return math.log(decided) + 0.5 * math.log(tied)


def enter(sums: Floats, at: int, n: float, w: float, g: float, eta: float, before: float) -> None:
    """Enter one game into the account that begins at ``at``: g and ``before`` are from this side, times w."""
    sums[at] = sums[at] + n
    sums[at + WEIGHT] = sums[at + WEIGHT] + w
    sums[at + GRADIENT] = sums[at + GRADIENT] + g
    sums[at + MOVED] = sums[at + MOVED] + eta * g
    sums[at + BEFORE] = sums[at + BEFORE] + before


def count(kept: Ratings, game: Game, n: float, e: float) -> None:
    """Enter one game into the accounts of both players, of the first side, and of all games.

    n is 1, or -1 to take a game back; its weight and e then have that sign too.
    """
    a, b, h, y, w, eta = game
    sums, total = kept.sums, kept.total
    even = w * (0.5 - y)
    enter(sums, a * STRIDE, n, w, e, eta, even)
    enter(sums, b * STRIDE, n, w, -e, eta, -even)
    if h != 0.0:
        enter(sums, 0, n, w, e * h, eta, even * h)
    total[0] = total[0] + n
    total[WEIGHT] = total[WEIGHT] + w
    total[GRADIENT] = total[GRADIENT] + e
    total[MOVED] = total[MOVED] + eta * e
    total[BEFORE] = total[BEFORE] + even


def account(loss: Loss, kept: Ratings, game: Game, o: float, p: float) -> None:
    """Enter a game that was played: all its sums, and the log loss."""
    _, _, _, y, w, _ = game
    total = kept.total
    count(kept, game, 1.0, w * (p - y))
    if abs(o) > total[OFFSET]:
        total[OFFSET] = abs(o)
    total[LOSS], total[DECIDED], total[TIED] = judged(loss, total[LOSS], total[DECIDED], total[TIED], p, y, w)


def gap(u: Floats, a: int, b: int, side: int, h: float) -> float:
    return (u[a] - u[b]) + h * u[side]


def move(u: Floats, a: int, b: int, side: int, h: float, eta: float, e: float, unit: float) -> None:
    """Move both players and the first side by eta against the error e; ``unit`` is that of the stored ratings."""
    down = eta * e / unit
    u[a] = u[a] - down
    u[b] = u[b] + down
    if h != 0.0:
        u[side] = u[side] - eta * (e * h) / unit


def step(loss: Loss, kept: Ratings, game: Game, o: float, p: float) -> None:
    """Move both players and the first side against the error of one game, and enter it; o is added to the margin."""
    a, b, h, y, w, eta = game
    move(kept.u, a, b, 0, h, eta, w * (p - y), 1.0)
    account(loss, kept, game, o, p)


def margin(pull: Pull, kept: Ratings, a: int, b: int, h: float) -> float:
    return (pull.read(kept, a) - pull.read(kept, b)) + h * pull.read(kept, 0)


def shift(pull: Pull, kept: Ratings, game: Game, e: float) -> None:
    """As ``move``, once what a penalty did to these ratings is in their accounts."""
    a, b, h, _, _, eta = game
    pull.touch(kept, a)
    pull.touch(kept, b)
    if h != 0.0:
        pull.touch(kept, 0)
    move(kept.u, a, b, 0, h, eta, e, pull.unit(kept))


def learn(pull: Pull, loss: Loss, kept: Ratings, game: Game, p: float) -> None:
    """As ``step``, under a penalty."""
    _, _, _, y, w, eta = game
    pull.before(kept, eta)
    shift(pull, kept, game, w * (p - y))
    account(loss, kept, game, 0.0, p)
    pull.after(kept, eta)
    if pull.unit(kept) < TINY:
        write_out(pull, kept)


def learn_dense(loss: Loss, slopes: Floats, kept: Ratings, game: Game, p: float) -> None:
    """The same with the slopes of a penalty that moves every parameter; ``slopes`` is used up."""
    a, b, h, y, w, eta = game
    u, e = kept.u, w * (p - y)
    for j in range(len(u)):
        kept.pulls[j] = kept.pulls[j] + slopes[j]
        kept.drags[j] = kept.drags[j] + eta * slopes[j]
    slopes[a] = slopes[a] + e
    slopes[b] = slopes[b] - e
    slopes[0] = slopes[0] + e * h
    for j in range(len(u)):
        u[j] = u[j] - eta * slopes[j]
    account(loss, kept, game, 0.0, p)


def amend(pull: Pull, loss: Loss, kept: Ratings, game: Game, p: float, sign: float) -> None:
    """Take one score back (sign -1), or put one in its place: ratings and sums, no penalty."""
    a, b, h, y, w, eta = game
    e = sign * (w * (p - y))
    shift(pull, kept, game, e)
    count(kept, (a, b, h, y, sign * w, eta), sign, e)
    kept.total[LOSS] = kept.total[LOSS] + sign * (w * loss.value(p, y))


def write_out(pull: Pull, kept: Ratings) -> None:
    """Bring every rating up to date and multiply the common factor into it; begin again from 1."""
    u, marks, notes, unit = kept.u, kept.marks, kept.notes, pull.unit(kept)
    for j in range(len(u)):
        pull.touch(kept, j)
        u[j] = u[j] * unit
        marks[2 * j] = 0.0
        marks[2 * j + 1] = 0.0
    notes[0] = 1.0
    notes[1] = 0.0
    notes[2] = 0.0


@dataclass(frozen=True)
class PulledRatings:
    """Games move two ratings, and a penalty all, without touching them."""

    def chance(self, pull: Pull, kept: Ratings, a: int, b: int, h: float, i: int) -> float:
        return win_chance(margin(pull, kept, a, b, h))

    def learn(self, pull: Pull, penalty: Penalty, loss: Loss, kept: Ratings, game: Game, p: float, i: int) -> None:
        learn(pull, loss, kept, game, p)


@dataclass(frozen=True)
class DensePenalty:
    """The subgradient of a penalty moves every parameter at every game (paper Section 3)."""

    def chance(self, pull: Pull, kept: Ratings, a: int, b: int, h: float, i: int) -> float:
        return win_chance(gap(kept.u, a, b, 0, h))

    def learn(self, pull: Pull, penalty: Penalty, loss: Loss, kept: Ratings, game: Game, p: float, i: int) -> None:
        """Learn from game i, served as p."""
        for j in range(len(kept.u)):
            kept.slopes[j] = penalty.slope(kept.u[j])
        learn_dense(loss, kept.slopes, kept, game, p)


def played(
    way: Any,
    pull: Pull,
    penalty: Penalty,
    loss: Loss,
    games: PassGames,
    kept: Ratings,
    first: int,
    cuts: Ints,
    posts: Ints,
) -> None:  # fmt: skip
    """Scores in any order: before game i is served, posts[: cuts[i]] have been learned from, each as it was served.

    Games before ``first`` were served in an earlier run: their ``served`` is given.
    """
    a, b, home, served, p = games.a, games.b, games.home, games.served, 0
    for i in range(first, len(a) + 1):
        due = cuts[i] if i < len(a) else len(posts)
        while p < due:
            k = posts[p]
            game = (a[k], b[k], home[k], games.scores[k], games.weights[k], games.etas[k])
            way.learn(pull, penalty, loss, kept, game, served[k], k)
            p += 1
        if i < len(a):
            served[i] = way.chance(pull, kept, a[i], b[i], home[i], i)


ROUND = 16  # games: their clipped likelihoods, squared, multiply to no less than 1e-192


def rated(a: Ints, b: Ints, scores: Floats, eta: float, u: Floats, served: Floats) -> None:
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


def swept_ratings(
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


NOTES = 3
MARKS = 2
TINY = 1e-4  # below, the common factor of the ridge is multiplied out, before its sums lose digits


@dataclass(frozen=True)
class UnpenalisedRatings:
    """No penalty: ratings are what is stored."""

    def read(self, kept: Ratings, j: int) -> float:
        return kept.u[j]

    def touch(self, kept: Ratings, j: int) -> None:
        return

    def before(self, kept: Ratings, eta: float) -> None:
        return

    after = before

    def unit(self, kept: Ratings) -> float:
        return 1.0


@dataclass(frozen=True)
class ScaledRidge:
    """The ridge by one common factor: every rating shrinks by 1 - eta strength at each game.

    notes: the factor, then the sums over games of strength times it, and of eta strength times it.
    """

    strength: float

    def read(self, kept: Ratings, j: int) -> float:
        return kept.notes[0] * kept.u[j]

    def touch(self, kept: Ratings, j: int) -> None:
        """Enter the shrinking since j was last touched."""
        u, drags, pulls, marks, notes = kept.u, kept.drags, kept.pulls, kept.marks, kept.notes
        pulls[j] = pulls[j] + u[j] * (notes[1] - marks[2 * j])
        drags[j] = drags[j] + u[j] * (notes[2] - marks[2 * j + 1])
        marks[2 * j] = notes[1]
        marks[2 * j + 1] = notes[2]

    def before(self, kept: Ratings, eta: float) -> None:
        """Shrink everyone: the slope is taken at the ratings that served the game."""
        notes = kept.notes
        drawn = self.strength * notes[0]
        notes[1] = notes[1] + drawn
        notes[2] = notes[2] + eta * drawn
        notes[0] = notes[0] * (1.0 - eta * self.strength)

    def after(self, kept: Ratings, eta: float) -> None:
        return

    def unit(self, kept: Ratings) -> float:
        return kept.notes[0]


@dataclass(frozen=True)
class LazyLasso:
    """The lasso in proximal form: each game ends with a soft threshold of eta strength on every rating.

    Thresholds of an untouched rating add up, so they are taken in one go when it is next needed, exactly. notes: 1,
    then the sums over games of eta strength, and of strength.
    """

    strength: float

    def read(self, kept: Ratings, j: int) -> float:
        """u_j, moved towards zero by the thresholds since, and to zero if it is nearer."""
        u, cut = kept.u, kept.notes[1] - kept.marks[2 * j]
        return max(0.0, u[j] - cut) + min(0.0, u[j] + cut)

    def touch(self, kept: Ratings, j: int) -> None:
        """Take the thresholds since."""
        u, drags, pulls, marks, notes = kept.u, kept.drags, kept.pulls, kept.marks, kept.notes
        cut = notes[1] - marks[2 * j]
        if cut > 0.0:
            now = max(0.0, u[j] - cut) + min(0.0, u[j] + cut)
            taken = u[j] - now
            drags[j] = drags[j] + taken
            pulls[j] = pulls[j] + taken / cut * (notes[2] - marks[2 * j + 1])
            u[j] = now
        marks[2 * j] = notes[1]
        marks[2 * j + 1] = notes[2]

    def before(self, kept: Ratings, eta: float) -> None:
        return

    def after(self, kept: Ratings, eta: float) -> None:
        """Threshold everyone, when they are next read."""
        notes = kept.notes
        notes[1] = notes[1] + eta * self.strength
        notes[2] = notes[2] + self.strength

    def unit(self, kept: Ratings) -> float:
        return 1.0


Pull = UnpenalisedRatings | ScaledRidge | LazyLasso
