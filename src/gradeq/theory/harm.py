"""What a step can cost: results B1, B2, B4, A6. The step is a harm budget, for every sequence.

All for a constant step from theta_1 = 0 against the forecast as it came (for a logit, as it was clipped); a step that
falls later can cost more. The shift and sinh links have no such cap.
"""

from __future__ import annotations

import math

HARD_LABEL_RATIO = 0.40727  # sup over p of (1 - p)^2 / (-log p), rounded up


def squared_harm_factor(eta: float, size: float = 1.0) -> float:
    """MSE served <= MSE base / (1 - eta c^2), any sequence, no range needed (result B1, attained).

    Infinite from eta c^2 = 1 on.

    >>> squared_harm_factor(0.5)
    2.0
    """
    room = 1.0 - eta * size
    return 1.0 / room if room > 0.0 else math.inf


def squared_oracle_total(
    oracle_squares: float, distance_squared: float, eta: float, size: float = 1.0
) -> float:
    """Sum of squared errors against ANY fixed u: (sum (z'u - r)^2 + ||u - theta_1||^2/eta)/(1 - eta c^2) (B1).

    >>> squared_oracle_total(10.0, 1.0, 0.5)
    24.0
    """
    return squared_harm_factor(eta, size) * (oracle_squares + distance_squared / eta)


def step_from_budget(budget: float, size: float = 1.0) -> float:
    """The step whose worst harm is ``budget`` (0.01 = 1 % of the squared error): h/((1 + h) c^2) (B1).

    >>> round(step_from_budget(0.01), 6)
    0.009901
    """
    return budget / ((1.0 + budget) * size)


def convex_harm(eta: float, gradient_squares: float, start: float = 0.0) -> float:
    """Most that the SUM of any convex loss can exceed the base's: (eta/2) sum ||g||^2 + ||theta_1||^2/(2 eta).

    Pinball and log loss in particular (result B2, attained).

    >>> convex_harm(0.1, 20.0)
    1.0
    """
    return 0.5 * eta * gradient_squares + start**2 / (2.0 * eta)


def pinball_harm(eta: float, level: float, size: float = 1.0) -> float:
    """Most that the mean pinball loss can rise, in the unit of y: (eta/2) c^2 max(tau, 1 - tau)^2 (B2).

    >>> pinball_harm(0.5, 0.5)
    0.0625
    """
    return 0.5 * eta * size * max(level, 1.0 - level) ** 2


def log_loss_harm_factor(eta: float, size: float = 1.0) -> float:
    """Log loss served <= base/(1 - 0.2037 eta c^2) with 0/1 labels and the logit link (results B2, C4).

    (1 - p)^2 <= 0.40727 (-log p). The base is the clipped forecast.

    >>> round(log_loss_harm_factor(0.1), 4)
    1.0208
    """
    room = 1.0 - 0.5 * HARD_LABEL_RATIO * eta * size
    return 1.0 / room if room > 0.0 else math.inf


def late_squared_harm_factor(eta: float, delay: int, size: float = 1.0) -> float:
    """MSE served <= MSE base / (1 - eta c^2 (2 D + 1)) with every delay at most D tickets (result A6).

    >>> late_squared_harm_factor(0.1, 2)
    2.0
    """
    room = 1.0 - eta * size * (2 * delay + 1)
    return 1.0 / room if room > 0.0 else math.inf


def late_convex_harm(eta: float, lipschitz: float, most_open: int) -> float:
    """Most that the mean convex loss can rise with at most P open: (eta/2) L^2 (2 P - 1) (result A6).

    >>> late_convex_harm(0.1, 1.0, 1)
    0.05
    """
    return 0.5 * eta * lipschitz * lipschitz * (2 * most_open - 1)


def uncertainty_product(variance: float, final_square: float = 0.0, n: float = 1.0) -> float:
    """Least (excess MSE) x (mean squared cumulative error), white residuals, any rule (result B4).

        (s^2 - E M^2/n)^2 / 4,   M = the cumulative error at the end, E M^2 <= n s^2

    A statement in expectation. A constant step attains it up to (1 - eta/2)^-2.

    >>> uncertainty_product(2.0)
    1.0
    """
    return max(0.0, variance - final_square / n) ** 2 / 4.0


def constant_step_product(variance: float, eta: float) -> float:
    """The same product for a constant step in the long run: s^4/(2 - eta)^2 (result B4).

    >>> constant_step_product(1.0, 1.0)
    1.0
    """
    return variance**2 / (2.0 - eta) ** 2


def least_excess(variance: float, error_bound: float, n: float) -> float:
    """Least excess MSE of a rule whose cumulative error never exceeds B: (s^2 - B^2/n)^2/(4 B^2) (B4).

    >>> least_excess(1.0, 1.0, 1e12) > 0.2499
    True
    """
    return uncertainty_product(variance, error_bound**2, n) / error_bound**2
