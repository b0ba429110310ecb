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


def squared_lasso_radius(
    b: float, size: float, d: int, strength: float, eta_max: float, weight_max: float = 1.0
) -> float:
    """The squared error with a lasso in subgradient form: max(h, sqrt(C)), h = C/(2 eta lambda) (result 6.6).

        C = m (b + eta c lambda sqrt(d))^2/(2 - m c^2) + (eta lambda)^2 d,   m = eta w

    ||theta+||^2 <= ||theta||^2 - 2 eta lambda ||theta||_1 + C: the error e adds at most -m (2 - m c^2) e^2 +
    2 m |e| (b + eta lambda c sqrt(d)), and ||theta||_1 >= ||theta||. So ||theta||^2 also grows by at most C a round.

    >>> squared_lasso_radius(1.0, 0.0, 1, 0.5, 1.0), squared_lasso_radius(1.0, 0.0, 1, 0.125, 1.0)
    (0.8660254037844386, 2.0625)
    """
    mass = eta_max * weight_max
    room = 2.0 - mass * size
    if room <= 0.0:
        return math.inf
    pushed = b + eta_max * math.sqrt(size * d) * strength
    cut = eta_max * strength
    growth = mass * pushed * pushed / room + cut * cut * d
    return max(growth / (2.0 * cut), math.sqrt(growth))


def scalar_lasso_radius(b: float, strength: float, step_max: float, eta_max: float) -> float:
    """One parameter, squared error and a lasso in subgradient form: a step past 0 at most (results 3.2, 6.6).

    max(b, m b + eta lambda), m = eta w; over 2 - m where m > 1. Infinite from m = 2 on.

    >>> scalar_lasso_radius(3.0, 0.5, 0.1, 0.1)
    3.0
    """
    if step_max >= 2.0:
        return math.inf
    past = step_max * b + eta_max * strength
    return max(b, past, past / (2.0 - step_max) if step_max > 1.0 else 0.0)


def ridge_closed_radius(growth: float, rho: float, n: float) -> float:
    """R of R^2 <- rho^2 R^2 + K from 0 after n rounds: sqrt(K (1 - rho^2n)/(1 - rho^2)) (result 6.7).

    sqrt(n K) as lambda -> 0, result 6.2 or 6.3 as n -> infinity; K is what a step adds, theta+ = rho theta - eta g.

    >>> ridge_closed_radius(3.0, 0.5, 1), ridge_closed_radius(4.0, 1.0, 9)
    (1.7320508075688772, 6.0)
    """
    return math.sqrt(growth) * math.sqrt(_geometric(rho, n))


def ridge_closed_mean(growth: float, rho: float, n: float) -> float:
    """At most the mean of that radius over the rounds 0 to n - 1: the root of the mean square (result 6.7).

    >>> ridge_closed_mean(3.0, 0.5, 1)
    0.0
    """
    left = (1.0 - rho) * (1.0 + rho)
    if n * left < 1e-6:
        return math.sqrt(growth) * math.sqrt(max(0.0, n - 1.0) / 2.0)
    return math.sqrt(growth) * math.sqrt(max(0.0, 1.0 - _geometric(rho, n) / n) / left)


def _geometric(rho: float, n: float) -> float:
    """1 + rho^2 + ... + rho^(2 (n - 1))."""
    left = (1.0 - rho) * (1.0 + rho)
    if left <= 0.0:
        return n
    return min(n, -math.expm1(n * math.log1p(-left)) / left if rho > 0.0 else 1.0)


def penalised_average(
    start: float, radius: float, penalty_slope: float, eta: float, n: float
) -> float:
    """||avg g|| <= (||theta_1|| + R)/(eta n) + the average size of the penalty's slope (result 6.3).

    The slope of a ridge is at most lambda R; of a lasso lambda in each coordinate, lambda sqrt(d) in norm.

    >>> penalised_average(0.0, 1.0, 0.5, 0.1, 100)
    0.6
    """
    return (abs(start) + radius) / (eta * n) + penalty_slope
