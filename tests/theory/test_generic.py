"""Identities that hold for every run, and iterate bounds that restorative losses imply."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradeq.theory import (
    average_from_first_step,
    average_from_radius,
    average_gradient,
    average_with_power_steps,
    average_with_varying_steps,
    growth_from_average,
    inverse_step_variation,
    mirror_average,
    radius_1d,
    radius_bounded_pull,
    radius_positive_curvature,
    radius_quadratic_curvature,
    radius_zero_curvature,
)
from theory.adversaries import SLACK

steps = st.lists(st.floats(0.01, 2.0), min_size=1, max_size=30)


@given(steps, st.integers(0, 10**6), st.floats(-5, 5))
def test_the_average_gradient_is_bounded_by_the_path_for_any_steps(
    etas: list[float], seed: int, start: float
) -> None:
    rng, theta, path, total = random.Random(seed), start, [start], 0.0
    for eta in etas:
        g = rng.uniform(-3, 3)
        total += g
        theta -= eta * g
        path.append(theta)
    n = len(etas)
    diameter = max(abs(p - theta) for p in path)
    bound = average_with_varying_steps(diameter, inverse_step_variation(etas), n)
    assert abs(total / n) <= bound * SLACK + 1e-9
    later = inverse_step_variation(etas) - 1.0 / etas[0]
    sharper = average_from_first_step(abs(start - theta), diameter, etas[0], later, n)
    assert abs(total / n) <= sharper * SLACK + 1e-9
    assert sharper <= bound * SLACK + 1e-9


@given(st.floats(0.01, 2.0), st.integers(1, 50), st.integers(0, 10**6), st.floats(-5, 5))
def test_the_average_gradient_is_the_displacement(eta: float, n: int, seed: int, start: float) -> None:
    rng, theta, total, radius = random.Random(seed), start, 0.0, abs(start)
    for _ in range(n):
        g = rng.uniform(-3, 3)
        total += g
        theta -= eta * g
        radius = max(radius, abs(theta))
    assert average_gradient(start, theta, eta, n) == pytest.approx(total / n, abs=1e-12)
    assert mirror_average(start, 0.0, theta, eta, n) == average_gradient(start, theta, eta, n)
    assert abs(total / n) <= average_from_radius(start, radius, eta, n) * SLACK
    assert abs(theta) <= growth_from_average(start, total / n, eta, n) * SLACK + 1e-9


@given(st.floats(0, 3), st.floats(0.1, 2), st.floats(0.01, 3), st.integers(0, 10**6))
def test_one_dimension_needs_only_the_sign_beyond_the_horizon(
    h: float, lipschitz: float, eta: float, seed: int
) -> None:
    rng = random.Random(seed)
    theta = start = rng.uniform(-4, 4)
    bound = radius_1d(start, h, lipschitz, eta)
    for _ in range(100):
        g = rng.choice((-1, 1, 0)) * lipschitz
        if abs(theta) > h:
            g = math.copysign(rng.choice((0.0, 1.0)) * lipschitz, theta)
        elif rng.random() < 0.5:
            g = -math.copysign(lipschitz, theta)
        theta -= eta * g
        assert abs(theta) <= bound * SLACK


def test_the_one_dimensional_bound_is_attained() -> None:
    theta, h, eta = 1.0, 1.0, 0.5
    theta -= eta * -1.0  # at the horizon the gradient may still push outward
    assert theta == radius_1d(0.0, h, 1.0, eta)


@pytest.mark.parametrize("h", [0.0, 1.0])
def test_the_spiral_attains_the_zero_curvature_bound(h: float) -> None:
    eta, lipschitz, rounds = 0.3, 2.0, 500
    x, y = 0.0, 0.0
    for t in range(1, rounds + 1):
        size = math.hypot(x, y)
        ux, uy = (-y / size, x / size) if size else (1.0, 0.0)
        x, y = x - eta * lipschitz * ux, y - eta * lipschitz * uy
        bound = radius_zero_curvature(0.0, lipschitz, eta**2 * t, eta * h * t)
        assert math.hypot(x, y) <= bound * SLACK
    if h == 0.0:
        assert math.hypot(x, y) == pytest.approx(bound, rel=1e-12)


def test_the_bounded_pull_growth_is_attained() -> None:
    eta, kappa, lipschitz = 0.1, 0.5, 1.0
    x, y = 3.0, 0.0
    start = math.hypot(x, y)
    for t in range(1, 301):
        size = math.hypot(x, y)
        along = -kappa / (lipschitz * size)  # g'theta = -kappa with ||g|| = L
        across = math.sqrt(1 - along**2)
        gx = lipschitz * (along * x - across * y) / size
        gy = lipschitz * (along * y + across * x) / size
        x, y = x - eta * gx, y - eta * gy
        bound = radius_bounded_pull(start, kappa, lipschitz, eta * t, eta**2 * t)
        assert math.hypot(x, y) == pytest.approx(bound, rel=1e-9)


@given(st.floats(0.05, 1.0), st.floats(0.0, 3.0), st.integers(0, 10**6))
def test_positive_curvature_keeps_every_dimension_bounded(eta: float, h: float, seed: int) -> None:
    rng, lipschitz = random.Random(seed), 1.0
    theta = [0.0, 0.0]
    bound = radius_positive_curvature(0.0, max(h, eta * lipschitz / 2), lipschitz, eta)
    h = max(h, eta * lipschitz / 2)
    for _ in range(150):
        size = math.hypot(*theta)
        angle = rng.uniform(0, 2 * math.pi)
        g = [lipschitz * math.cos(angle), lipschitz * math.sin(angle)]
        if size > h:
            along = min(1.0, eta * lipschitz / (2 * size) * 1.000001)  # the least curvature allowed
            across = math.sqrt(1 - along**2) * rng.choice((-1, 1))
            u, v = theta[0] / size, theta[1] / size
            g = [lipschitz * (along * u - across * v), lipschitz * (along * v + across * u)]
        elif size > 0 and rng.random() < 0.7:
            g = [-lipschitz * a / size for a in theta]
        theta = [a - eta * b for a, b in zip(theta, g, strict=True)]
        assert math.hypot(*theta) <= bound * SLACK


@given(st.floats(0.05, 1.9), st.floats(0.1, 5.0), st.integers(0, 10**6))
def test_quadratic_curvature_holds_for_the_squared_error(eta: float, b: float, seed: int) -> None:
    rng, theta = random.Random(seed), 0.0
    h = b * max(1.0, eta / (2.0 - eta))
    bound = radius_quadratic_curvature(0.0, h, h + b, eta)
    for _ in range(100):
        y = rng.choice((-b, b, rng.uniform(-b, b), -math.copysign(b, theta)))
        theta -= eta * (theta - y)
        assert abs(theta) <= bound * SLACK


@pytest.mark.parametrize("alpha", [0.2, 0.5, 0.8])
def test_power_steps_keep_the_average_small(alpha: float) -> None:
    rng, theta, total, c = random.Random(1), 0.0, 0.0, 0.5
    for t in range(1, 2001):
        g = (1.0 if rng.uniform(-1, 1) <= theta else 0.0) - 0.9
        total += g
        theta -= c * t**-alpha * g
        radius = radius_1d(0.0, 1.0, 0.9, c)
        assert abs(total / t) <= average_with_power_steps(radius, c, alpha, t) * SLACK
