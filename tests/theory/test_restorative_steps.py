"""The restorative propositions in several dimensions with steps that vary, free and projected onto a set."""

import math

import numpy as np
import pytest

from gradeq.theory import (
    average_with_varying_steps,
    inverse_step_variation,
    projected_average,
    radius_positive_curvature,
    radius_quadratic_curvature,
    radius_zero_curvature,
    squared_factor,
)
from theory.adversaries import SLACK

ROUNDS = 250
DIMENSIONS = (2, 3, 6)
STEPS = {
    "decaying": lambda t, rng: 0.8 * t**-0.5,
    "wobbling": lambda t, rng: rng.uniform(0.2, 0.8),
    "growing": lambda t, rng: 0.8 * (1.0 - 0.7 / math.sqrt(t)),
}
SETS = ("ball", "box", "half-space", "line")


def direction(rng: np.random.Generator, d: int) -> np.ndarray:
    v = rng.normal(size=d)
    return v / np.linalg.norm(v)


def turned(theta: np.ndarray, along: float, rng: np.random.Generator) -> np.ndarray:
    """A unit vector whose part along theta is ``along``, the rest at right angles to it."""
    unit = theta / np.linalg.norm(theta)
    across = direction(rng, len(theta))
    across -= (across @ unit) * unit
    across /= np.linalg.norm(across)
    return along * unit + math.sqrt(max(0.0, 1.0 - along * along)) * across


def outward(theta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A gradient that pushes theta straight out, or anywhere at 0."""
    size = float(np.linalg.norm(theta))
    return -theta / size if size > 0.0 and rng.random() < 0.8 else direction(rng, len(theta))


def zero(theta: np.ndarray, h: float, eta: float, rng: np.random.Generator) -> np.ndarray:
    """||g|| <= 1, g'theta >= 0 beyond h: at right angles there, the least that is allowed."""
    if np.linalg.norm(theta) > h:
        return turned(theta, 0.0, rng)
    return outward(theta, rng)


def positive(theta: np.ndarray, h: float, eta: float, rng: np.random.Generator) -> np.ndarray:
    """||g|| <= 1, g'theta >= eta/2 beyond h, with equality."""
    size = float(np.linalg.norm(theta))
    if size > h:
        return turned(theta, min(1.0, eta / (2.0 * size) * (1.0 + 1e-12)), rng)
    return outward(theta, rng)


def quadratic(theta: np.ndarray, h: float, eta: float, rng: np.random.Generator) -> np.ndarray:
    """||g|| <= 1 within h; beyond it any length s with g'theta = (eta/2) s^2, which keeps the norm."""
    size = float(np.linalg.norm(theta))
    if size > h:
        s = rng.uniform(0.05, 1.0) * 2.0 * size / eta
        return s * turned(theta, eta * s / (2.0 * size) * (1.0 - 1e-12) + 1e-12, rng)
    return outward(theta, rng)


def project(z: np.ndarray, where: str) -> np.ndarray:
    """Onto a closed convex set that holds 0."""
    if where == "ball":
        return z * min(1.0, 0.6 / max(float(np.linalg.norm(z)), 1e-300))
    if where == "box":
        return np.clip(z, -0.7, 0.4)
    if where == "half-space":
        normal = np.ones(len(z)) / math.sqrt(len(z))
        return z - max(0.0, float(z @ normal) - 0.3) * normal
    unit = np.ones(len(z)) / math.sqrt(len(z))
    return (z @ unit) * unit


def horizon(t: int) -> float:
    """Horizons may grow."""
    return 1.0 + 0.1 * math.log(t)


def radius_of(field, start: float, steps: list[float], horizons: list[float]) -> float:
    """R of G2, G3 or G4 with L = 1."""
    if field is zero:
        squares = math.fsum(eta * eta for eta in steps)
        reach = math.fsum(eta * h for eta, h in zip(steps, horizons, strict=True))
        return radius_zero_curvature(start, 1.0, squares, reach)
    radius = radius_positive_curvature if field is positive else radius_quadratic_curvature
    return radius(start, horizons[-1], 1.0, max(steps))


@pytest.mark.parametrize("kind", STEPS)
@pytest.mark.parametrize("d", DIMENSIONS)
@pytest.mark.parametrize("field", [zero, positive, quadratic])
def test_no_iterate_leaves_its_radius_and_the_average_follows(field, d: int, kind: str) -> None:
    for seed in range(4):
        rng = np.random.default_rng(seed)
        theta = start = rng.uniform(0.0, 2.0) * direction(rng, d)
        total, steps, horizons, farthest = np.zeros(d), [], [], 0.0
        for t in range(1, ROUNDS + 1):
            eta, h = STEPS[kind](t, rng), horizon(t)
            steps.append(eta)
            horizons.append(max([h, *horizons[-1:]]))
            g = field(theta, h, eta, rng)
            total, theta = total + g, theta - eta * g
            bound = radius_of(field, float(np.linalg.norm(start)), steps, horizons)
            size = float(np.linalg.norm(theta))
            assert size <= bound * SLACK
            farthest = max(farthest, size / bound)
        assert farthest > 0.5  # the players try
        average = float(np.linalg.norm(total)) / ROUNDS
        variation = inverse_step_variation(steps)
        assert average <= average_with_varying_steps(2.0 * bound, variation, ROUNDS) * SLACK


@pytest.mark.parametrize("kind", STEPS)
def test_without_a_horizon_the_spiral_attains_the_radius_for_any_steps(kind: str) -> None:
    rng, theta, steps = np.random.default_rng(5), np.zeros(4), []
    for t in range(1, ROUNDS + 1):
        steps.append(STEPS[kind](t, rng))
        theta = theta - steps[-1] * zero(theta, 0.0, steps[-1], rng)
        bound = radius_zero_curvature(0.0, 1.0, math.fsum(eta * eta for eta in steps), 0.0)
        assert float(np.linalg.norm(theta)) == pytest.approx(bound, rel=1e-9)


@pytest.mark.parametrize("kind", STEPS)
@pytest.mark.parametrize("d", DIMENSIONS)
def test_the_squared_distance_to_a_moving_target_is_quadratic_curvature(d: int, kind: str) -> None:
    """l_t = ||theta - y_t||^2/2 with ||y_t|| <= b: horizon kappa b, L = (1 + kappa) b."""
    rng, b = np.random.default_rng(d), 1.3
    theta, steps = np.zeros(d), []
    for t in range(1, ROUNDS + 1):
        steps.append(STEPS[kind](t, rng))
        y = b * (direction(rng, d) if t % 3 else -theta / max(float(np.linalg.norm(theta)), 1e-9))
        theta = theta - steps[-1] * (theta - y)
        h = squared_factor(max(steps)) * b
        bound = radius_quadratic_curvature(0.0, h, h + b, max(steps))
        assert float(np.linalg.norm(theta)) <= bound * SLACK


@pytest.mark.parametrize("where", SETS)
@pytest.mark.parametrize("field", [zero, positive, quadratic])
def test_projected_forms_keep_the_point_before_the_projection_within_the_radius(field, where: str) -> None:
    """prop:restorative_proj (b), (c), (d): the condition is needed on the set only."""
    outside = 0
    for d in DIMENSIONS:
        for seed in range(4):
            rng = np.random.default_rng(seed)
            theta = start = project(rng.uniform(0.0, 1.5) * direction(rng, d), where)
            eta, h = 0.5, (0.3, 0.9)[seed % 2]
            normal, whole, steps, horizons = np.zeros(d), np.zeros(d), [], []
            for t in range(1, ROUNDS + 1):
                steps.append(eta)
                horizons.append(h)
                g = field(theta, h, eta, rng)
                whole = whole + g + normal
                z = theta - eta * g
                theta = project(z, where)
                normal = (z - theta) / eta
                bound = radius_of(field, float(np.linalg.norm(start)), steps, horizons)
                assert float(np.linalg.norm(z)) <= bound * SLACK
                average = float(np.linalg.norm(whole)) / t
                most = projected_average(float(np.linalg.norm(start)), bound, eta, t)
                assert average <= most * SLACK
                outside += bool(np.linalg.norm(normal) > 1e-9)
    assert outside > ROUNDS  # the set matters


@pytest.mark.parametrize("kind", STEPS)
@pytest.mark.parametrize("field", [zero, positive, quadratic])
def test_projected_iterates_stay_within_the_radius_for_varying_steps(field, kind: str) -> None:
    for where in SETS:
        rng = np.random.default_rng(7)
        theta, steps, horizons = np.zeros(3), [], []
        for t in range(1, ROUNDS + 1):
            eta = STEPS[kind](t, rng)
            steps.append(eta)
            horizons.append(0.5)
            z = theta - eta * field(theta, 0.5, eta, rng)
            theta = project(z, where)
            assert float(np.linalg.norm(z)) <= radius_of(field, 0.0, steps, horizons) * SLACK
