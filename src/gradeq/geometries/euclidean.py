"""All of space, and the sets onto which projecting is a clip or a scaling."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from gradeq.errors import BadInput
from gradeq.geometries.geometry import Floats, copy


@dataclass(frozen=True)
class Euclidean:
    """All of R^d: plain gradient descent, whose average gradient itself is the displacement (prop:gd_simple).

    >>> out = [0.0, 0.0]
    >>> Euclidean().primal([3.0, -1.0], 0.1, out)
    >>> out
    [3.0, -1.0]
    """

    lazy_is_sound: ClassVar[bool] = True
    lazy_because: ClassVar[str] = "there is nothing to project: lazy and greedy are the same"

    def check(self, dimension: int) -> None:
        """Any number of parameters fits."""

    def dual(self, theta: Floats, out: Floats) -> None:
        """theta."""
        copy(theta, out)

    def primal(self, z: Floats, eta: float, out: Floats) -> None:
        """z."""
        copy(z, out)


@dataclass(frozen=True)
class Box:
    """low <= theta_j <= high for every j; in equilibrium the gradient averages to zero off the two ends.

    Either end may be infinite. Projection: clip.

    >>> out = [0.0, 0.0]
    >>> Box(0.0, 1.0).primal([3.0, 0.5], 0.1, out)
    >>> out
    [1.0, 0.5]
    """

    low: float
    high: float
    lazy_is_sound: ClassVar[bool] = True
    lazy_because: ClassVar[str] = (
        "sound when the flow points inward at the ends, as with labels inside the box (result 8.7)"
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "low", float(self.low))  # 0 and 0.0 must compile alike
        object.__setattr__(self, "high", float(self.high))
        if not self.low < self.high:
            raise BadInput(f"Box(low={self.low}, high={self.high}): needs low < high")

    def check(self, dimension: int) -> None:
        """Any number of parameters fits."""

    def dual(self, theta: Floats, out: Floats) -> None:
        """theta."""
        copy(theta, out)

    def primal(self, z: Floats, eta: float, out: Floats) -> None:
        """z clipped to [low, high]."""
        for j in range(len(z)):
            out[j] = min(self.high, max(self.low, z[j]))


@dataclass(frozen=True)
class NonNegative:
    """theta_j >= 0 for every j; in equilibrium the gradient averages to zero where theta stays positive.

    >>> out = [0.0, 0.0]
    >>> NonNegative().primal([3.0, -0.5], 0.1, out)
    >>> out
    [3.0, 0.0]
    """

    lazy_is_sound: ClassVar[bool] = True
    lazy_because: ClassVar[str] = (
        "sound when the flow points inward at zero, as with labels that are not negative (result 8.7)"
    )

    def check(self, dimension: int) -> None:
        """Any number of parameters fits."""

    def dual(self, theta: Floats, out: Floats) -> None:
        """theta."""
        copy(theta, out)

    def primal(self, z: Floats, eta: float, out: Floats) -> None:
        """The positive part of z."""
        for j in range(len(z)):
            out[j] = max(0.0, z[j])


@dataclass(frozen=True)
class Ball:
    """||theta|| <= radius; in equilibrium the gradient averages to zero inside, to a radial rest on the sphere.

    Projection: scale back to the sphere.

    >>> out = [0.0, 0.0]
    >>> Ball(1.0).primal([3.0, 4.0], 0.1, out)
    >>> out
    [0.6, 0.8]
    """

    radius: float
    lazy_is_sound: ClassVar[bool] = True
    lazy_because: ClassVar[str] = (
        "sound when the loss is restorative at the sphere, as with a radius beyond its horizon (result 8.7)"
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", float(self.radius))
        if not 0.0 < self.radius < math.inf:
            raise BadInput(f"Ball(radius={self.radius}): radius must be positive and finite")

    def check(self, dimension: int) -> None:
        """Any number of parameters fits."""

    def dual(self, theta: Floats, out: Floats) -> None:
        """theta."""
        copy(theta, out)

    def primal(self, z: Floats, eta: float, out: Floats) -> None:
        """z, scaled to the sphere where it lies outside."""
        square = 0.0
        for j in range(len(z)):
            square = square + z[j] * z[j]
        norm = math.sqrt(square)
        for j in range(len(z)):
            out[j] = z[j] * self.radius / norm if norm > self.radius else z[j]
