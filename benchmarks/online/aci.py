"""Adaptive conformal inference: Gibbs and Candès, "Adaptive conformal inference under distribution shift" (2021).

q_t = quantile of the last scores at 1 - a_t,    a_{t+1} = a_t + gamma (alpha - 1{s_t > q_t}),    gamma = 0.005
"""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.online.window import Window

GAMMA = 0.005


def aci(scores: Sequence[float], level: float, warm: int) -> list[float]:
    """The thresholds; infinite where a_t fell below 0."""
    window, found, alpha = Window(), [], 1.0 - level
    own = alpha
    for score in scores:
        q = window.quantile(1.0 - own)
        found.append(q)
        own += GAMMA * (alpha - (score > q))
        window.add(score)
    return found
