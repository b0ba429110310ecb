"""One parameter: every range holds against players who see it, and the sharp ones are attained."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradeq.numerics import sigmoid
from gradeq.theory import (
    average_from_radius,
    exponential_range,
    logistic_hard_radius,
    logistic_soft_radius,
    quantile_coverage_gap,
    quantile_range,
    squared_bias_printed,
    squared_radius,
    squared_range,
    varying_range,
)
from theory.adversaries import SLACK, Game, descend, play

levels = st.floats(0.05, 0.95)
seeds = st.integers(0, 10**6)


@given(levels, st.floats(0.01, 3.0), seeds)
def test_a_quantile_tracker_stays_in_its_range(level: float, eta: float, seed: int) -> None:
    rng = random.Random(seed)
    low = rng.uniform(-2, 1)
    high, theta = low + rng.uniform(0, 3), rng.uniform(-4, 4)
    start, covered = theta, 0
    where = quantile_range(start, low, high, level, eta)
    for t in range(1, 101):
        y = rng.choice((low, high, min(high, max(low, theta)), rng.uniform(low, high)))
        covered += y <= theta
        theta -= eta * ((y <= theta) - level)
        assert where.low - 1e-9 <= theta <= where.high + 1e-9
        gap = quantile_coverage_gap(start, low, high, level, eta, t)
        assert abs(covered / t - level) <= gap * SLACK + 1e-9


def test_both_ends_of_the_quantile_range_are_attained() -> None:
    where = quantile_range(0.0, -1.0, 2.0, 0.75, 0.5)
    just_below = 2.0 - 1e-12
    assert just_below + 0.5 * 0.75 == pytest.approx(where.high)
    assert pytest.approx(where.low) == -1.0 - 0.5 * 0.25


@given(levels, seeds)
def test_ranges_and_steps_may_vary_from_round_to_round(level: float, seed: int) -> None:
    rng, theta = random.Random(seed), 0.3
    lows, highs, etas = [], [], []
    for _ in range(60):
        low = rng.gauss(0, 3)
        high, eta = low + rng.expovariate(1), rng.uniform(0.01, 2)
        y = rng.choice((low, high, min(high, max(low, theta))))
        theta -= eta * ((y <= theta) - level)
        lows, highs, etas = [*lows, low], [*highs, high], [*etas, eta]
        where = varying_range(0.3, lows, highs, level, etas)
        assert where.low - 1e-9 <= theta <= where.high + 1e-9


@pytest.mark.parametrize("eta", [0.1, 0.9, 1.0, 1.5, 1.9])
def test_the_squared_radius_is_attained_and_never_exceeded(eta: float) -> None:
    theta, farthest = 0.0, 0.0
    for t in range(4000):
        theta -= eta * (theta - (1.0 if (t % 2 == 0 or eta <= 1.0) else -1.0))
        farthest = max(farthest, abs(theta))
    assert farthest == pytest.approx(squared_radius(0.0, 1.0, eta), rel=1e-6)
    assert farthest <= squared_radius(0.0, 1.0, eta) * SLACK


@given(st.floats(0.01, 1.99), st.floats(-3, 3), seeds)
def test_a_mean_tracker_stays_in_its_range(eta: float, start: float, seed: int) -> None:
    rng = random.Random(seed)
    low = rng.uniform(-2, 1)
    high, theta = low + rng.uniform(0, 3), start
    where = squared_range(start, low, high, eta)
    for _ in range(100):
        theta -= eta * (theta - rng.choice((low, high, high if theta < 0 else low)))
        assert where.low - 1e-9 <= theta <= where.high + 1e-9


@given(st.floats(0.05, 0.95), st.floats(0.0, 1.0), st.floats(0.1, 5.0), st.floats(-3, 3))
def test_the_printed_squared_bound_is_valid_and_never_smaller(
    delta: float, share: float, b: float, start: float
) -> None:
    eta = max(1e-3, share) * 2 * (1 - delta) / (1 + delta) ** 2
    printed = squared_bias_printed(start, b, delta, eta, 100)
    ours = average_from_radius(start, squared_radius(start, b, eta), eta, 100)
    assert ours <= printed * SLACK


@given(st.floats(0.01, 20.0), st.floats(0.01, 0.6), st.floats(-5, 5), seeds)
def test_soft_labels_bound_the_logistic_tracker(eta: float, gap: float, start: float, seed: int) -> None:
    rng, theta, a, b = random.Random(seed), start, -0.3, 1.2
    bound = logistic_soft_radius(start, b - a, gap, eta)
    for _ in range(100):
        y = rng.choice((a + gap, b - gap, a + gap if theta < 0 else b - gap))
        theta -= eta * (a + (b - a) * sigmoid(theta) - y)
        assert abs(theta) <= bound * SLACK


@given(st.floats(0.01, 6.0), st.floats(-5, 5), seeds)
def test_hard_labels_bound_the_logistic_tracker(eta: float, start: float, seed: int) -> None:
    rng, theta, a, b = random.Random(seed), start, -1.0, 1.0
    for t in range(1, 151):
        y = rng.choice((a, b, a if theta < 0 else b))
        theta -= eta * (a + (b - a) * sigmoid(theta) - y)
        assert abs(theta) <= logistic_hard_radius(start, b - a, eta, eta * t) * SLACK


def test_the_hard_label_bound_is_sharp() -> None:
    rounds, eta = 200_000, 0.1
    end, _ = descend(0.0, eta, rounds, lambda u, t: sigmoid(u) - 1.0)
    assert 0.99 < end / logistic_hard_radius(0.0, 1.0, eta, eta * rounds) <= 1.0


@given(st.floats(0.001, 0.5), st.booleans(), seeds)
def test_an_exponential_mean_stays_in_its_range(eta: float, zeros: bool, seed: int) -> None:
    rng, theta = random.Random(seed), 0.0
    forecasts, ratios, labels, path = [], [], [], []
    for _ in range(80):
        f = rng.uniform(0.2, 3.0)
        y = f * rng.choice((0.0 if zeros else 0.3, 2.5, 0.3 if theta < 0 else 2.5))
        theta -= eta * (f * math.exp(min(theta, 500)) - y)
        path.append(theta)
        forecasts, ratios, labels = [*forecasts, f], [*ratios, y / f], [*labels, y]
    where = exponential_range(0.0, min(ratios), max(ratios), max(forecasts), max(labels), eta, eta * 80)
    assert where.low - 1e-9 <= min(path) and max(path) <= where.high + 1e-9


def test_an_exponential_range_that_no_float_holds_is_infinite() -> None:
    assert exponential_range(0.0, 0.5, 1e6, 1.0, 1e6, 1.0, 10.0).low == -math.inf


def test_each_group_on_its_own_clock_beats_one_clock_for_all() -> None:
    def gap(own: bool) -> float:
        theta, covered = 0.0, 0
        for seen in range(1, 201):
            clock = seen if own else 200 * seen  # one row in 200 belongs to the group
            y = 4.0 + seen % 2
            covered += y <= theta
            theta -= 2.0 * clock**-0.6 * ((y <= theta) - 0.5)
        return abs(covered / 200 - 0.5)

    assert gap(own=True) < 0.1 < 0.45 < gap(own=False)


def test_disjoint_groups_are_separate_runs() -> None:
    rng = random.Random(6)
    for _ in range(30):
        game = Game(structure="disjoint", dimension=3, rows="groups", eta=0.4, labels="extreme")
        played = play(game, rng)
        for total, count in zip(played.total, played.counts, strict=True):
            assert abs(total) <= squared_radius(0.0, 1.0, 0.4) / 0.4 * SLACK and count > 0
