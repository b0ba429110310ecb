"""Lasso and ridge penalties: results 6.1 to 6.3, and the same argument for the other bounded errors.

The average that is bounded is that of the *unpenalised* gradient; the penalty leaves a floor that
does not vanish with n. Results in section 5 do without.
"""

from __future__ import annotations

import math

from gradeq.numerics import LAMBERT_W


def lasso_horizon(kappa: float, lipschitz: float, strength: float, eta_max: float) -> float:
    """h = (kappa + eta L^2/2)/lambda, where the lasso overwhelms the outward pull (result 6.1).

    L is that of the penalised gradient, error part plus lambda sqrt(d).
    """
    return (kappa + eta_max * lipschitz * lipschitz / 2.0) / strength


def lasso_radius(
    start: float, kappa: float, lipschitz: float, strength: float, eta_max: float
) -> float:
    """max(||theta_1||, h, sqrt(2 eta lambda h)): no overshoot term is needed (result 6.1).

    For any error with ||g|| <= L and g'theta >= -kappa; any step, any subgradient of |.| at 0.
    """
    h = lasso_horizon(kappa, lipschitz, strength, eta_max)
    return max(abs(start), h, math.sqrt(2.0 * eta_max * strength * h))


def logistic_lasso_average(
    start: float, span: float, c: float, strength: float, d: int, eta: float, n: float
) -> float:
    """||avg (mean - y) x|| under lasso: 2 ||theta_1||/(eta n) + h/(eta n) + lambda sqrt(d) (result 6.1).

    prop:logistic_lasso_pos_curv prints C_1 with L/eta where its own proof gives eta L; neither is needed.

    >>> round(logistic_lasso_average(0.0, 2.0, 1.0, 0.5, 4, 0.1, 100), 4)
    1.2014
    """
    lipschitz = c * span + strength * math.sqrt(d)
    h = lasso_horizon(LAMBERT_W * span, lipschitz, strength, eta)
    return (2.0 * abs(start) + h) / (eta * n) + strength * math.sqrt(d)


def ridge_constant(
    b: float, size: float, strength: float, eta_max: float, eta_min: float | None = None
) -> float:
    """C_0 = (1 - lambda eta)^2 b^2 / (4 (1 - lambda eta - eta c^2/2)(1 - lambda eta/2)) (result 6.2).

    Needs eta < 1/(lambda + c^2/2) in every round, so features must be bounded for a constant step, not
    merely sublinear as prop:squared_ridge_quad_curv allows. ``size`` = c^2. With varying steps in
    [eta_min, eta_max] the numerator is taken at the smallest and the denominators at the largest.
    Infinite outside the range of steps.
    """
    first = 1.0 - strength * (eta_max if eta_min is None else eta_min)
    room = 1.0 - strength * eta_max - eta_max * size / 2.0
    if room <= 0.0:
        return math.inf
    pushed = first * b
    return pushed * pushed / (4.0 * room * (1.0 - strength * eta_max / 2.0))


def ridge_radius(
    start: float,
    b: float,
    size: float,
    strength: float,
    eta_max: float,
    eta_min: float | None = None,
) -> float:
    """max(||theta_1||, sqrt(C_0/lambda)) for squared error plus (lambda/2)||theta||^2 (result 6.2).

    For a penalty lambda ||theta||^2 pass 2 lambda: the paper defines one and proves the other.
    """
    unit = ridge_constant(1.0, size, strength, eta_max, eta_min)
    return max(abs(start), b * math.sqrt(unit / strength))


def scalar_ridge_radius(start: float, b: float, strength: float, eta_max: float) -> float:
    """One parameter, squared error plus (lambda/2) theta^2: theta+ = (1 - eta (1 + lambda)) theta + eta r.

    max(|theta_1|, b/(1 + lambda)) while eta (1 + lambda) <= 1, then eta b/(2 - eta (1 + lambda));
    infinite from eta (1 + lambda) = 2 on. A one-line companion of result 6.2.

    >>> scalar_ridge_radius(0.0, 3.0, 0.5, 0.1)
    2.0
    """
    pull = eta_max * (1.0 + strength)
    if pull >= 2.0:
        return math.inf
    return max(abs(start), b / (1.0 + strength) if pull <= 1.0 else eta_max * b / (2.0 - pull))


def bounded_ridge_radius(
    start: float, kappa: float, lipschitz: float, strength: float, eta_max: float
) -> float:
    """Ridge with a bounded error: R^2 = max over steps of (2 eta kappa + eta^2 L^2)/(1 - (1 - eta lambda)^2).

    For ||g|| <= L, g'theta >= -kappa and eta lambda <= 1: theta+ = (1 - eta lambda) theta - eta g, so
    ||theta+||^2 <= (1 - eta lambda)^2 ||theta||^2 + 2 eta (1 - eta lambda) kappa + eta^2 L^2, whose fixed point
    is at most (2 kappa + eta L^2)/(lambda (2 - eta lambda)). Infinite when eta lambda > 1.
    """
    if eta_max * strength > 1.0:
        return math.inf
    fixed = 2.0 * kappa + eta_max * lipschitz * lipschitz
    fixed /= strength * (2.0 - eta_max * strength)
    return max(abs(start), math.sqrt(fixed))


def penalised_average(
    start: float, radius: float, penalty_slope: float, eta: float, n: float
) -> float:
    """||avg g|| <= (||theta_1|| + R)/(eta n) + the average size of the penalty's slope (result 6.3).

    The slope of a ridge is at most lambda R; of a lasso lambda in each coordinate, lambda sqrt(d) in norm.

    >>> penalised_average(0.0, 1.0, 0.5, 0.1, 100)
    0.6
    """
    return (abs(start) + radius) / (eta * n) + penalty_slope
