"""Rows with weights w >= 0: results D1 to D7. Every result carries over with eta w in place of eta.

wbar is the largest weight and W the sum of weights; the average that is bounded is the weighted one.
Result D8 is advice, not a bound: to be unbiased at peak hours and overall at once, add a column for
the peak instead of a weight.
"""

from __future__ import annotations

import math

from gradeq.theory.generic import average_gradient
from gradeq.theory.links import logit_radius_from_odds
from gradeq.theory.scalar import Range, quantile_range, squared_radius


def weighted_average(start: float, end: float, eta: float, weight_sum: float) -> float:
    """sum w e z / W = (u_1 - u)/(eta W), exactly (result D1).

    >>> weighted_average(0.0, -1.0, 0.1, 100.0)
    0.1
    """
    return average_gradient(start, end, eta, weight_sum)


def weighted_quantile_range(
    start: float, low: float, high: float, level: float, eta: float, weight_max: float
) -> Range:
    """The quantile's range with steps up to eta wbar; |weighted coverage - tau| <= length/(eta W) (D2).

    >>> weighted_quantile_range(0.0, -1.0, 1.0, 0.5, 0.5, 2.0)
    Range(low=-1.5, high=1.5)
    """
    return quantile_range(start, low, high, level, eta * weight_max)


def weighted_squared_radius(start: float, b: float, eta: float, weight_max: float) -> float:
    """max(|theta_1|, kappa b) with kappa of eta wbar, which must stay below 2 (result D3).

    >>> weighted_squared_radius(0.0, 1.0, 0.5, 3.0)
    3.0
    """
    return squared_radius(start, b, eta * weight_max)


def weighted_logit_radius(
    start: float, eta: float, weight_max: float, weighted_odds: float
) -> float:
    """log(e^|theta_1| + eta e^(eta wbar) sum w_t e^|o_t|) (result D4).

    >>> weighted_logit_radius(0.0, 0.5, 2.0, 0.0)
    0.0
    >>> round(weighted_logit_radius(0.0, 0.5, 2.0, 100.0), 3)
    4.919
    """
    return logit_radius_from_odds(start, eta * weight_max, eta * weighted_odds)


def weighted_pull_growth(
    kappa: float, lipschitz_squared: float, eta: float, weight_sum: float, weight_squares: float
) -> float:
    """Growth of ||theta||^2 with features: sum of 2 eta w kappa + eta^2 w^2 L^2 (result D5).

    >>> weighted_pull_growth(1.0, 1.0, 0.5, 4.0, 8.0)
    6.0
    """
    return 2.0 * eta * kappa * weight_sum + eta**2 * lipschitz_squared * weight_squares


def weighted_squared_growth(
    b: float, size: float, eta: float, weight_max: float, weight_sum: float
) -> float:
    """The same for the squared error: sum of eta w b^2/(2 - eta wbar c^2) (result D5, attained).

    >>> weighted_squared_growth(1.0, 1.0, 0.5, 2.0, 10.0)
    5.0
    """
    room = 2.0 - eta * weight_max * size
    return eta * weight_sum * b * b / room if room > 0.0 else math.inf


def weighted_harm_factor(eta: float, weight_max: float, size: float = 1.0) -> float:
    """Weighted MSE served is at most the weighted base MSE times 1/(1 - eta wbar c^2) (result D6).

    >>> weighted_harm_factor(0.25, 2.0)
    2.0
    """
    room = 1.0 - eta * weight_max * size
    return 1.0 / room if room > 0.0 else math.inf


def propensity_average(
    displacement: float,
    eta: float,
    n: float,
    error_bound: float,
    inverse_propensity_excess: float,
    propensity_min: float,
    delta: float,
) -> float:
    """Average error over ALL rounds, seen or not, with probability 1 - delta (result D7; Freedman).

        |u_1 - u|/(eta n) + sqrt(2 E^2 sum(1/pi - 1) ln(2/delta))/n + E ln(2/delta)/(3 pi_min n)

    Weights 1{seen}/pi_t, observation independent of y_t given the past and x_t, |e| <= E. The squared
    error needs eta < 2 pi_min, since a weight is as large as 1/pi_min. A wrong pi promises nothing.
    """
    log_term = math.log(2.0 / delta)
    spread = math.sqrt(2.0 * error_bound**2 * inverse_propensity_excess * log_term)
    tail = error_bound * log_term / (3.0 * propensity_min)
    return abs(displacement) / (eta * n) + (spread + tail) / n
