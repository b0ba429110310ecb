"""Constraints and mirror descent: results 7.1 to 7.5. They bound avg(g + n), NOT avg g.

n_t is the part of the step that the constraint took back. On the full simplex with the entropy the
mirror is unbounded, so exponentiated gradient has no guarantee there; a floor gives one. Equilibrium on a
simplex does not give coverage: result 7.5 does.
"""

from __future__ import annotations

import math

from gradeq.theory.scalar import quantile_coverage_gap


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


def floored_simplex_average(
    k: int, floor: float, last_gradient: float, eta: float, n: float
) -> float:
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


def ensemble_coverage_gap(
    b: float, etas: list[float], level: float, final_eta: float, n: float
) -> float:
    """|coverage - tau| of an ensemble followed by one final tracker (result 7.5, by 3.1).

    Without the final tracker nothing is proven: alg:quantile-ensembling can be held off its level.
    """
    reach = ensemble_residual_bound(b, etas)
    return quantile_coverage_gap(0.0, -reach, reach, level, final_eta, n)
