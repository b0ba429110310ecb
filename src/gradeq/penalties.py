"""Penalties: their slope is added to the gradient of every parameter at each labelled row (paper Section 3).

A penalty pulls parameters to zero. Certificates average the gradient WITHOUT the penalty, and report the penalty's
average separately. The guarantees hold without a penalty (results 5.1 to 5.3).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from gradeq.inputs.arguments import check_magnitude, take_floats
from gradeq.numerics import sign


class Penalty(Protocol):
    """Anything with a value and a slope per parameter."""

    def value(self, theta: float) -> float:
        """The penalty of one parameter."""

    def slope(self, theta: float) -> float:
        """A subgradient of ``value``."""


@dataclass(frozen=True)
class Ridge:
    """(strength / 2) ||theta||^2. Paper: prop:squared_ridge_quad_curv (with the same factor 1/2).

    >>> Ridge(0.1).slope(2.0)
    0.2
    """

    strength: float

    def __post_init__(self) -> None:
        take_floats(self, "strength")
        check_strength("Ridge", self.strength)

    def value(self, theta: float) -> float:
        return 0.5 * self.strength * theta * theta

    def slope(self, theta: float) -> float:
        return self.strength * theta


@dataclass(frozen=True)
class Lasso:
    """strength ||theta||_1, by subgradient steps with sign(0) = 0. Paper: prop:logistic_lasso_pos_curv.

    >>> Lasso(0.1).slope(-2.0), Lasso(0.1).slope(0.0)
    (-0.1, 0.0)
    """

    strength: float

    def __post_init__(self) -> None:
        take_floats(self, "strength")
        check_strength("Lasso", self.strength)

    def value(self, theta: float) -> float:
        return self.strength * abs(theta)

    def slope(self, theta: float) -> float:
        return self.strength * sign(theta)


def check_strength(name: str, strength: float) -> None:
    """Raise unless strength is positive, finite and of usable size."""
    check_magnitude(f"{name}(strength=", strength, "strength", "; omit the penalty to use none")
