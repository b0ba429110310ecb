"""The loop of Elo's automatic step: seven ratings mixed by their log loss, then one step on the logit of the mix.

``experts`` are flat: entry j * EXPERTS + k is the rating of player j by expert k. A memo is what each expert said,
then their mix.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from gradeq.kernels.account import Floats
from gradeq.kernels.mixing import blend, weigh
from gradeq.kernels.rating import gap, move, offset, step, win_chance
from gradeq.kernels.rating_rules import Pull
from gradeq.losses import Loss
from gradeq.penalties import Penalty

EXPERTS = 7
MEMO = EXPERTS + 1
SHOWN = 4  # the expert whose ratings are shown; the variances are its own
BAYES = math.log(EXPERTS)  # with this Delta weights are exp(-L_k): those of Bayes for log loss


def speak(kept: Any, a: int, b: int, h: float, shares: Floats, memo: Floats) -> float:
    """What each expert says and their mix, noted in ``memo``; ``shares`` is scratch."""
    for i in range(EXPERTS):
        memo[i] = win_chance(gap(kept.experts, a * EXPERTS + i, b * EXPERTS + i, i, h))
    weigh(kept.losses, BAYES, math.inf, shares)
    memo[EXPERTS] = blend(shares, memo, 0)
    return memo[EXPERTS]  # type: ignore[no-any-return]


def hear(loss: Loss, rates: Floats, kept: Any, game: Any, memo: Floats) -> None:
    """Each expert moves by its own error, by its own rate or by eta if that is less; losses add up."""
    a, b, h, y, w, eta = game
    variances, losses = kept.variances, kept.losses
    for i in range(EXPERTS):
        p, rate = memo[i], min(rates[i], eta)
        e = w * (p - y)
        move(kept.experts, a * EXPERTS + i, b * EXPERTS + i, i, h, rate, e, 1.0)
        if i == SHOWN:
            keep, noise = 1.0 - rate * (w * (p * (1.0 - p))), rate * e
            variances[a] = keep * keep * variances[a] + noise * noise
            variances[b] = keep * keep * variances[b] + noise * noise
        losses[i] = losses[i] + loss.value(p, y)


def mixed(
    loss: Loss, rates: Floats, last: float, kept: Any, game: Any, p: float, memo: Floats
) -> None:
    """Learn from a game served as p: the step on the mix is ``last``, or that of the label if less."""
    a, b, h, y, w, eta = game
    step(loss, kept, (a, b, h, y, w, min(last, eta)), offset(memo[EXPERTS]), p)
    hear(loss, rates, kept, game, memo)


@dataclass(frozen=True)
class Mix:
    """A way to play games (``rating.played``); one memo is enough when every score is at once, else each has one."""

    rates: tuple[float, ...]
    last: float

    def chance(self, pull: Pull, kept: Any, a: int, b: int, h: float, i: int) -> float:
        """The probability that a wins game i."""
        o = offset(speak(kept, a, b, h, kept.shares, kept.memos[i % len(kept.memos)]))
        return win_chance(o + gap(kept.u, a, b, 0, h))

    def learn(
        self, pull: Pull, penalty: Penalty, loss: Loss, kept: Any, game: Any, p: float, i: int
    ) -> None:
        """Learn from game i, served as p."""
        mixed(loss, self.rates, self.last, kept, game, p, kept.memos[i % len(kept.memos)])
