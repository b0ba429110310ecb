"""The scores of late, sorted: quantiles of a trailing window."""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import deque

LENGTH = 500


class Window:
    """The last ``length`` scores."""

    def __init__(self, length: int = LENGTH) -> None:
        self.order: deque[float] = deque()
        self.sorted: list[float] = []
        self.length = length

    def add(self, score: float) -> None:
        """Take a score in; the oldest goes."""
        if len(self.order) == self.length:
            old = self.order.popleft()
            del self.sorted[bisect_left(self.sorted, old)]
        self.order.append(score)
        insort(self.sorted, score)

    def quantile(self, level: float) -> float:
        """The conformal quantile: of n scores the ceil((n + 1) level)-th, inf where there is none."""
        n = len(self.sorted)
        k = math.ceil((n + 1) * level)
        if k > n:
            return math.inf
        return self.sorted[k - 1] if k >= 1 else -math.inf

    def share_at_least(self, score: float) -> float:
        """The share of the scores that are as large as this one or larger."""
        return 1.0 - bisect_left(self.sorted, score) / max(1, len(self.sorted))
