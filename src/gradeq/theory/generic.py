"""Bounds on average gradients, on iterates of restorative losses, and on regret (results 1.1 to 1.10, G1 to G4)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from gradeq.numerics import LAMBERT_W
from gradeq.theory.scalar import logistic_horizon, squared_factor
from gradeq.theory.setting import Floats

UNDERFLOW = 2.0**-1022  # largest error of an underflowing square


def average_gradient(start: float, end: float, eta: float, n: float) -> float:
    """The exact average gradient of a constant-step run, from its first and last iterate (results 1.1, 1.5, 1.6).

        (1/n) sum g_t = (u_start - u_end) / (eta n)

    Holds without assumptions, for each coordinate. For a lazily projected layer, use the unprojected u. With late or
    missing labels, the average is over the applied gradients.

    >>> average_gradient(0.0, -1.0, 0.1, 100)
    0.1
    """
    return (start - end) / (eta * n)


def average_from_radius(start: float, radius: float, eta: float, n: float) -> float:
    """A bound on the average gradient if all iterates stay within ``radius`` (result 1.1).

        ||avg g|| <= (||theta_1|| + R) / (eta n)

    The line after prop:gd_simple in the paper lacks the eta.

    >>> average_from_radius(0.0, 1.0, 0.5, 10)
    0.2
    """
    return (abs(start) + radius) / (eta * n)


def inverse_step_variation(etas: Iterable[float]) -> float:
    """1/eta_1 + sum |1/eta_t - 1/eta_{t-1}|, which replaces 1/eta if steps vary (result 1.2).

    >>> inverse_step_variation([0.5, 0.25, 0.5])
    6.0
    """
    total, before = 0.0, 0.0
    for eta in etas:
        total += abs(1.0 / eta - before)
        before = 1.0 / eta
    return total


def average_with_varying_steps(diameter: float, variation: float, n: float) -> float:
    """A bound on the average gradient for any positive steps (result 1.2; prop:gd_simple_lrt).

        ||avg g|| <= diameter * variation / n,   diameter = max_s ||theta_s - theta_{n+1}|| <= 2 R

    ``variation`` is :func:`inverse_step_variation`; for nonincreasing steps it is 1/eta_last.
    With nonincreasing steps, theta_{t+1} = o(eta_t t) suffices if eta_t t is nondecreasing. (prop:gd_sublinear_lrt
    prints "nonincreasing".) With eta_t = c/t this requires theta -> 0; bounded iterates are not enough.

    >>> average_with_varying_steps(2.0, 10.0, 100)
    0.2
    """
    return diameter * variation / n


def average_from_first_step(
    radius: float, diameter: float, eta_first: float, later_variation: float, n: float
) -> float:
    """The bound for varying steps, with the radius in place of the diameter at the first step (result 1.2).

        ||avg g|| <= (R / eta_1 + diameter * sum_{t >= 2} |1/eta_t - 1/eta_{t-1}|) / n

    for theta_1 = 0. For a constant step it equals result 1.1; it is never worse than result 1.2.

    >>> average_from_first_step(1.0, 2.0, 0.5, 0.0, 10)
    0.2
    """
    return (radius / eta_first + diameter * later_variation) / n


def average_with_power_steps(radius: float, c: float, alpha: float, n: float) -> float:
    """The bound for steps eta_t = c t^-alpha, 0 <= alpha < 1: 2 R / (c n^(1 - alpha)) (result 1.2)."""
    return 2.0 * radius / (c * math.pow(n, 1.0 - alpha))


def sum_from_growth(growth: float, eta_last: float, variation: float, growth_at_changes: float) -> float:
    """A bound on the sum of gradients if ||theta||^2 grew by ``growth``, for any steps (result 1.8).

        ||sum g|| <= R_n/s_n + sum_i R_{i-1} |1/s_i - 1/s_{i-1}|,   R_i^2 the growth up to label i, theta_1 = 0

    by summation by parts. ``variation`` is the sum of the changes |1/s_i - 1/s_{i-1}|; ``growth_at_changes`` is the
    sum of the changes times R_{i-1}^2. By Cauchy-Schwarz the second sum is at most the root of their product, which
    costs a few per cent at most for decaying steps. With a constant step the bound is R_n/s.

    >>> sum_from_growth(4.0, 0.5, 0.0, 0.0), sum_from_growth(4.0, 0.5, 1.0, 4.0)
    (4.0, 6.0)
    """
    return math.sqrt(growth) / eta_last + math.sqrt(variation * growth_at_changes)


def growth_from_average(start: float, average: float, eta: float, n: float) -> float:
    """A bound on the parameter after n rounds, from the average gradient (result 1.3).

        ||theta_{n+1}|| <= ||theta_1|| + eta n ||avg g||

    Together with :func:`average_from_radius` this proves prop:gd_sublinear: with a constant step, the average
    gradient vanishes if and only if theta_t = o(t).

    >>> growth_from_average(1.0, 0.1, 0.5, 10)
    1.5
    """
    return abs(start) + eta * n * abs(average)


def mirror_average(dual_start: float, normal_start: float, dual_end: float, eta: float, n: float) -> float:
    """The exact average of g + n in proximal mirror descent, for one coordinate (result 1.4).

        avg(g_t + n_t) = (grad Phi(theta_1) + eta n_1 - grad Phi(z_{T+1})) / (eta T)

    z_{T+1} is the point before the last proximal step; n_t is the slope of the regulariser. Choose n_1 = 0
    for a constraint set. (The bound printed in prop:pmd_simple has an index t for T.)

    >>> mirror_average(0.0, 0.0, -1.0, 0.1, 100)
    0.1
    """
    return (dual_start + eta * normal_start - dual_end) / (eta * n)


def radius_1d(start: float, horizon: float, lipschitz: float, eta_max: float) -> float:
    """G1, one parameter, zero curvature: max(|theta_1|, h + eta L) (prop:restorative_zero_curv_1d).

    Needs |g| <= L, and g(theta) theta >= 0 beyond the horizon h, where the gradient may be zero. With varying steps,
    eta is the largest one. The paper prints max(|theta_1|, h) + eta L, which is larger.

    >>> radius_1d(0.0, 1.0, 1.0, 0.5)
    1.5
    """
    return max(abs(start), horizon + eta_max * lipschitz)


def radius_zero_curvature(start: float, lipschitz: float, step_squares: float, step_horizons: float) -> float:
    """G2, any dimension, zero curvature: growth like sqrt(T) (prop:restorative_zero_curv).

        R^2 = ||theta_1||^2 + L^2 sum eta_t^2 + 2 L sum eta_t h_t

    ``step_squares`` = sum eta_t^2 (eta^2 T for a constant step), ``step_horizons`` = sum eta_t h_t.
    Attained by gradients of length L that stay orthogonal to theta. With varying steps the average is at
    most 2 R/(eta_T T). The paper has a factor 1 on the root, which a spiral violates (prop:restorative_lrt b).

    >>> radius_zero_curvature(0.0, 1.0, 9.0, 8.0)
    5.0
    """
    growth = lipschitz * lipschitz * step_squares + 2.0 * lipschitz * step_horizons
    return math.hypot(start, math.sqrt(growth))


def radius_bounded_pull(start: float, kappa: float, lipschitz: float, step_sum: float, step_squares: float) -> float:
    """G2', any dimension, no horizon: R^2 = ||theta_1||^2 + 2 kappa sum eta + L^2 sum eta^2.

    Needs ||g|| <= L and g_t(theta_t)' theta_t >= -kappa. It covers features without a penalty, and goes beyond the
    paper.

    >>> radius_bounded_pull(0.0, 2.0, 1.0, 2.0, 1.0)
    3.0
    """
    growth = 2.0 * kappa * step_sum + lipschitz * lipschitz * step_squares
    return math.hypot(start, math.sqrt(growth))


def radius_positive_curvature(start: float, horizon: float, lipschitz: float, eta_max: float) -> float:
    """G3, any dimension: max(||theta_1||, h + eta L) (prop:restorative_pos_curv).

    Needs ||g|| <= L and g'theta >= eta L^2/2 beyond h (with varying steps: eta_t L^2/2).
    """
    return radius_1d(start, horizon, lipschitz, eta_max)


def radius_quadratic_curvature(start: float, horizon: float, lipschitz_inside: float, eta_max: float) -> float:
    """G4, any dimension: max(||theta_1||, h + eta L), where L bounds the gradient inside the horizon.

    Needs ||g|| <= L for ||theta|| <= h and g'theta >= (eta/2)||g||^2 beyond (prop:restorative_quad_curv).
    With varying steps the condition has eta_t. Under the eta_t^2 of prop:restorative_lrt (d) a parabola diverges.
    """
    return radius_1d(start, horizon, lipschitz_inside, eta_max)


class Restorative(NamedTuple):
    """Beyond ``horizon`` the negative gradient points back; ``lipschitz`` bounds |g| (inside it, if quadratic).

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
    """The least value of g(u) u for the logistic mean: -W0(1/e) (b - a) (lem:logistic_grad_inner_prod).

    The paper rounds the constant to 0.279.

    >>> round(logistic_pull_floor(1.0), 4)
    -0.2785
    """
    return -LAMBERT_W * span


def squared_pull_floor(a1: float, a2: float, b: float) -> float:
    """The least value of a1 g(u) u - a2 g(u)^2 for g(u) = u - y, |y| <= b, a1 > a2 (lem:squared_grad_inner_prod).

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

    The paper's sqrt(eta/2) L/alpha is too small for alpha > 1. Use it on a bounded set: strong monotonicity
    everywhere contradicts a global L.

    >>> round(monotone_horizon_positive(1.0, 4.0, 2.0, 4.0), 3)
    2.129
    """
    kappa = eta * lipschitz**2 / 2.0
    return (b + math.sqrt(b**2 + 4.0 * alpha * kappa)) / (2.0 * alpha)


def monotone_horizon_positive_simple(b: float, alpha: float, eta: float, lipschitz: float) -> float:
    """A simpler, larger horizon for positive curvature: b/alpha + L sqrt(eta/(2 alpha)).

    >>> monotone_horizon_positive_simple(1.0, 1.0, 2.0, 1.0)
    2.0
    """
    return b / alpha + lipschitz * math.sqrt(eta / (2.0 * alpha))


def monotone_horizon_quadratic(b: float, alpha: float, beta: float, eta: float) -> float:
    """Quadratic curvature under beta-co-coercivity, eta < 2/beta: h = b (1 + sqrt(1 - 2 eta A))/(2 A).

    A = alpha (1 - eta beta/2). The horizon is attained, and infinite from eta = 2/beta on. The printed one is larger;
    its proof drops a factor A under the root.

    >>> monotone_horizon_quadratic(1.0, 1.0, 1.0, 1.0)
    1.0
    """
    a = alpha * (1.0 - eta * beta / 2.0)
    if a <= 0.0:
        return math.inf
    return b * (1.0 + math.sqrt(max(0.0, 1.0 - 2.0 * eta * a))) / (2.0 * a)


def monotone_horizon_quadratic_simple(b: float, alpha: float, beta: float, eta: float) -> float:
    """A simpler, larger horizon for quadratic curvature: b/A.

    >>> monotone_horizon_quadratic_simple(1.0, 1.0, 1.0, 1.0)
    2.0
    """
    a = alpha * (1.0 - eta * beta / 2.0)
    return b / a if a > 0.0 else math.inf


def descent_regret(distance: float, variation: float, lipschitz: float, step_sum: float) -> float:
    """A bound on the regret of descent against one fixed u, without projection (result 1.7).

        sum l_t(theta_t) - l_t(u) <= (D^2 V + L^2 sum eta_t)/2,   D >= ||theta_t - u||,  L >= ||g_t(theta_t)||

    V is :func:`gradeq.theory.inverse_step_variation`, 1/eta_last for nonincreasing steps. With
    a_t = ||theta_t - u||^2, convexity gives 2 (l_t(theta_t) - l_t(u)) <= 2 g_t'(theta_t - u) =
    (a_t - a_{t+1})/eta_t + eta_t ||g_t||^2. Summed by parts, the first terms are at most D^2 V, because every a_t
    lies in [0, D^2]. G1 to G4 give D on the whole space; the remark after prop:restorative_lrt needs a bounded set.

    >>> descent_regret(2.0, 10.0, 1.0, 4.0)
    22.0
    """
    return (distance * distance * variation + lipschitz * lipschitz * step_sum) / 2.0


def regret_with_power_steps(distance: float, lipschitz: float, c: float, alpha: float, n: float) -> float:
    """The regret per round for steps eta_t = c t^-alpha, 0 <= alpha < 1 (result 1.7).

        D^2/(2 c n^(1 - alpha)) + c L^2/(2 (1 - alpha) n^alpha)

    because sum t^-alpha <= n^(1 - alpha)/(1 - alpha). For 0 < alpha < 1 both terms vanish, and so does
    :func:`gradeq.theory.average_with_power_steps`: no regret AND equilibrium. At alpha = 0 the
    regret need not vanish.

    >>> regret_with_power_steps(2.0, 1.0, 1.0, 0.5, 4)
    1.5
    """
    first = distance * distance / (2.0 * c * math.pow(n, 1.0 - alpha))
    return first + c * lipschitz * lipschitz / (2.0 * (1.0 - alpha) * math.pow(n, alpha))


def spread_total(
    radius: float, errors: Floats, n: Floats, mass: Floats, squares: Floats, largest: float = 1.0
) -> Floats:
    """The least k R + Z sqrt(sum e^2 x sum (1 - k s)^2) over k, from sums over n labels of weight 1 (result 1.10).

    For every k the sum of gradients is k sum s g + sum (1 - k s) g. The first term is k (theta_1 - theta_{n+1}); the
    second is bounded by Cauchy-Schwarz. sum (1 - k s)^2 = n - 2 k ``mass`` + k^2 ``squares`` is 0 for a constant step
    1/k, which gives result 1.1. Labels may come late and in any order. ``errors`` is the sum of e^2, ``largest`` the
    largest |z|.

    >>> float(spread_total(1.0, 100.0, 100.0, 10.0, 1.0)) - 10.0 < 1e-4  # a constant step of .1
    True
    >>> round(float(spread_total(1.0, 100.0, 100.0, 10.0, 1.04)), 1)  # with a spread of a fifth
    29.1
    """
    errors, n, mass, squares = (np.asarray(x, dtype=float) for x in (errors, n, mass, squares))
    squares = squares + n * UNDERFLOW
    with np.errstate(all="ignore"):
        even = mass / squares
        least = np.fmax(n - mass * even, 0.0)
        room = largest * largest * errors * squares - radius * radius
        shift = radius * np.sqrt(least / squares) / np.sqrt(np.where(room > 0.0, room, np.nan))
        best = np.full_like(even, np.inf)
        for k in (even, np.where(even > shift, even - shift, even)):
            spread = n - 2.0 * k * mass + k * k * squares
            lost = (n + 16.0) * 2.0**-52 * (n + 2.0 * k * mass + k * k * squares)
            total = k * radius + largest * np.sqrt(errors) * np.sqrt(np.fmax(spread, 0.0) + lost)
            best = np.fmin(best, np.where(np.isnan(total), np.inf, total))
    return best * (1.0 + 1e-12)
