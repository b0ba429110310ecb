"""Whether an error falls as the knob rises: asked at other knobs now and then, and seen from what came."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

FIRST, EVERY = 24, 32  # labels that are all asked about, then one in so many
SURE = 5  # labels that must say so
BLOCK, BLOCKS = 100, 4  # of labels whose errors do not depend on the knob by themselves
NAMED = "the error does not fall as theta rises, so theta runs away from its target"
REMEDY = "define the error so that a larger theta is the safer one, or give -theta to it"


@dataclass
class Direction:
    """An error of the user's, and what was seen of it: how often it fell with a larger knob, and rose."""

    error: Callable[[float, Any], float]
    target: float
    reach: float  # knobs as far as this are asked about at least
    start: float
    labels: int = 0
    fell: int = 0
    rose: int = 0
    blocks: list[tuple[float, float]] = field(default_factory=list)  # mean theta, mean error
    _theta: float = 0.0
    _errors: float = 0.0

    def __call__(self, theta: float, y: Any) -> float:
        """The error itself; now and then it is asked at two other knobs as well."""
        error = float(self.error(theta, y))
        self.labels += 1
        if self.labels <= FIRST or self.labels % EVERY == 0:
            self._ask(theta, y)
        self._theta, self._errors = self._theta + theta, self._errors + error
        if self.labels % BLOCK == 0:
            self.blocks = [*self.blocks, (self._theta / BLOCK, self._errors / BLOCK)][-BLOCKS:]
            self._theta = self._errors = 0.0
        return error

    def _ask(self, theta: float, y: Any) -> None:
        near = self.reach + abs(theta - self.start)
        try:
            with np.errstate(all="ignore"):
                for far in (near, 1e3 * near, 1e6 * near, 1e9 * near):
                    low, high = (float(self.error(theta + by, y)) for by in (-far, far))
                    if low != high:
                        break
        except Exception:  # the user's own function: what it cannot answer is not asked
            return
        self.fell += high < low
        self.rose += high > low

    @property
    def reversed(self) -> bool:
        """Whether the error rises, or does not depend on theta and stays above its target while theta runs off."""
        if self.fell or self.rose:
            return self.rose >= SURE and self.rose > self.fell
        if len(self.blocks) < BLOCKS:
            return False
        thetas, errors = zip(*self.blocks, strict=True)
        rising = all(b > a for a, b in pairwise(thetas))
        above = min(errors) > self.target and errors[-1] >= errors[0]
        return rising and above and errors[-1] > (1.0 + self.target) / 2.0
