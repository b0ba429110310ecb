"""Penalties in proximal form: the step is taken first, then the penalty, exactly.

Unlike the subgradient form of ``gradeq.penalties`` they set parameters to exactly zero (soft threshold) and are
stable for any strength (shrink). The normal part of the certificate is the penalty's slope at the new parameters.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from gradeq.errors import BadInput
from gradeq.geometries.geometry import Floats, copy

LAZY_BECAUSE = "the penalty belongs to each step: taken once on the sum it would hardly count"


@dataclass(frozen=True)
class SoftThreshold:
    """The lasso in proximal form, r = strength ||theta||_1: each step ends with a threshold of eta strength.

    >>> out = [0.0, 0.0]
    >>> SoftThreshold(1.0).primal([3.0, -0.25], 0.5, out)
    >>> out
    [2.5, 0.0]
    """

    strength: float
    lazy_is_sound: ClassVar[bool] = False
    lazy_because: ClassVar[str] = LAZY_BECAUSE

    def __post_init__(self) -> None:
        object.__setattr__(self, "strength", float(self.strength))
        _check_strength("SoftThreshold", self.strength)

    def check(self, dimension: int) -> None:
        """Any number of parameters fits."""

    def dual(self, theta: Floats, out: Floats) -> None:
        """theta."""
        copy(theta, out)

    def primal(self, z: Floats, eta: float, out: Floats) -> None:
        """z moved towards zero by eta strength, and to zero if it is nearer."""
        cut = eta * self.strength
        for j in range(len(z)):
            out[j] = max(0.0, z[j] - cut) + min(0.0, z[j] + cut)


@dataclass(frozen=True)
class Shrink:
    """The ridge in proximal form, r = (strength / 2) ||theta||^2: each step ends divided by 1 + eta strength.

    >>> out = [0.0]
    >>> Shrink(1.0).primal([3.0], 0.5, out)
    >>> out
    [2.0]
    """

    strength: float
    lazy_is_sound: ClassVar[bool] = False
    lazy_because: ClassVar[str] = LAZY_BECAUSE

    def __post_init__(self) -> None:
        object.__setattr__(self, "strength", float(self.strength))
        _check_strength("Shrink", self.strength)

    def check(self, dimension: int) -> None:
        """Any number of parameters fits."""

    def dual(self, theta: Floats, out: Floats) -> None:
        """theta."""
        copy(theta, out)

    def primal(self, z: Floats, eta: float, out: Floats) -> None:
        """z / (1 + eta strength)."""
        for j in range(len(z)):
            out[j] = z[j] / (1.0 + eta * self.strength)


def _check_strength(name: str, strength: float) -> None:
    if not 0.0 < strength < math.inf:
        raise BadInput(
            f"{name}(strength={strength}): strength must be positive and finite; use Euclidean() for none"
        )
