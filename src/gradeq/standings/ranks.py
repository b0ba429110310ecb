"""Which ranks are left open: Holm's ladder over each player's differences, and whether the leader is verified."""

from __future__ import annotations

from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from gradeq.standings.sparse import Common

WIDTH = 1.959963984540054  # standard errors on each side: 95 %


class Ranks(NamedTuple):
    """Position and open range of each player, and the least t of the leader against another (nan: nobody else)."""

    rank: Any
    low: Any
    high: Any
    least: float

    @property
    def verified(self) -> bool:
        """Whether the leader is surely first (winner against runner-up: no multiplicity is needed)."""
        return self.least > WIDTH


def ladder(k: int) -> Any:
    """The critical values of Holm's ladder for k differences to one player, never below 1.96."""
    inverse = NormalDist().inv_cdf
    return np.array([max(WIDTH, inverse(1.0 - 0.05 / (k - r))) for r in range(k)])


def reached(sizes: Any, steps: Any) -> float:
    """The critical value that the ladder ends at: what is larger is rejected.

    All that exceed a value are rejected, so the ladder may go down by as many steps at once.
    """
    gone = 0
    while gone < len(steps):
        more = int(np.count_nonzero(sizes > steps[gone]))
        if more == gone:
            break
        gone = more
    return float(steps[min(gone, len(steps) - 1)])


def row(covariance: Any, r: int) -> Any:
    """Row r of a matrix, or of what makes rows when they are asked for."""
    return covariance.row(r) if isinstance(covariance, Common) else covariance[r]


def ranks(z: Any, variances: Any, covariance: Any = None) -> Ranks:
    """Of players who all have a rank. Without a covariance their estimates count as independent.

    Two players surely differ if the ladders of both say so: one relation, without contradictions. Each player's range
    holds its true rank with 95 %.
    """
    m = len(z)
    position = 1 + np.searchsorted(np.sort(-z), -z, "left")
    if m < 2:
        return Ranks(position, position.copy(), position.copy(), float("nan"))

    def compared(r: int) -> Any:
        shared = 0.0 if covariance is None else 2.0 * row(covariance, r)
        t = (z[r] - z) / np.sqrt(np.maximum(variances[r] + variances - shared, 1e-18))
        t[r] = 0.0
        return t

    steps = ladder(m - 1)
    ends = np.array([reached(np.abs(compared(r)), steps) for r in range(m)])
    low, high = np.ones(m, dtype=np.int64), np.full(m, m)
    for r in range(m):
        t = compared(r)
        sure = np.abs(t) > np.maximum(ends, ends[r])
        low[r] += np.count_nonzero(sure & (t < 0.0))
        high[r] -= np.count_nonzero(sure & (t > 0.0))
    lead = int(np.argmax(z))
    others = np.arange(m) != lead
    least = float(np.min(compared(lead)[others]))
    if least > WIDTH:
        high[lead] = 1
        low[others] = np.maximum(low[others], 2)
    return Ranks(position, low, high, least)
