"""No regret and equilibrium are different things; no move regret lies between them."""

import math
import random

import pytest

from gradeq.losses import Absolute, Squared
from gradeq.regret import no_move_regret, regret
from gradeq.theory import floored_simplex_mirror
from theory.adversaries import SLACK
from theory.simplex import floored_run


def test_example_1_no_regret_without_equilibrium_and_the_reverse() -> None:
    rounds = 500
    zeros = [0.0] * rounds
    falling = [1.0 / t for t in range(1, rounds + 1)]
    assert regret(Absolute(), falling, zeros) / rounds < 0.02
    assert sum(math.copysign(1.0, u) for u in falling) / rounds == 1.0
    bouncing = [1.0 if t % 2 else -1.0 for t in range(rounds)]
    assert abs(sum(bouncing)) / rounds <= 1.0 / rounds  # the average of the slopes sign(theta_t)
    assert regret(Absolute(), bouncing, zeros) / rounds > 0.4


def test_example_2_zero_regret_with_bias_for_smooth_losses() -> None:
    n, m = 6, 3
    a, b = -1.0, 2.0  # n a + m b = 0
    alpha, beta = n / (n + m), m / (n + m)
    v = b + math.sqrt(alpha * a * a / beta + b * b)
    labels = ([a] * n + [b] * m) * 20
    thetas = ([a] * n + [v] * m) * 20
    assert regret(Squared(), thetas, labels) == pytest.approx(0.0, abs=1e-9)
    bias = sum(u - y for u, y in zip(thetas, labels, strict=True)) / len(labels)
    assert bias == pytest.approx(math.sqrt(alpha * beta * a * a + beta * beta * b * b))


def test_any_varying_series_allows_zero_regret_with_the_bias_of_its_deviation() -> None:
    rng = random.Random(0)
    for _ in range(20):
        labels = [rng.gauss(0, 2) for _ in range(60)]
        mean = sum(labels) / 60
        deviation = math.sqrt(sum((y - mean) ** 2 for y in labels) / 60)
        thetas = [y + deviation for y in labels]
        assert regret(Squared(), thetas, labels) == pytest.approx(0.0, abs=1e-9)
        assert sum(thetas) / 60 - mean == pytest.approx(deviation)


def test_equilibrium_implies_no_move_regret_for_convex_losses() -> None:
    rng = random.Random(1)
    for radius in (0.1, 1.0, 5.0):
        labels = [rng.gauss(1, 2) for _ in range(80)]
        thetas = [rng.gauss(0, 1) for _ in range(80)]
        average = sum(u - y for u, y in zip(thetas, labels, strict=True)) / 80
        assert no_move_regret(Squared(), thetas, labels, radius) >= -radius * abs(average) * SLACK


def test_no_move_regret_implies_equilibrium_for_smooth_losses() -> None:
    rng = random.Random(2)
    for _ in range(20):
        labels = [rng.gauss(0.5, 2) for _ in range(80)]
        thetas = [rng.gauss(0, 1) for _ in range(80)]
        average = sum(u - y for u, y in zip(thetas, labels, strict=True)) / 80
        # beta = 1; the move must stay in a bounded set: min(eps, |G|)/beta towards -G.
        eps = 0.3
        step = min(eps, abs(average))
        gain = no_move_regret(Squared(), thetas, labels, step)
        assert gain <= -step * abs(average) + step**2 / 2 + 1e-9
        assert abs(average) <= eps or gain <= -(eps**2) / 2 + 1e-9


def test_a_slow_mirror_and_slow_normal_parts_give_equilibrium() -> None:
    rng = random.Random(3)
    gradients = [[rng.uniform(-1, 1), 0.3, rng.uniform(0, 1)] for _ in range(2000)]
    averages = []
    for n in (20, 200, 2000):
        path, _, whole = floored_run(gradients[:n], 0.02, 0.3)
        assert all(math.hypot(*map(math.log, w)) <= floored_simplex_mirror(3, 0.02) * SLACK for w in path)
        averages.append(math.hypot(*whole))
    assert averages[2] < averages[1] < averages[0]
