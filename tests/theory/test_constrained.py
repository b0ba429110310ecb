"""Projected and mirror descent: what is bounded is the average of gradient plus normal part."""

import math
import random

import pytest

from gradeq.theory import (
    affine_residual,
    ensemble_coverage_gap,
    ensemble_residual_bound,
    floored_simplex_average,
    floored_simplex_distance,
    floored_simplex_mirror,
    in_simplex_normal_cone,
    mirror_average,
    mirror_average_on_compact,
    projected_average,
    radius_1d,
    simplex_gradient_gap,
)
from theory.adversaries import SLACK
from theory.simplex import floored_run, project


def test_projected_descent_bounds_gradient_plus_normal_part() -> None:
    rng = random.Random(1)
    for _ in range(60):
        eta, c, level = rng.choice((0.05, 0.4)), rng.uniform(0.2, 3.0), rng.uniform(0.1, 0.9)
        theta, normal, whole, plain, b = 0.0, 0.0, 0.0, 0.0, 1.5
        for t in range(1, 301):
            y = rng.choice((-b, b, rng.uniform(-b, b)))
            g = (y <= theta) - level
            whole, plain = whole + g + normal, plain + g
            z = theta - eta * g
            theta = max(-c, min(c, z))
            normal = (z - theta) / eta
            radius = radius_1d(0.0, b, max(level, 1 - level), eta)
            assert abs(z) <= radius * SLACK
            assert abs(whole / t) <= projected_average(0.0, radius, eta, t) * SLACK
            assert mirror_average(0.0, 0.0, z, eta, t) == pytest.approx(whole / t, abs=1e-9)


def test_the_average_gradient_itself_need_not_vanish() -> None:
    theta, total, rounds = 0.0, 0.0, 1000
    for _ in range(rounds):
        g = theta - 5.0  # the minimiser lies outside [-1, 1]
        total += g
        theta = max(-1.0, min(1.0, theta - 0.1 * g))
    assert abs(total / rounds) > 3.9


@pytest.mark.parametrize("floor", [0.001, 0.05, 0.2])
def test_the_floored_simplex_keeps_its_bound(floor: float) -> None:
    rng, closest = random.Random(4), 0.0
    for _ in range(40):
        k, eta, n = rng.choice((2, 3, 5)), rng.choice((0.1, 1.0)), 200
        lean = rng.choice((0.0, 1.0))
        gradients = [[rng.uniform(-1, 1) * (1 - lean) + lean * (i > 0) for i in range(k)] for _ in range(n)]
        path, plain, whole = floored_run(gradients, floor, eta)
        last = math.hypot(*gradients[-1])
        bound = floored_simplex_average(k, floor, last, eta, n)
        assert math.hypot(*whole) <= bound * SLACK
        closest = max(closest, math.hypot(*whole) / bound)
        mirror = floored_simplex_mirror(k, floor)
        assert all(math.hypot(*map(math.log, w)) <= mirror * SLACK for w in path)
        start = math.sqrt(k) * math.log(k)
        assert bound <= mirror_average_on_compact(start, mirror, last, eta, n) * SLACK
        free = [i for i in range(k) if all(w[i] > floor * (1 + 1e-9) for w in path)]
        for i in free:
            gap = max(plain[i] - plain[j] for j in range(k))
            assert gap <= simplex_gradient_gap(bound) * SLACK
    assert closest > 0.6
    assert floored_simplex_distance(3, 0.0) == floored_simplex_mirror(3, 0.0) == math.inf


def test_the_projection_is_the_nearest_point_in_relative_entropy() -> None:
    rng = random.Random(9)

    def divergence(w: list[float], z: list[float]) -> float:
        return sum(a * math.log(a / b) - a + b for a, b in zip(w, z, strict=True))

    for _ in range(100):
        k, floor = rng.choice((2, 3, 6)), 0.05
        z = [rng.expovariate(1) + 1e-6 for _ in range(k)]
        w = project(z, floor)
        assert sum(w) == pytest.approx(1.0) and min(w) >= floor
        for _ in range(20):
            other = [floor + (1 - k * floor) * x for x in project(
                [rng.expovariate(1) for _ in range(k)], 1e-9)]  # fmt: skip
            assert divergence(w, z) <= divergence(other, z) + 1e-9


def test_the_normal_cone_of_the_simplex_has_no_inward_direction() -> None:
    rng = random.Random(2)
    for _ in range(300):
        w = project([rng.expovariate(1) for _ in range(3)], 1e-9)
        w = [0.0 if a < 0.2 else a for a in w]
        w = [a / sum(w) for a in w]
        v = [rng.choice((0.0, 1.0, -1.0)) for _ in range(3)]
        corners = ([float(i == j) for j in range(3)] for i in range(3))
        inward = any(sum(a * (z - b) for a, z, b in zip(v, corner, w, strict=True)) > 1e-12 for corner in corners)
        assert in_simplex_normal_cone(v, w, 1e-12) is not inward


def test_on_an_affine_set_only_the_directions_inside_it_count() -> None:
    half = math.sqrt(0.5)
    assert affine_residual([3.0, 3.0], [[half, -half]]) == 0.0
    assert affine_residual([1.0, -1.0], [[half, -half]]) == pytest.approx(math.sqrt(2.0))


def test_an_ensemble_with_a_final_tracker_is_bounded_like_one_tracker() -> None:
    assert ensemble_residual_bound(1.0, [0.1, 0.5]) == 2.5
    assert ensemble_coverage_gap(1.0, [0.1, 0.5], 0.9, 0.05, 1000) == pytest.approx(2.545 / 50)
