"""Facts of each loss that the generic results feed on: horizon, size of the gradient, pull, curvature.

The last group derives horizons from monotonicity (prop:restricted_strongly_monotone), two of whose printed
forms are wrong or unusable.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from gradeq.numerics import LAMBERT_W
from gradeq.theory.scalar import logistic_horizon, squared_factor


class Restorative(NamedTuple):
    """Beyond ``horizon`` the negative gradient points back; ``lipschitz`` bounds |g| (inside, if quadratic).

    ``pull``: g(theta) theta >= -pull everywhere. ``curvature``: zero, positive or quadratic.
    """

    horizon: float
    lipschitz: float
    pull: float
    curvature: str


def quantile_facts(b: float, level: float) -> Restorative:
    """Pinball loss with |y| <= b: horizon b, |g| <= max(tau, 1 - tau), zero curvature.

    >>> quantile_facts(2.0, 0.75)
    Restorative(horizon=2.0, lipschitz=0.75, pull=1.5, curvature='zero')
    """
    m = max(level, 1.0 - level)
    return Restorative(b, m, m * b, "zero")


def squared_facts(b: float, eta: float) -> Restorative:
    """Squared error with |y| <= b: exact horizon kappa b, quadratic curvature for eta < 2.

    >>> squared_facts(1.0, 0.5)
    Restorative(horizon=1.0, lipschitz=2.0, pull=0.25, curvature='quadratic')
    """
    h = squared_factor(eta) * b
    return Restorative(h, h + b, b**2 / 4.0, "quadratic")


def logistic_facts(span: float, gap: float) -> Restorative:
    """Logistic mean on [a, b] with labels ``gap`` inside: zero curvature; an infinite horizon for gap 0."""
    return Restorative(logistic_horizon(span, gap), span, LAMBERT_W * span, "zero")


def logistic_pull_floor(span: float) -> float:
    """Least value of g(u) u for the logistic mean: -W0(1/e) (b - a) (lem:logistic_grad_inner_prod).

    The paper rounds the constant to 0.279.

    >>> round(logistic_pull_floor(1.0), 4)
    -0.2785
    """
    return -LAMBERT_W * span


def squared_pull_floor(a1: float, a2: float, b: float) -> float:
    """Least value of a1 g(u) u - a2 g(u)^2 for g(u) = u - y, |y| <= b, a1 > a2 (lem:squared_grad_inner_prod).

    >>> squared_pull_floor(1.0, 0.0, 2.0)
    -1.0
    """
    return -((a1 - 2.0 * a2) ** 2) * b**2 / (4.0 * (a1 - a2)) - a2 * b**2


def monotone_horizon_zero(b: float, alpha: float) -> float:
    """Zero curvature from (g(theta) - g(0))'theta >= alpha ||theta||^2 and ||g(0)|| <= b: h = b/alpha.

    >>> monotone_horizon_zero(1.0, 2.0)
    0.5
    """
    return b / alpha


def monotone_horizon_positive(b: float, alpha: float, eta: float, lipschitz: float) -> float:
    """Positive curvature kappa = eta L^2/2: h = (b + sqrt(b^2 + 4 alpha kappa))/(2 alpha).

    The paper's sqrt(eta/2) L/alpha is too small for alpha > 1. Usable only on a bounded set: strong
    monotonicity everywhere contradicts a global L.

    >>> round(monotone_horizon_positive(1.0, 4.0, 2.0, 4.0), 3)
    2.129
    """
    kappa = eta * lipschitz**2 / 2.0
    return (b + math.sqrt(b**2 + 4.0 * alpha * kappa)) / (2.0 * alpha)


def monotone_horizon_positive_simple(b: float, alpha: float, eta: float, lipschitz: float) -> float:
    """A simple sufficient form of the same: b/alpha + L sqrt(eta/(2 alpha)).

    >>> monotone_horizon_positive_simple(1.0, 1.0, 2.0, 1.0)
    2.0
    """
    return b / alpha + lipschitz * math.sqrt(eta / (2.0 * alpha))


def monotone_horizon_quadratic(b: float, alpha: float, beta: float, eta: float) -> float:
    """Quadratic curvature under beta-co-coercivity, eta < 2/beta: h = b (1 + sqrt(1 - 2 eta A))/(2 A).

    A = alpha (1 - eta beta/2). Exact and attained; the printed horizon is true but larger, and its proof
    drops a factor A under the root. Infinite from eta = 2/beta on.

    >>> monotone_horizon_quadratic(1.0, 1.0, 1.0, 1.0)
    1.0
    """
    a = alpha * (1.0 - eta * beta / 2.0)
    if a <= 0.0:
        return math.inf
    return b * (1.0 + math.sqrt(max(0.0, 1.0 - 2.0 * eta * a))) / (2.0 * a)


def monotone_horizon_quadratic_simple(b: float, alpha: float, beta: float, eta: float) -> float:
    """A simple sufficient form of the same: b/A.

    >>> monotone_horizon_quadratic_simple(1.0, 1.0, 1.0, 1.0)
    2.0
    """
    a = alpha * (1.0 - eta * beta / 2.0)
    return b / a if a > 0.0 else math.inf
