"""Dynamically tuned ACI: Gibbs and Candès, "Conformal inference for online prediction with arbitrary distribution
shifts" (2022), Algorithm 1: eight step sizes, weighted by the pinball loss of their a_t against beta_t, the largest
alpha that would have covered; their eta and sigma for intervals of 500 rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from benchmarks.online.window import Window

GAMMAS = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128)
SPAN = 500


def dtaci(scores: Sequence[float], level: float, warm: int) -> list[float]:
    """The thresholds at the weighted mean of the experts' a_t."""
    alpha, count = 1.0 - level, len(GAMMAS)
    sigma = 1.0 / (2.0 * SPAN)
    spread = level**2 * alpha**3 + alpha**2 * level**3
    eta = math.sqrt(3.0 / SPAN * (math.log(count * SPAN) + 2.0) / spread)
    window, found = Window(), []
    experts, weights = [alpha] * count, [1.0 / count] * count
    for score in scores:
        found.append(window.quantile(1.0 - sum(w * a for w, a in zip(weights, experts, strict=True))))
        beta = window.share_at_least(score)
        losses = [alpha * (beta - a) - min(0.0, beta - a) for a in experts]
        moved = [w * math.exp(-eta * own) for w, own in zip(weights, losses, strict=True)]
        total = sum(moved)
        weights = [(1.0 - sigma) * w / total + sigma / count for w in moved]
        experts = [a + gamma * (alpha - (beta < a)) for a, gamma in zip(experts, GAMMAS, strict=True)]
        window.add(score)
    return found
