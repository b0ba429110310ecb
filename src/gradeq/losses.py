"""Losses: in equilibrium the slope at the served value averages to zero.

A loss is a frozen value with two plain scalar methods, ``value(u, y)`` and ``slope(u, y)``, where u is the served
value, or the margin for the generalised linear losses. A custom loss needs the same two methods and nothing else;
``gradeq.check_loss`` checks it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from gradeq.inputs.arguments import take_float_between, take_range
from gradeq.numerics import bounded_exp, log1pexp, sigmoid


class Loss(Protocol):
    """Anything with a value and its slope in the first argument."""

    def value(self, u: float, y: float) -> float:
        """The loss of u against the label y."""

    def slope(self, u: float, y: float) -> float:
        """A subgradient of ``value`` in u."""


@dataclass(frozen=True)
class Squared:
    """Half the squared error; in equilibrium the average of u equals the average of y.

        value = (u - y)^2 / 2        slope = u - y

    Domain: real u and y. Paper: Table 1 row 1; cor:squared_loss_quad_curv.

    >>> Squared().slope(3.0, 1.0)
    2.0
    """

    def value(self, u: float, y: float) -> float:
        return 0.5 * (u - y) * (u - y)

    def slope(self, u: float, y: float) -> float:
        return u - y


@dataclass(frozen=True)
class Absolute:
    """The absolute error; in equilibrium u lies above y as often as below.

        value = |u - y|        slope = 1 if y <= u else -1

    At the kink y == u the slope is 1: equality counts as above, as for ``Quantile(0.5)``; this
    loss is twice that.

    >>> Absolute().slope(3.0, 1.0), Absolute().slope(1.0, 1.0), Absolute().slope(0.0, 1.0)
    (1.0, 1.0, -1.0)
    """

    def value(self, u: float, y: float) -> float:
        return abs(u - y)

    def slope(self, u: float, y: float) -> float:
        return 1.0 if y <= u else -1.0


@dataclass(frozen=True)
class Quantile:
    """The pinball loss at ``level``; in equilibrium u lies above y with frequency ``level``.

        value = max(level (y - u), (level - 1)(y - u))        slope = 1{y <= u} - level

    At the kink y == u the slope is 1 - level: equality counts as covered. (The paper prints -level there,
    which would track 1{y < u}: on constant labels it never stops covering.) Paper: Table 1 row 2;
    cor:quantile_loss_zero_curv.

    >>> Quantile(0.75).slope(2.0, 1.0)
    0.25
    """

    level: float

    def __post_init__(self) -> None:
        take_float_between(self, "level", 0.0, 1.0)

    def value(self, u: float, y: float) -> float:
        return pinball(self.level, u, y)

    def slope(self, u: float, y: float) -> float:
        return pinball_slope(self.level, u, y)


def pinball(level: float, u: float, y: float) -> float:
    """max(level (y - u), (level - 1)(y - u)): the loss of u as the quantile of this level. Columns work too."""
    return pinball_slope(level, u, y) * (u - y)


def pinball_slope(level: float, u: float, y: float) -> float:
    """1{y <= u} - level; equality counts as covered. Columns work too."""
    return (y <= u) - level


@dataclass(frozen=True)
class Logistic:
    """The generalised logistic loss on [low, high]; in equilibrium the mean prediction equals the mean label.

        mean(u) = low + (high - low) sigmoid(u)
        value   = -(y - low) u + (high - low) log(1 + e^u)        slope = mean(u) - y

    u is the margin. Labels lie in [low, high]; hard labels at the ends are fine (no epsilon is needed for the
    bound). low = 0, high = 1 is the usual log loss; low = -1, high = 1 on the residual y - p is the paper's
    debiasing of probabilities. Paper: Table 1 row 3; cor:logistic_loss_zero_curv (horizon corrected).

    >>> Logistic().slope(0.0, 1.0)
    -0.5
    """

    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        take_range(self)

    def value(self, u: float, y: float) -> float:
        return (self.high - self.low) * log1pexp(u) - (y - self.low) * u

    def slope(self, u: float, y: float) -> float:
        return self.low + (self.high - self.low) * sigmoid(u) - y


@dataclass(frozen=True)
class Poisson:
    """The Poisson loss with log link; in equilibrium the mean predicted count equals the mean count.

        value = e^u - y u        slope = e^u - y

    Labels are >= 0. No proposition of the paper covers it; the one-dimensional bound is result 3.5.

    >>> Poisson().slope(0.0, 3.0)
    -2.0
    """

    def value(self, u: float, y: float) -> float:
        return bounded_exp(u) - y * u

    def slope(self, u: float, y: float) -> float:
        return bounded_exp(u) - y


@dataclass(frozen=True)
class Huber:
    """Squared near zero, absolute beyond ``width``; in equilibrium the clipped errors average to zero.

        slope = clip(u - y, -width, width)

    >>> Huber(1.0).slope(5.0, 1.0)
    1.0
    """

    width: float

    def __post_init__(self) -> None:
        take_float_between(self, "width", 0.0, math.inf)

    def value(self, u: float, y: float) -> float:
        """r^2 / 2 for |r| <= width, else width (|r| - width / 2)."""
        r = abs(u - y)
        if r <= self.width:
            return 0.5 * r * r
        return self.width * (r - 0.5 * self.width)

    def slope(self, u: float, y: float) -> float:
        return min(self.width, max(-self.width, u - y))


@dataclass(frozen=True)
class Expectile:
    """The asymmetric squared loss; in equilibrium the errors balance with weights ``tilt`` and 1 - ``tilt``.

        value = |tilt - 1{y <= u}| (u - y)^2        slope = 2 |tilt - 1{y <= u}| (u - y)

    >>> Expectile(0.8).slope(0.0, 1.0)
    -1.6
    """

    tilt: float

    def __post_init__(self) -> None:
        take_float_between(self, "tilt", 0.0, 1.0)

    def value(self, u: float, y: float) -> float:
        weight = 1.0 - self.tilt if y <= u else self.tilt
        return weight * (u - y) * (u - y)

    def slope(self, u: float, y: float) -> float:
        weight = 1.0 - self.tilt if y <= u else self.tilt
        return 2.0 * weight * (u - y)


@dataclass(frozen=True)
class Linear:
    """The generalised linear loss with identity mean, value = u^2 / 2 - y u; the same slope as ``Squared``, u - y.

    Its value may be negative; the difference to ``Squared`` is y^2 / 2, which no step can change.

    >>> Linear().slope(3.0, 1.0)
    2.0
    """

    def value(self, u: float, y: float) -> float:
        return 0.5 * u * u - y * u

    def slope(self, u: float, y: float) -> float:
        return u - y


@dataclass(frozen=True)
class LogLoss:
    """The log loss of a served probability, clipped to [clip, 1 - clip].

        value = -y log p - (1 - y) log(1 - p)        slope = (p - y) / (p (1 - p))

    >>> round(LogLoss().value(0.5, 1.0), 6)
    0.693147
    """

    clip: float = 1e-6

    def __post_init__(self) -> None:
        take_float_between(self, "clip", 0.0, 0.5)

    def value(self, u: float, y: float) -> float:
        p = min(1.0 - self.clip, max(self.clip, u))
        return -y * math.log(p) - (1.0 - y) * math.log(1.0 - p)

    def slope(self, u: float, y: float) -> float:
        p = min(1.0 - self.clip, max(self.clip, u))
        return (p - y) / (p * (1.0 - p))
