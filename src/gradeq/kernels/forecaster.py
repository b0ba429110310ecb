"""The loop of Elo's forecaster: filters that expect strengths to drift, mixed by log loss; one step on the logit.

Each filter keeps a strength u and its variance P for every player (Glicko without periods, a diagonal Kalman filter);
before a game the variances of its players grow by what the filter expects of drift. Entry j * FILTERS + k of
``experts`` and ``spreads`` is that of player j by filter k; those of parameter 0 are the first side's. A memo is what
each filter said, then their mix.
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

# Variance (log-odds squared) that a filter expects of a strength to gain in one game of its own; the first: none.
DRIFTS = (0.0, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2)
FILTERS = 6
MEMO = FILTERS + 1
NEWCOMER = 0.6  # variance of a player never seen; none grows beyond it
SIDE_DRIFT = 1e-5  # variance that the first side gains in a game
WIDER = math.pi / 8.0  # P(win) under a normal margin is about sigmoid(x / sqrt(1 + pi S / 8))


def spread(drifts: Floats, kept: Any, j: int, k: int) -> float:
    """The variance of player j by filter k, once it has drifted for one more game."""
    return min(NEWCOMER, kept.spreads[j * FILTERS + k] + drifts[k])  # type: ignore[no-any-return]


def speak(drifts: Floats, kept: Any, a: int, b: int, h: float, memo: Floats) -> float:
    """What each filter says and their mix, noted in ``memo``."""
    experts, spreads, losses = kept.experts, kept.spreads, kept.losses
    least = losses[0]
    for k in range(1, FILTERS):
        if losses[k] < least:
            least = losses[k]
    mass, mix = 0.0, 0.0
    for k in range(FILTERS):
        s = spread(drifts, kept, a, k) + spread(drifts, kept, b, k)
        if h != 0.0:
            s = s + (h * h) * (spreads[k] + SIDE_DRIFT)
        x = gap(experts, a * FILTERS + k, b * FILTERS + k, k, h)
        memo[k] = win_chance(x / math.sqrt(1.0 + WIDER * s))
        share = math.exp(least - losses[k])
        mass = mass + share
        mix = mix + share * memo[k]
    memo[FILTERS] = clipped(mix / mass)
    return memo[FILTERS]  # type: ignore[no-any-return]


def hear(loss: Loss, drifts: Floats, kept: Any, game: Any, memo: Floats) -> None:
    """Each filter learns from a score, with the strengths of this moment; the loss is of what it had said."""
    a, b, h, y, w, _ = game
    experts, spreads, losses = kept.experts, kept.spreads, kept.losses
    for k in range(FILTERS):
        losses[k] = losses[k] + w * loss.value(memo[k], y)
        at, to = a * FILTERS + k, b * FILTERS + k
        one, two = spread(drifts, kept, a, k), spread(drifts, kept, b, k)
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


def forecast(loss: Loss, drifts: Floats, kept: Any, game: Any, p: float, memo: Floats) -> None:
    """Learn from a game served as p: the step on the mix, which carries the certificate, and every filter."""
    step(loss, kept, game, offset(memo[FILTERS]), p)
    hear(loss, drifts, kept, game, memo)


@dataclass(frozen=True)
class Filters:
    """A way to play games (``rating.played``); one memo is enough when every score is at once, else each has one."""

    drifts: tuple[float, ...]

    def chance(self, pull: Pull, kept: Any, a: int, b: int, h: float, i: int) -> float:
        """The probability that a wins game i."""
        o = offset(speak(self.drifts, kept, a, b, h, kept.memos[i % len(kept.memos)]))
        return win_chance(o + gap(kept.u, a, b, 0, h))

    def learn(
        self, pull: Pull, penalty: Penalty, loss: Loss, kept: Any, game: Any, p: float, i: int
    ) -> None:
        """Learn from game i, served as p."""
        forecast(loss, self.drifts, kept, game, p, kept.memos[i % len(kept.memos)])
