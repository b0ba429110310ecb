"""Sums of exponentials and Lambert's W, kept in logarithms so that nothing overflows."""

from __future__ import annotations

import math


def logaddexp(a: float, b: float) -> float:
    """log(e^a + e^b); either may be minus infinity.

    >>> logaddexp(1000.0, 1000.0) == 1000.0 + math.log(2.0)
    True
    """
    high, low = max(a, b), min(a, b)
    if low == -math.inf or high == math.inf:
        return high
    return high + math.log1p(math.exp(low - high))


def log_or_minus_infinity(x: float) -> float:
    """log(x), with log(0) = minus infinity.

    >>> log_or_minus_infinity(0.0)
    -inf
    """
    return math.log(x) if x > 0.0 else -math.inf


def exp_or_infinity(u: float) -> float:
    """e^u, infinite where a float cannot hold it.

    >>> exp_or_infinity(1e6)
    inf
    """
    return math.exp(u) if u < 709.0 else math.inf


def lambert_of_exp(a: float) -> float:
    """W0(e^a): the root w of w + log w = a, found without forming e^a.

    >>> round(lambert_of_exp(-1.0), 12)
    0.278464542761
    """
    if a < -30.0:
        return math.exp(a)
    w = a - math.log(a) if a > 2.0 else math.exp(min(a, 0.0)) * 0.5 + 0.1
    for _ in range(60):
        # Newton on log w as the variable: v + e^v = a is convex, so the iteration cannot leave w > 0.
        v = math.log(w)
        step = (v + w - a) / (1.0 + w)
        w = math.exp(v - step)
        if abs(step) < 1e-16:
            break
    return w
