"""Arbitrary bounded features, ||x|| <= c, and no penalty: results 5.1 to 5.3.

All three are G2' (:func:`gradeq.theory.radius_bounded_pull`): the squared norm of theta grows by at most
K a round, so ||avg g|| <= sqrt(K/n)/eta from theta_1 = 0. The paper proves this with a lasso or ridge penalty.
``growth`` functions return the sum of K over the rounds, for any steps: pass eta n and the largest
step for a constant step.
"""

from __future__ import annotations

import math

from gradeq.numerics import LAMBERT_W


def logistic_growth(span: float, size: float, eta_max: float, step_sum: float) -> float:
    """Growth of ||theta||^2 for the logistic mean on [a, b]: sum of 2 eta W (b-a) + eta^2 c^2 (b-a)^2 (5.1).

    W = W0(1/e) = 0.27846 (lem:logistic_grad_inner_prod). ``size`` = c^2, ``span`` = b - a.
    """
    return pull_growth(LAMBERT_W * span, size * span * span, eta_max, step_sum)


def squared_growth(square_sum: float, size: float, eta_max: float) -> float:
    """Growth of ||theta||^2 for the squared error: sum of eta r^2/(2 - eta c^2) (result 5.2).

    Needs eta c^2 < 2. ``square_sum`` = sum of eta_t r_t^2 over the rounds, or eta n b^2 when only
    |r| <= b is known; r = y - f. From theta_1 = 0 the average is then at most b/sqrt(eta (2 - eta c^2) n).

    >>> squared_growth(100.0, 1.0, 1.0)
    100.0
    """
    return square_sum / (2.0 - eta_max * size) if eta_max * size < 2.0 else math.inf


def quantile_pull(low: float, high: float, level: float) -> float:
    """kappa of the pinball loss: most that a step can push theta outward, y - f in [low, high] (5.3).

    max(tau high+, (1 - tau) low-); at most max(tau, 1 - tau) b.

    >>> quantile_pull(-1.0, 3.0, 0.5)
    1.5
    """
    return max(level * max(high, 0.0), (1.0 - level) * max(-low, 0.0))


def huber_pull(low: float, high: float, width: float) -> float:
    """kappa of the Huber loss: the most of -u clip(u - r, -width, width) over u, r in [low, high].

    r^2/4 at u = r/2 while |r| <= 2 width, width (|r| - width) at u = r - width beyond.

    >>> huber_pull(-1.0, 2.0, 1.0), huber_pull(-5.0, 2.0, 1.0)
    (1.0, 4.0)
    """
    farthest = max(abs(low), abs(high))
    if farthest <= 2.0 * width:
        return farthest * farthest / 4.0
    return width * (farthest - width)


def quantile_growth(
    low: float, high: float, level: float, size: float, eta_max: float, step_sum: float
) -> float:
    """Growth of ||theta||^2 for the pinball loss of x'theta: sum of 2 eta kappa + eta^2 c^2 m^2 (5.3).

    m = max(tau, 1 - tau).
    """
    m = max(level, 1.0 - level)
    return pull_growth(quantile_pull(low, high, level), size * m * m, eta_max, step_sum)


def pull_growth(kappa: float, lipschitz_squared: float, eta_max: float, step_sum: float) -> float:
    """sum of 2 eta kappa + eta^2 L^2 (G2'), with each eta^2 at most eta_max eta.

    >>> pull_growth(1.0, 2.0, 0.5, 10.0)
    30.0
    """
    return step_sum * (2.0 * kappa + eta_max * lipschitz_squared)


def feature_average(start: float, growth: float, eta: float, n: float) -> float:
    """||avg (prediction - y) x|| with a constant step: (||theta_1|| + sqrt(||theta_1||^2 + growth))/(eta n).

    The same number bounds the multiaccuracy error over {x'alpha : ||alpha|| <= 1}.

    >>> feature_average(0.0, 100.0, 0.5, 10)
    2.0
    """
    return (abs(start) + math.hypot(start, math.sqrt(growth))) / (eta * n)


def best_squared_average(b: float, c: float, n: float) -> float:
    """The squared error at its best step eta = 1/c^2: b c/sqrt(n) (result 5.2).

    >>> best_squared_average(2.0, 3.0, 36)
    1.0
    """
    return b * c / math.sqrt(n)


def group_average(feature_bound: float, n: float, group_rows: float) -> float:
    """Bias inside one of several overlapping groups: n/n_j times the bound on the average (result 5).

    n_j/sqrt(n) -> infinity is enough; the paper takes n_j to grow linearly.

    >>> group_average(0.01, 1000, 100)
    0.1
    """
    return feature_bound * n / group_rows
