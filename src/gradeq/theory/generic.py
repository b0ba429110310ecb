"""From iterates to averages, and from restorative losses to iterates: results 1.1 to 1.6 and G1 to G4.

Everything rests on one telescoping sum: with a constant step the average gradient IS the
displacement of the parameter, divided by step times rounds (prop:gd_simple).
"""

from __future__ import annotations

import math
from collections.abc import Iterable


def average_gradient(start: float, end: float, eta: float, n: float) -> float:
    """The average gradient of a constant-step run, exactly, from its two ends (results 1.1, 1.5, 1.6).

        (1/n) sum g_t = (u_start - u_end) / (eta n)

    No assumption at all. For a lazily projected layer the ends are those of the unprojected u; with
    late or missing labels the average is over the gradients that were applied. One coordinate.

    >>> average_gradient(0.0, -1.0, 0.1, 100)
    0.1
    """
    return (start - end) / (eta * n)


def average_from_radius(start: float, radius: float, eta: float, n: float) -> float:
    """Most that the average gradient can be when no iterate leaves ``radius`` (result 1.1).

        ||avg g|| <= (||theta_1|| + R) / (eta n)

    The line after prop:gd_simple in the paper lacks the eta.

    >>> average_from_radius(0.0, 1.0, 0.5, 10)
    0.2
    """
    return (abs(start) + radius) / (eta * n)


def inverse_step_variation(etas: Iterable[float]) -> float:
    """1/eta_1 + sum |1/eta_t - 1/eta_{t-1}|, what replaces 1/eta when steps vary (result 1.2).

    >>> inverse_step_variation([0.5, 0.25, 0.5])
    6.0
    """
    total, before = 0.0, 0.0
    for eta in etas:
        total += abs(1.0 / eta - before)
        before = 1.0 / eta
    return total


def average_with_varying_steps(diameter: float, variation: float, n: float) -> float:
    """Most that the average gradient can be under any positive steps (result 1.2; prop:gd_simple_lrt).

        ||avg g|| <= diameter * variation / n,   diameter = max_s ||theta_s - theta_{n+1}|| <= 2 R

    ``variation`` is :func:`inverse_step_variation`; for nonincreasing steps it is 1/eta_last.
    With nonincreasing steps theta_{t+1} = o(eta_t t) suffices where eta_t t is nondecreasing; "nonincreasing" is
    printed (prop:gd_sublinear_lrt). With eta_t = c/t this asks for theta -> 0; bounded iterates are not enough.

    >>> average_with_varying_steps(2.0, 10.0, 100)
    0.2
    """
    return diameter * variation / n


def average_from_first_step(
    radius: float, diameter: float, eta_first: float, later_variation: float, n: float
) -> float:
    """The same bound with the first step's share at the radius instead of the diameter (result 1.2).

        ||avg g|| <= (R / eta_1 + diameter * sum_{t >= 2} |1/eta_t - 1/eta_{t-1}|) / n

    for theta_1 = 0. It is 1.1 when the step is constant and 1.2 otherwise, and never worse.

    >>> average_from_first_step(1.0, 2.0, 0.5, 0.0, 10)
    0.2
    """
    return (radius / eta_first + diameter * later_variation) / n


def average_with_power_steps(radius: float, c: float, alpha: float, n: float) -> float:
    """The same for eta_t = c t^-alpha, 0 <= alpha < 1: 2 R / (c n^(1 - alpha)) (result 1.2)."""
    return 2.0 * radius / (c * math.pow(n, 1.0 - alpha))


def sum_from_growth(
    growth: float, eta_last: float, variation: float, growth_at_changes: float
) -> float:
    """Most that the sum of gradients can be when ||theta||^2 grew by ``growth`` in all, for any steps (result 1.8).

        ||sum g|| <= R_n/s_n + sum_i R_{i-1} |1/s_i - 1/s_{i-1}|,   R_i^2 the growth up to label i, theta_1 = 0

    by parts. ``variation`` is the sum of the changes |1/s_i - 1/s_{i-1}|, ``growth_at_changes`` that of the changes
    times R_{i-1}^2; the second sum is at most the root of their product (Cauchy-Schwarz), at most a few per cent
    more for decaying steps. With a constant step it is R_n/s.

    >>> sum_from_growth(4.0, 0.5, 0.0, 0.0), sum_from_growth(4.0, 0.5, 1.0, 4.0)
    (4.0, 6.0)
    """
    return math.sqrt(growth) / eta_last + math.sqrt(variation * growth_at_changes)


def growth_from_average(start: float, average: float, eta: float, n: float) -> float:
    """How far the parameter can be after n rounds when the average gradient is small (result 1.3).

        ||theta_{n+1}|| <= ||theta_1|| + eta n ||avg g||

    With :func:`average_from_radius` this is the equivalence of prop:gd_sublinear: with a constant
    step the average gradient vanishes exactly when theta_t = o(t).

    >>> growth_from_average(1.0, 0.1, 0.5, 10)
    1.5
    """
    return abs(start) + eta * n * abs(average)


def mirror_average(
    dual_start: float, normal_start: float, dual_end: float, eta: float, n: float
) -> float:
    """The average of g + n in proximal mirror descent, exactly, one coordinate (result 1.4).

        avg(g_t + n_t) = (grad Phi(theta_1) + eta n_1 - grad Phi(z_{T+1})) / (eta T)

    z_{T+1} is the point before the last proximal step; n_t is the slope of the regulariser (prop:pmd_simple,
    where the printed bound has an index t for T). Choose n_1 = 0 for a constraint set.

    >>> mirror_average(0.0, 0.0, -1.0, 0.1, 100)
    0.1
    """
    return (dual_start + eta * normal_start - dual_end) / (eta * n)


def radius_1d(start: float, horizon: float, lipschitz: float, eta_max: float) -> float:
    """G1, one parameter, zero curvature: max(|theta_1|, h + eta L) (prop:restorative_zero_curv_1d).

    Needs |g| <= L and g(theta) theta >= 0 beyond the horizon h (a zero gradient is allowed there).
    With varying steps eta is the largest one. The paper prints max(|theta_1|, h) + eta L, which is larger.

    >>> radius_1d(0.0, 1.0, 1.0, 0.5)
    1.5
    """
    return max(abs(start), horizon + eta_max * lipschitz)


def radius_zero_curvature(
    start: float, lipschitz: float, step_squares: float, step_horizons: float
) -> float:
    """G2, any dimension, zero curvature: growth like sqrt(T) (prop:restorative_zero_curv).

        R^2 = ||theta_1||^2 + L^2 sum eta_t^2 + 2 L sum eta_t h_t

    ``step_squares`` = sum eta_t^2 (eta^2 T for a constant step), ``step_horizons`` = sum eta_t h_t.
    Attained by gradients of length L that stay orthogonal to theta. With varying steps the average is at
    most 2 R/(eta_T T): the paper's factor on the root is 1, which a spiral violates (prop:restorative_lrt b).

    >>> radius_zero_curvature(0.0, 1.0, 9.0, 8.0)
    5.0
    """
    growth = lipschitz * lipschitz * step_squares + 2.0 * lipschitz * step_horizons
    return math.hypot(start, math.sqrt(growth))


def radius_bounded_pull(
    start: float, kappa: float, lipschitz: float, step_sum: float, step_squares: float
) -> float:
    """G2', any dimension, no horizon: R^2 = ||theta_1||^2 + 2 kappa sum eta + L^2 sum eta^2.

    Needs ||g|| <= L and g_t(theta_t)' theta_t >= -kappa. This is what makes features work without
    a penalty; the paper does not have it.

    >>> radius_bounded_pull(0.0, 2.0, 1.0, 2.0, 1.0)
    3.0
    """
    growth = 2.0 * kappa * step_sum + lipschitz * lipschitz * step_squares
    return math.hypot(start, math.sqrt(growth))


def radius_positive_curvature(
    start: float, horizon: float, lipschitz: float, eta_max: float
) -> float:
    """G3, any dimension: max(||theta_1||, h + eta L) (prop:restorative_pos_curv).

    Needs ||g|| <= L and g'theta >= eta L^2/2 beyond h (with varying steps: eta_t L^2/2).
    """
    return radius_1d(start, horizon, lipschitz, eta_max)


def radius_quadratic_curvature(
    start: float, horizon: float, lipschitz_inside: float, eta_max: float
) -> float:
    """G4, any dimension: max(||theta_1||, h + eta L) with L a bound inside the horizon only.

    Needs ||g|| <= L for ||theta|| <= h and g'theta >= (eta/2)||g||^2 beyond (prop:restorative_quad_curv).
    With varying steps the condition has eta_t, not the eta_t^2 of prop:restorative_lrt (d), under which
    a parabola explodes.
    """
    return radius_1d(start, horizon, lipschitz_inside, eta_max)
