"""Probabilities served as sigma(logit p + z'theta), and quantiles served as f + s sinh(u): C0 to C5, B3.

p is clipped to [eps, 1 - eps]; B = log((1 - eps)/eps) then bounds the offset o = logit p. The average error is
exactly (theta_1 - theta)/(eta n), as for every layer (result C0, :func:`gradeq.theory.average_gradient`).
"""

from __future__ import annotations

import math

from gradeq.theory.late import late_logistic_virtual_radius
from gradeq.theory.scalar import logistic_hard_radius
from gradeq.theory.stable import lambert_of_exp, log_or_minus_infinity, logaddexp


def clip_bound(eps: float) -> float:
    """B = log((1 - eps)/eps), the largest offset of a clipped probability.

    >>> clip_bound(0.5)
    0.0
    """
    return math.log1p(-eps) - math.log(eps)


def logit_radius_from_odds(start: float, eta_max: float, step_odds_sum: float) -> float:
    """One parameter, any labels in [0, 1]: log(e^|theta_1| + e^eta sum eta_t e^|o_t|) (results C1, D4).

    ``step_odds_sum`` = sum of eta_t e^|o_t|; e^|o| is the larger of the odds p/(1-p) and (1-p)/p.

    >>> round(logit_radius_from_odds(0.0, 0.1, 100.0), 3)
    4.714
    """
    return logaddexp(abs(start), log_or_minus_infinity(step_odds_sum) + eta_max)


def logit_radius_from_clip(
    start: float, offset_bound: float, eta_max: float, step_sum: float
) -> float:
    """The same from |o_t| <= B alone: log(max(e^|theta_1|, e^(B+eta)) + e^(B+eta/2) sum eta_t) (result C1).

    >>> round(logit_radius_from_clip(0.0, 0.0, 0.1, 100.0), 3)
    4.666
    """
    return logistic_hard_radius(start, 1.0, eta_max, step_sum, horizon=offset_bound)


def logit_soft_radius(start: float, offset_bound: float, gap: float, eta_max: float) -> float:
    """Labels in [d, 1 - d]: max(|theta_1|, B + log((1 - d)/d)), plus eta if eta > 4 (result C2).

    While eta <= 4 a step cannot jump over its fixed point, so nothing is added.

    >>> logit_soft_radius(0.0, 1.0, 0.5, 0.1)
    1.0
    """
    if gap <= 0.0:
        return math.inf
    target = max(0.0, math.log((1.0 - gap) / gap)) if gap < 1.0 else 0.0
    return max(abs(start), offset_bound + target + (0.0 if eta_max <= 4.0 else eta_max))


def logit_pull(offset_bound: float) -> float:
    """kappa(B) = sup u/(1 + e^(u - B)) = W0(e^(B - 1)), for features (result C3).

    >>> round(logit_pull(0.0), 4), round(logit_pull(clip_bound(0.01)), 3)
    (0.2785, 2.629)
    """
    return lambert_of_exp(offset_bound - 1.0)


def logit_growth(offset_bound: float, size: float, eta_max: float, step_sum: float) -> float:
    """Growth of ||theta||^2 with features, ||z||^2 <= size: sum of 2 eta kappa(B) + eta^2 c^2 (result C3)."""
    return step_sum * (2.0 * logit_pull(offset_bound) + eta_max * size)


def late_logit_radius(start: float, open_mass: float, step_odds_sum: float) -> float:
    """Late labels: |theta| <= log(e^|theta_1| + e^S sum eta_t e^|o_t|) + S, S = open mass (result C5).

    The state after all posted tickets is bounded without the last S
    (:func:`gradeq.theory.late_logistic_virtual_radius`).
    """
    return late_logistic_virtual_radius(start, 1.0, open_mass, step_odds_sum) + open_mass


def asinh_bound(ratio: float) -> float:
    """asinh(rho): the range of asinh((y - f)/s) when |y - f| <= rho s (result B3).

    Tracking the quantile of asinh((y - f)/s_t), s_t known before y_t, is quantile tracking: every
    quantile result holds with this in place of b, and the step has no unit.

    >>> asinh_bound(0.0)
    0.0
    """
    return math.asinh(ratio)


def sinh_coverage_gap(
    start: float, ratio: float, eta: float, n: float, zero_scale_rounds: float = 0
) -> float:
    """|coverage - tau| of the sinh link: (|u_1| + max(|u_1|, asinh(rho) + eta))/(eta n) + n_0/n (result B3).

    n_0 counts rounds served while the scale was still 0.

    >>> sinh_coverage_gap(0.0, 0.0, 0.1, 100)
    0.01
    """
    reach = max(abs(start), asinh_bound(ratio) + eta)
    return (abs(start) + reach) / (eta * n) + zero_scale_rounds / n


def warm_start(level: float) -> float:
    """u_1 = asinh(-ln(1 - tau)): start nonnegative scores as if they were exponential (result B3).

    >>> round(warm_start(0.9), 3)
    1.571
    """
    return math.asinh(-math.log1p(-level))
