"""The probability simplex, with the Euclidean and with the entropic mirror map.

Neither projection sorts: dropping (or flooring) what falls below the threshold only moves the threshold further
the same way, so the active set shrinks to the exact one in at most d passes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from gradeq.errors import BadInput
from gradeq.geometries.geometry import Floats, copy

SMALLEST = 1e-300  # a weight below this would lose its digits, and at 0 could never return


@dataclass(frozen=True)
class Simplex:
    """Weights that are >= 0 and sum to 1; in equilibrium the gradients of weights in use average alike.

    Projection in the Euclidean distance: max(0, z - tau) with the tau that makes the sum 1.

    >>> out = [0.0, 0.0, 0.0]
    >>> Simplex().primal([1.0, 0.5, -3.0], 0.1, out)
    >>> out
    [0.75, 0.25, 0.0]
    """

    lazy_is_sound: ClassVar[bool] = False
    lazy_because: ClassVar[str] = (
        "the sum drifts across the simplex with every gradient that has a mean (result 8.7)"
    )

    def check(self, dimension: int) -> None:
        """Any number of weights fits."""

    def dual(self, theta: Floats, out: Floats) -> None:
        """theta."""
        copy(theta, out)

    def primal(self, z: Floats, eta: float, out: Floats) -> None:
        """max(0, z - tau)."""
        top = z[0]
        for j in range(len(z)):
            top = max(top, z[j])
        total = 0.0
        for j in range(len(z)):  # measured from the largest, so that no digits are lost far away
            out[j] = z[j] - top
            total = total + out[j]
        kept = len(z)
        tau = (total - 1.0) / kept
        settled = False
        while not settled:
            count = 0
            total = 0.0
            for j in range(len(z)):
                if out[j] > tau:
                    count = count + 1
                    total = total + out[j]
            settled = count >= kept
            if not settled:
                kept = count
                tau = (total - 1.0) / kept
        for j in range(len(z)):
            out[j] = max(0.0, out[j] - tau)


@dataclass(frozen=True)
class EntropicSimplex:
    """Weights >= ``floor`` that sum to 1, by exponentiated gradient and the exact Kullback-Leibler projection.

        dual = log theta        primal = max(floor, s e^z) with the s that makes the sum 1

    In equilibrium the gradients of weights above the floor average alike. With a floor the average of gradient
    plus normal part is at most D / (eta T) (result 7.3). ``floor=0`` is allowed, keeps weights above 1e-300 so
    that they can return, and has no guarantee: the mirror map is unbounded on the whole simplex.

    >>> out = [0.0, 0.0]
    >>> EntropicSimplex(0.1).primal([0.0, -50.0], 0.1, out)
    >>> out
    [0.9, 0.1]
    """

    floor: float = 0.0
    lazy_is_sound: ClassVar[bool] = False
    lazy_because: ClassVar[str] = (
        "the sum of logarithms grows without limit, floor or no floor (result 8.7)"
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "floor", float(self.floor))
        if not 0.0 <= self.floor <= 0.5:
            raise BadInput(
                f"EntropicSimplex(floor={self.floor}): floor must lie in [0, 1/d] for d weights"
            )

    @property
    def has_guarantee(self) -> bool:
        """Whether a bound holds: only with a floor (result 7.3)."""
        return self.floor > 0.0

    def check(self, dimension: int) -> None:
        """At most 1 / floor weights."""
        if dimension * self.floor > 1.0:
            raise BadInput(
                f"EntropicSimplex(floor={self.floor}): {dimension} weights of at least the floor exceed 1; "
                f"use a floor of at most {1.0 / dimension:.6g}"
            )

    def dual(self, theta: Floats, out: Floats) -> None:
        """log theta."""
        for j in range(len(theta)):
            out[j] = math.log(max(SMALLEST, theta[j]))

    def primal(self, z: Floats, eta: float, out: Floats) -> None:
        """max(floor, s e^z)."""
        floor = max(SMALLEST, self.floor)
        top = z[0]
        for j in range(len(z)):
            top = max(top, z[j])
        total = 0.0
        for j in range(len(z)):  # the largest becomes 1: no overflow, and the rest may vanish
            out[j] = math.exp(z[j] - top)
            total = total + out[j]
        kept = len(z)
        s = 1.0 / total
        settled = False
        while not settled:
            count = 0
            total = 0.0
            for j in range(len(z)):
                if s * out[j] > floor:
                    count = count + 1
                    total = total + out[j]
            settled = count >= kept or count == 0
            if not settled:
                kept = count
                s = (1.0 - (len(z) - kept) * floor) / total
        for j in range(len(z)):
            out[j] = max(floor, s * out[j])
