"""The steps that were taken: smallest, largest, and how many the late-label cap held down."""

from __future__ import annotations

import math

from gradeq.kernels.loops import cap
from gradeq.schedules import Schedule


class Pace:
    """Smallest and largest step so far, and the number of rows whose step was capped."""

    __slots__ = ("held", "high", "low")

    def __init__(self, low: float = math.inf, high: float = 0.0, held: int = 0) -> None:
        self.low, self.high, self.held = low, high, held

    def step(self, schedule: Schedule, t: int, limit: float, crowd: float) -> float:
        """The step at time t, capped at limit / crowd, noted here."""
        eta = cap(schedule.step(t), limit, crowd)
        self.note(eta, eta, int(crowd > 0.0 and eta * crowd <= limit * (1.0 + 1e-12)))
        return eta

    def note(self, low: float, high: float, held: int) -> None:
        """Steps between ``low`` and ``high`` were given out, ``held`` of them capped."""
        if low < self.low:
            self.low = low
        if high > self.high:
            self.high = high
        self.held += held

    @property
    def constant(self) -> bool:
        """Whether all steps so far were the same."""
        return self.low >= self.high
