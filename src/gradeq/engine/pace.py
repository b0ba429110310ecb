"""The steps that were taken: smallest, largest, and how many the late-label cap held down."""

from __future__ import annotations

import math

from gradeq.kernels.loops import cap
from gradeq.schedules import Schedule


class Pace:
    """Smallest and largest step so far, the number of rows whose step was capped, and changes by hand.

    ``jumps`` is the sum of |1 / new - 1 / old| over the steps that were set mid-life (result 1.2 needs it).
    """

    __slots__ = ("held", "high", "jumps", "low")

    def __init__(
        self, low: float = math.inf, high: float = 0.0, held: int = 0, jumps: float = 0.0
    ) -> None:
        self.low, self.high, self.held, self.jumps = low, high, held, jumps

    def step(self, schedule: Schedule, t: int, limit: float, crowd: float) -> float:
        """The step at time t, capped at limit / crowd, noted here."""
        wanted = schedule.step(t)
        eta = cap(wanted, limit, crowd)
        self.note(eta, eta, int(eta < wanted))
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
