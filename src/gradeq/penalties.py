"""Penalties: a slope added to the gradient of every parameter at each labelled row (paper Section 3).

The penalty pulls parameters to zero; the equilibrium that is reported stays that of the gradient WITHOUT it,
and the certificate shows the penalty's average beside it. No penalty is needed for a guarantee (results 5.1 to 5.3).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from gradeq.errors import BadInput
from gradeq.numerics import sign


class Penalty(Protocol):
    """Anything with a value and a slope per parameter."""

    def value(self, theta: float) -> float:
        """The penalty of one parameter."""
        ...

    def slope(self, theta: float) -> float:
        """A subgradient of ``value``."""
        ...


@dataclass(frozen=True)
class Ridge:
    """(strength / 2) ||theta||^2. Paper: prop:squared_ridge_quad_curv (which uses this half, as we do).

    >>> Ridge(0.1).slope(2.0)
    0.2
    """

    strength: float

    def __post_init__(self) -> None:
        check_strength("Ridge", self.strength)

    def value(self, theta: float) -> float:
        """strength theta^2 / 2."""
        return 0.5 * self.strength * theta * theta

    def slope(self, theta: float) -> float:
        """strength theta."""
        return self.strength * theta


@dataclass(frozen=True)
class Lasso:
    """strength ||theta||_1, as the plain subgradient step with sign(0) = 0. Paper: prop:logistic_lasso_pos_curv.

    >>> Lasso(0.1).slope(-2.0), Lasso(0.1).slope(0.0)
    (-0.1, 0.0)
    """

    strength: float

    def __post_init__(self) -> None:
        check_strength("Lasso", self.strength)

    def value(self, theta: float) -> float:
        """strength |theta|."""
        return self.strength * abs(theta)

    def slope(self, theta: float) -> float:
        """strength sign(theta)."""
        return self.strength * sign(theta)


def check_strength(name: str, strength: float) -> None:
    """Refuse a strength that is not positive and finite."""
    if not (math.isfinite(strength) and strength > 0.0):
        raise BadInput(
            f"{name}(strength={strength}): strength must be positive and finite; leave the penalty out for none"
        )
