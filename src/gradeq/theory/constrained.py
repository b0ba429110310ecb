"""Penalties (6.1 to 6.7), constraints, mirror descent, missing labels, intervals, levels (7.1 to 8.7)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gradeq.numerics import LAMBERT_W
from gradeq.theory.scalar import Range, quantile_coverage_gap


def lasso_horizon(kappa: float, lipschitz: float, strength: float, eta_max: float) -> float:
    """h = (kappa + eta L^2/2)/lambda, where the lasso overwhelms the outward pull (result 6.1).

    L is that of the penalised gradient, error part plus lambda sqrt(d).
    """
    return (kappa + eta_max * lipschitz * lipschitz / 2.0) / strength


def lasso_radius(start: float, kappa: float, lipschitz: float, strength: float, eta_max: float) -> float:
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


def ridge_constant(b: float, size: float, strength: float, eta_max: float, eta_min: float | None = None) -> float:
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
    start: float, b: float, size: float, strength: float, eta_max: float, eta_min: float | None = None
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


def bounded_ridge_radius(start: float, kappa: float, lipschitz: float, strength: float, eta_max: float) -> float:
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


def penalised_average(start: float, radius: float, penalty_slope: float, eta: float, n: float) -> float:
    """||avg g|| <= (||theta_1|| + R)/(eta n) + the average size of the penalty's slope (result 6.3).

    The slope of a ridge is at most lambda R; of a lasso lambda in each coordinate, lambda sqrt(d) in norm.

    >>> penalised_average(0.0, 1.0, 0.5, 0.1, 100)
    0.6
    """
    return (abs(start) + radius) / (eta * n) + penalty_slope


def proximal_ridge_radius(start: float, growth: float, strength: float, eta: float) -> float:
    """max(||theta_1||, sqrt(K/((1 + eta lambda)^2 - 1))), for (lambda/2)||theta||^2; any strength (result 6.4).

    theta+ = z/(1 + eta lambda), so (1 + eta lambda)^2 ||theta+||^2 <= ||theta||^2 + K, and a theta within the radius
    stays within it. A spiral attains it where K is attained (5.2, 5.3).

    >>> proximal_ridge_radius(0.0, 3.0, 1.0, 1.0)
    1.0
    """
    return max(abs(start), math.sqrt(growth / (eta * strength * (2.0 + eta * strength))))


def proximal_lasso_radius(start: float, growth: float, strength: float, eta: float) -> float:
    """max(||theta_1||, (K/(eta lambda) - eta lambda)/2), for lambda ||theta||_1; any strength (result 6.5).

    z = theta+ + eta lambda s with s a slope of ||theta+||_1, so ||z||^2 = ||theta+||^2 + 2 eta lambda ||theta+||_1 +
    (eta lambda ||s||)^2. Unless theta+ is 0, ||s|| >= 1 and ||theta+||_1 >= ||theta+||, so
    (||theta+|| + eta lambda)^2 <= ||theta||^2 + K, and a theta within the radius stays within it. It covers the
    squared error too.

    >>> proximal_lasso_radius(0.0, 3.0, 1.0, 1.0)
    1.0
    """
    cut = eta * strength
    return max(abs(start), (growth / cut - cut) / 2.0)


def proximal_ridge_closed_radius(growth: float, strength: float, eta: float, n: float) -> float:
    """R of R^2 <- (R^2 + K)/(1 + eta lambda)^2 from 0 after n rounds (result 6.4), at most sqrt(n K).

    >>> proximal_ridge_closed_radius(4.0, 1.0, 1.0, 1)
    1.0
    """
    kept = 1.0 / (1.0 + eta * strength)
    return kept * ridge_closed_radius(growth, kept, n)


def projected_average(start: float, radius: float, eta: float, n: float) -> float:
    """||avg(g + n)|| of projected descent: (||theta_1|| + R)/(eta n), R from G1 to G4 (result 7.1).

    The set must be closed and convex and hold 0; the restorative condition is needed on the set only
    (prop:restorative_proj).

    >>> projected_average(0.0, 1.0, 0.1, 100)
    0.1
    """
    return (abs(start) + radius) / (eta * n)


def mirror_average_on_compact(
    dual_start: float, mirror_bound: float, last_gradient: float, eta: float, n: float
) -> float:
    """||avg(g + n)|| on a compact set: (||grad Phi(theta_1)|| + M)/(eta n) + ||g_n||/n (result 7.2).

    M bounds the mirror map on the set, which must be closed (prop:finite_mirror omits it).

    >>> mirror_average_on_compact(1.0, 2.0, 1.0, 0.1, 100)
    0.31
    """
    return (dual_start + mirror_bound) / (eta * n) + last_gradient / n


def floored_simplex_mirror(k: int, floor: float) -> float:
    """Largest ||log w|| on {w_i >= eps, sum w = 1}: at a vertex (result 7.3); infinite for eps = 0.

    >>> floored_simplex_mirror(3, 0.0)
    inf
    """
    if floor <= 0.0:
        return math.inf
    top = max(1.0 - (k - 1) * floor, 0.0)
    return math.sqrt((k - 1) * math.log(floor) ** 2 + math.log(top) ** 2)


def floored_simplex_distance(k: int, floor: float) -> float:
    """Largest ||log w - log(1/K)|| on the floored simplex, from the uniform start (result 7.3).

    >>> floored_simplex_distance(2, 0.5)
    0.0
    """
    if floor <= 0.0:
        return math.inf
    top = 1.0 - (k - 1) * floor
    return math.sqrt((k - 1) * math.log(k * floor) ** 2 + math.log(k * top) ** 2)


def floored_simplex_average(k: int, floor: float, last_gradient: float, eta: float, n: float) -> float:
    """||avg(g + n)|| of exponentiated gradient with exact KL projection on the floored simplex (result 7.3).

    D/(eta n) + ||g_n||/n from uniform weights; needs K eps <= 1.
    """
    return floored_simplex_distance(k, floor) / (eta * n) + last_gradient / n


def simplex_gradient_gap(average: float) -> float:
    """avg g_i - avg g_j for i never floored: at most sqrt(2) times the bound on avg(g + n) (result 7.3).

    Two-sided if j is never floored either.

    >>> simplex_gradient_gap(1.0) == math.sqrt(2.0)
    True
    """
    return math.sqrt(2.0) * average


def in_simplex_normal_cone(v: list[float], w: list[float], tolerance: float = 0.0) -> bool:
    """Whether v is normal to the simplex at w: equal on the support, no larger off it (result 7.4).

    The set that the paper prints is larger: it contains directions that point into the simplex.

    >>> in_simplex_normal_cone([0.0, 1.0], [1.0, 0.0])
    False
    """
    alpha = max(v)
    return all(a >= alpha - tolerance for a, mass in zip(v, w, strict=True) if mass > 0.0)


def affine_residual(average: list[float], basis: list[list[float]]) -> float:
    """||U'avg g||: what must vanish on {A theta = b}, U an orthonormal basis of null(A) (result 7.4).

    >>> affine_residual([1.0, 1.0], [[0.5**0.5, -(0.5**0.5)]])
    0.0
    """
    parts = (sum(u * a for u, a in zip(row, average, strict=True)) for row in basis)
    return math.sqrt(sum(part**2 for part in parts))


def ensemble_residual_bound(b: float, etas: list[float]) -> float:
    """Residual range of an ensemble of quantile trackers: b + max_k(b + nu_k) (result 7.5).

    >>> ensemble_residual_bound(1.0, [0.5, 0.25])
    2.5
    """
    return b + b + max(etas)


def ensemble_coverage_gap(b: float, etas: list[float], level: float, final_eta: float, n: float) -> float:
    """|coverage - tau| of an ensemble followed by one final tracker (result 7.5, by 3.1).

    Without the final tracker nothing is proven: alg:quantile-ensembling can be held off its level.
    """
    reach = ensemble_residual_bound(b, etas)
    return quantile_coverage_gap(0.0, -reach, reach, level, final_eta, n)


def observed_average(start: float, radius: float, eta: float, observed: float) -> float:
    """Missing labels: every bound with the number of OBSERVED rounds, about those rounds only (8.2).

    Nothing is implied for rounds whose label never came; result D7 says what propensities restore.

    >>> observed_average(0.0, 1.0, 0.1, 100)
    0.1
    """
    return (abs(start) + radius) / (eta * observed)


def propensity_lipschitz(lipschitz: float, propensity_min: float) -> float:
    """Size of an inverse-propensity gradient g/pi: L/pi_min (result 8.2).

    >>> propensity_lipschitz(1.0, 0.5)
    2.0
    """
    return lipschitz / propensity_min


def two_sided_coverage(upper_coverage: float, lower_coverage: float, crossing: float) -> float:
    """Coverage of [lo, hi] from its two trackers: c_hi - c_lo + frequency of hi < y < lo (result 8.4).

    c_hi counts y <= hi, c_lo counts y < lo. Crossing only adds: coverage >= 1 - alpha - e_hi - e_lo always.

    >>> two_sided_coverage(0.95, 0.05, 0.0)
    0.8999999999999999
    """
    return upper_coverage - lower_coverage + crossing


def two_sided_shortfall(upper_gap: float, lower_gap: float) -> float:
    """Most by which two-sided coverage can fall short of its target: the two gaps added (result 8.4).

    >>> two_sided_shortfall(0.01, 0.02)
    0.03
    """
    return upper_gap + lower_gap


def isotonic_ranges(
    levels: Sequence[float],
    lows: Sequence[float],
    highs: Sequence[float],
    gaps: Sequence[float],
    eta_max: float,
    zero_scale_rounds: float = 0,
) -> list[Range]:
    """Where each u_k can be under lazy isotonic projection, from u_1 = 0 (result 8.6).

        u_k in [low_k - eta (1 - tau_k) - sum_{j<k} (G_j + v_j), high_k + eta tau_k + sum_{j>=k} (G_j + v_j)]
        v_j = eta (1 - (tau_{j+1} - tau_j))

    and 0. y - f_k in [low_k, high_k], ``gaps`` G_j = largest f_{j+1} - f_j (K - 1 of them, 0 with one
    base forecast). |coverage_k - tau_k| <= radius/(eta n). Needs the equal-weights L2 isotonic projection:
    sorting the levels or projecting greedily does not work. A round served while the scale of a sinh link was
    0 ignores u, so each such round may add one step to every u_k and one v_j to every gap.

    >>> isotonic_ranges([0.25, 0.75], [-1.0, -1.0], [1.0, 1.0], [0.0], 0.5)
    [Range(low=-1.375, high=1.375), Range(low=-1.375, high=1.375)]
    """
    drops = [
        gap + (1.0 + zero_scale_rounds) * eta_max * (1.0 - (upper - lower))
        for gap, lower, upper in zip(gaps, levels[:-1], levels[1:], strict=True)
    ]
    ranges = []
    for k, (level, low, high) in enumerate(zip(levels, lows, highs, strict=True)):
        down, up = eta_max * (1.0 - level), eta_max * level
        ranges.append(
            Range(
                min(0.0, low - down - math.fsum(drops[:k])) - zero_scale_rounds * down,
                max(0.0, high + up + math.fsum(drops[k:])) + zero_scale_rounds * up,
            )
        )
    return ranges


def lazy_growth(kappa: float, normal_kappa: float, lipschitz: float, eta: float, n: float) -> float:
    """Growth of ||u||^2 under lazy projection: n (2 eta (kappa + kappa_n) + eta^2 L^2) (result 8.7).

    g'theta >= -kappa, g'(u - theta) >= -kappa_n (0 when the negative gradient points into the set). Without
    such an inward flow ||u|| can grow linearly.

    >>> lazy_growth(1.0, 0.0, 1.0, 1.0, 3)
    9.0
    """
    return n * (2.0 * eta * (kappa + normal_kappa) + eta**2 * lipschitz**2)
