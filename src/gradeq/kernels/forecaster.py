"""The loop of Elo's forecaster: filters that expect strengths to drift, mixed by log loss; one step on the logit.

Each filter keeps a strength u and its variance P for every player (Glicko without periods, a diagonal Kalman filter);
before a game the variances of its players grow by what the filter expects of drift, in a game or in the years since
the last one. Of K filters entry j K + k of ``experts`` and ``spreads`` is that of player j by filter k; those of
parameter 0 are the first side's. A memo is what each filter said, their mix, and when the game was. ``shares`` are
products of likelihoods, only their ratios matter: no exponential or logarithm is needed to mix.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from gradeq.kernels.account import Floats, Ints
from gradeq.kernels.rating import Pull, clipped, gap, offset, step, tie, win_chance
from gradeq.losses import Loss
from gradeq.penalties import Penalty

NO_DATE = -1e6  # years: of a game without a date, and of the last game of a newcomer
NEWCOMER = 0.6  # variance of a player never seen; none grows beyond it
SIDE_DRIFT = 1e-5  # variance that the first side gains in a game
WIDER = math.pi / 8.0  # P(win) under a normal margin is about sigmoid(x / sqrt(1 + pi S / 8))
FEW, MANY = 1e-100, 1e100  # the largest share stays between these
HEAVY = 20.0  # games of weight 1 that a heavier one counts for, as far as strengths go
LEAST = 1e-150  # share of the largest that every filter keeps, so that none is lost for good


def since(kept: Any, j: int, t: float) -> float:
    return max(0.0, t - kept.last[j])


def spread(games: Floats, years: Floats, spreads: Floats, at: int, k: int, gone: float) -> float:
    """The variance at this place by filter k, once it has drifted for one more game and the years gone."""
    return min(NEWCOMER, spreads[at] + (games[k] + years[k] * gone))


def speak(games: Floats, years: Floats, kept: Any, a: int, b: int, h: float, t: float, memo: Floats) -> float:
    """What each filter says and their mix, noted in ``memo``."""
    experts, spreads, shares, filters = kept.experts, kept.spreads, kept.shares, len(games)
    mass, mix = 0.0, 0.0
    idle, rest = since(kept, a, t), since(kept, b, t)
    for k in range(filters):
        at, to = a * filters + k, b * filters + k
        s = spread(games, years, spreads, at, k, idle) + spread(games, years, spreads, to, k, rest)
        if h != 0.0:
            s = s + (h * h) * (spreads[k] + SIDE_DRIFT)
        x = gap(experts, at, to, k, h)
        memo[k] = win_chance(x / math.sqrt(1.0 + WIDER * s))
        mass = mass + shares[k]
        mix = mix + shares[k] * memo[k]
    memo[filters] = clipped(mix / mass)
    memo[filters + 1] = t
    return memo[filters]


def least_loss(loss: Loss, memo: Floats, filters: int, y: float, w: float) -> float:
    """That of the best filter, where likelihoods are relative to it: a heavy game would leave zeros."""
    t = tie(y)
    if w == 1.0 and t * (1.0 - t) == 0.0:
        return 0.0
    least = loss.value(memo[0], y)
    for k in range(1, filters):
        least = min(least, loss.value(memo[k], y))
    return least


def likelihood(loss: Loss, p: float, y: float, w: float, least: float) -> float:
    """exp(-w (log loss - least)), never 0; of a win, a loss or a tie without an exponential."""
    t, q = tie(y), clipped(p)
    if w == 1.0 and t == 0.0:
        return 1.0 - abs(q - y)
    if w == 1.0 and t == 1.0:
        return math.sqrt(q * (1.0 - q))
    return max(LEAST, math.exp(-w * (loss.value(p, y) - least)))


def balance(shares: Floats, filters: int) -> None:
    """Keep shares within reach of floats."""
    most = shares[0]
    for k in range(1, filters):
        if shares[k] > most:
            most = shares[k]
    if not FEW < most < MANY:
        for k in range(filters):
            shares[k] = max(shares[k] / most, LEAST)


def hear(loss: Loss, games: Floats, years: Floats, kept: Any, game: Any, memo: Floats) -> None:
    """Each filter learns from a score, with the strengths of this moment; the loss is of what it had said."""
    a, b, h, y, w, _ = game
    experts, spreads, shares, filters = kept.experts, kept.spreads, kept.shares, len(games)
    t = memo[filters + 1]
    idle, rest = since(kept, a, t), since(kept, b, t)
    least = least_loss(loss, memo, filters, y, w)
    heard = min(w, HEAVY)
    for k in range(filters):
        own = likelihood(loss, memo[k], y, w, least)
        shares[k] = shares[k] * own
        at, to = a * filters + k, b * filters + k
        one = spread(games, years, spreads, at, k, idle)
        two = spread(games, years, spreads, to, k, rest)
        s = one + two
        side = 0.0
        if h != 0.0:
            side = spreads[k] + SIDE_DRIFT
            s = s + (h * h) * side
        r = win_chance(gap(experts, at, to, k, h))
        known = heard * (r * (1.0 - r))
        kept_back = 1.0 / (1.0 + known * s)
        down, known = kept_back * (heard * (r - y)), known * kept_back
        experts[at] = experts[at] - one * down
        experts[to] = experts[to] + two * down
        spreads[at] = one - one * one * known
        spreads[to] = two - two * two * known
        if h != 0.0:
            experts[k] = experts[k] - side * h * down
            spreads[k] = side - side * side * (h * h) * known
    balance(shares, filters)
    kept.taught[a] = kept.taught[a] + w
    kept.taught[b] = kept.taught[b] + w
    kept.last[a] = max(kept.last[a], t)
    kept.last[b] = max(kept.last[b], t)


def amend(loss: Loss, filters: int, kept: Any, y: float, w: float, sign: float, memo: Floats) -> None:
    """Take back what a score said about the filters (sign -1), or say it of another; they learn nothing."""
    least = least_loss(loss, memo, filters, y, w)
    for k in range(filters):
        own = likelihood(loss, memo[k], y, w, least)
        kept.shares[k] = kept.shares[k] / own if sign < 0.0 else kept.shares[k] * own
    balance(kept.shares, filters)


class ScoredGames(NamedTuple):
    """Games in the order of their scores."""

    a: Ints
    b: Ints
    home: Floats
    scores: Floats
    weights: Floats
    when: Floats


class FilterWatch(NamedTuple):
    """What filters keep, and room for a memo."""

    experts: Floats
    spreads: Floats
    taught: Floats
    last: Floats
    shares: Floats
    memo: Floats


def watched(drifts: Filters, loss: Loss, games: ScoredGames, kept: FilterWatch) -> None:
    """Filters that nothing is served from: each says what it expects of a game, then hears its score."""
    memo = kept.memo
    for i in range(len(games.a)):
        a, b, h, y = games.a[i], games.b[i], games.home[i], games.scores[i]
        speak(drifts.games, drifts.years, kept, a, b, h, games.when[i], memo)
        hear(loss, drifts.games, drifts.years, kept, (a, b, h, y, games.weights[i], 0.0), memo)


def forecast(loss: Loss, games: Floats, years: Floats, kept: Any, game: Any, p: float, memo: Floats) -> None:
    """Learn from a game served as p: the step on the mix, which carries the certificate, and every filter."""
    step(loss, kept, game, offset(memo[len(games)]), p)
    hear(loss, games, years, kept, game, memo)


@dataclass(frozen=True)
class Filters:
    """A way to play games (``rating.played``); one memo is enough when every score is at once, else each has one.

    ``games``, ``years``: variances (log-odds squared) that each filter expects a strength to gain in one.
    """

    games: tuple[float, ...]
    years: tuple[float, ...]

    def chance(self, pull: Pull, kept: Any, a: int, b: int, h: float, i: int) -> float:
        """The probability that a wins game i."""
        memo = kept.memos[i % len(kept.memos)]
        o = offset(speak(self.games, self.years, kept, a, b, h, kept.when[i], memo))
        return win_chance(o + gap(kept.u, a, b, 0, h))

    def learn(self, pull: Pull, penalty: Penalty, loss: Loss, kept: Any, game: Any, p: float, i: int) -> None:
        """Learn from game i, served as p."""
        memo = kept.memos[i % len(kept.memos)]
        forecast(loss, self.games, self.years, kept, game, p, memo)
