"""Conformal P and PI control: Angelopoulos, Candès and Tibshirani, "Conformal PID control for time series prediction"
(2023), without a scorecaster.

    P:   q <- q + eta_t (1{s > q} - alpha),  eta_t = 0.1 times the range of the last 100 scores
    PI:  what is served is q + K tan(x log(t + 1) / (C (t + 1))), x the sum of all 1{s > served} - alpha; C as they
         advise for the length of the stream and a slack of 0.01, K the largest |score| of the warm-up
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from benchmarks.online.window import Window

STEP, RANGE, SLACK = 0.1, 100, 0.01


def tracked(scores: Sequence[float], level: float, warm: int) -> list[float]:
    """P alone: the quantile tracker with a step in units of the scores' range."""
    return controlled(scores, level, 0.0)


def pid(scores: Sequence[float], level: float, warm: int) -> list[float]:
    """P and I."""
    return controlled(scores, level, max(map(abs, scores[:warm])))


def controlled(scores: Sequence[float], level: float, gain: float) -> list[float]:
    """The thresholds that are served."""
    alpha, q, missed, window = 1.0 - level, 0.0, 0.0, Window(RANGE)
    length = math.log(len(scores))
    saturation = 2.0 / math.pi * (math.ceil(length * SLACK) - 1.0 / length)
    found = []
    for t, score in enumerate(scores, 1):
        served = q
        if gain:
            angle = missed * math.log(t + 1) / (saturation * (t + 1))
            edge = math.pi / 2.0
            served += gain * math.tan(angle) if abs(angle) < edge else math.copysign(math.inf, angle)
        found.append(served)
        off = (score > served) - alpha
        missed += off
        window.add(score)
        q += STEP * (window.sorted[-1] - window.sorted[0]) * off
    return found
