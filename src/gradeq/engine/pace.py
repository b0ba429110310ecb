"""The steps that were taken: smallest, largest, and how many the late-label cap held down."""

from __future__ import annotations

import math
from collections.abc import Iterable

from gradeq.kernels.loops import cap
from gradeq.schedules import Schedule


class Pace:
    """Smallest and largest step so far, the number of rows whose step was capped, and how much steps varied.

    ``variation`` is the sum of |1 / eta_t - 1 / eta_{t-1}| in order of service, ``last`` the latest step; ``jumps``
    the part of it that came from steps set by hand (result 1.2 needs them where steps do not just fall).
    """

    __slots__ = ("held", "high", "jumps", "last", "low", "variation")

    def __init__(
        self,
        low: float = math.inf,
        high: float = 0.0,
        held: int = 0,
        jumps: float = 0.0,
        variation: float = 0.0,
        last: float = 0.0,
    ) -> None:
        self.low, self.high, self.held, self.jumps = low, high, held, jumps
        self.variation, self.last = variation, last

    def as_list(self) -> list[float]:
        """The arguments that make this pace anew."""
        return [self.low, self.high, self.held, self.jumps, self.variation, self.last]

    def step(
        self, schedule: Schedule, t: int, limit: float, crowd: float, size: float = 1.0
    ) -> float:
        """The step at time t over ``size``, capped at limit / crowd, noted here."""
        wanted = schedule.step(t) / size
        eta = cap(wanted, limit, crowd)
        if eta != self.last:
            self.note(eta, eta, 0)
            self.vary((eta,))
        if eta < wanted:
            self.held += 1
        return eta

    def vary(self, etas: Iterable[float]) -> None:
        """These steps were given out, one after the other."""
        for eta in etas:
            if self.last:
                self.variation += abs(1.0 / eta - 1.0 / self.last)
            self.last = eta

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
