"""The loop of Elo's forecaster: filters that expect strengths to drift, mixed by log loss; one step on the logit.

Each filter keeps a strength u and its variance P for every player (Glicko without periods, a diagonal Kalman filter);
before a game the variances of its players grow by what the filter expects of drift, in a game or in the years since
the last one. Of K filters entry j K + k of ``experts`` and ``spreads`` is that of player j by filter k; those of
parameter 0 are the first side's. A memo is what each filter said, their mix, and when the game was.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from gradeq.kernels.account import Floats
from gradeq.kernels.rating import clipped, gap, offset, step, win_chance
from gradeq.kernels.rating_rules import Pull
from gradeq.losses import Loss
from gradeq.penalties import Penalty

NO_DATE = -1e6  # years: of a game without a date, and of the last game of a newcomer
NEWCOMER = 0.6  # variance of a player never seen; none grows beyond it
SIDE_DRIFT = 1e-5  # variance that the first side gains in a game
WIDER = math.pi / 8.0  # P(win) under a normal margin is about sigmoid(x / sqrt(1 + pi S / 8))


def since(kept: Any, j: int, t: float) -> float:
    """Years from the last game of player j to t."""
    return max(0.0, t - kept.last[j])  # type: ignore[no-any-return]


def spread(games: Floats, years: Floats, spreads: Floats, at: int, k: int, gone: float) -> float:
    """The variance at this place by filter k, once it has drifted for one more game and the years gone."""
    return min(NEWCOMER, spreads[at] + (games[k] + years[k] * gone))  # type: ignore[no-any-return]


def speak(
    games: Floats, years: Floats, kept: Any, a: int, b: int, h: float, t: float, memo: Floats
) -> float:
    """What each filter says and their mix, noted in ``memo``."""
    experts, spreads, losses, filters = kept.experts, kept.spreads, kept.losses, len(games)
    least = losses[0]
    for k in range(1, filters):
        if losses[k] < least:
            least = losses[k]
    mass, mix = 0.0, 0.0
    idle, rest = since(kept, a, t), since(kept, b, t)
    for k in range(filters):
        at, to = a * filters + k, b * filters + k
        s = spread(games, years, spreads, at, k, idle) + spread(games, years, spreads, to, k, rest)
        if h != 0.0:
            s = s + (h * h) * (spreads[k] + SIDE_DRIFT)
        x = gap(experts, at, to, k, h)
        memo[k] = win_chance(x / math.sqrt(1.0 + WIDER * s))
        share = math.exp(least - losses[k])
        mass = mass + share
        mix = mix + share * memo[k]
    memo[filters] = clipped(mix / mass)
    memo[filters + 1] = t
    return memo[filters]  # type: ignore[no-any-return]


def hear(loss: Loss, games: Floats, years: Floats, kept: Any, game: Any, memo: Floats) -> None:
    """Each filter learns from a score, with the strengths of this moment; the loss is of what it had said."""
    a, b, h, y, w, _ = game
    experts, spreads, losses, filters = kept.experts, kept.spreads, kept.losses, len(games)
    t = memo[filters + 1]
    idle, rest = since(kept, a, t), since(kept, b, t)
    for k in range(filters):
        losses[k] = losses[k] + w * loss.value(memo[k], y)
        at, to = a * filters + k, b * filters + k
        one = spread(games, years, spreads, at, k, idle)
        two = spread(games, years, spreads, to, k, rest)
        s = one + two
        side = 0.0
        if h != 0.0:
            side = spreads[k] + SIDE_DRIFT
            s = s + (h * h) * side
        r = win_chance(gap(experts, at, to, k, h))
        known = w * (r * (1.0 - r))
        kept_back = 1.0 / (1.0 + known * s)
        down, known = kept_back * (w * (r - y)), known * kept_back
        experts[at] = experts[at] - one * down
        experts[to] = experts[to] + two * down
        spreads[at] = one - one * one * known
        spreads[to] = two - two * two * known
        if h != 0.0:
            experts[k] = experts[k] - side * h * down
            spreads[k] = side - side * side * (h * h) * known
    kept.taught[a] = kept.taught[a] + w
    kept.taught[b] = kept.taught[b] + w
    kept.last[a] = max(kept.last[a], t)
    kept.last[b] = max(kept.last[b], t)


def forecast(
    loss: Loss, games: Floats, years: Floats, kept: Any, game: Any, p: float, memo: Floats
) -> None:
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

    def learn(
        self, pull: Pull, penalty: Penalty, loss: Loss, kept: Any, game: Any, p: float, i: int
    ) -> None:
        """Learn from game i, served as p."""
        memo = kept.memos[i % len(kept.memos)]
        forecast(loss, self.games, self.years, kept, game, p, memo)
