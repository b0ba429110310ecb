"""Links that keep probabilities in [0, 1] and quantiles without a unit."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradeq.numerics import sigmoid
from gradeq.theory import (
    asinh_bound,
    clip_bound,
    logit_growth,
    logit_pull,
    logit_radius_from_clip,
    logit_radius_from_odds,
    logit_soft_radius,
    quantile_range,
    sinh_coverage_gap,
    warm_start,
)
from theory.adversaries import SLACK, Game, play


@given(st.floats(0.01, 4.0), st.sampled_from([0.3, 0.05, 1e-3]), st.integers(0, 10**6))
def test_the_logit_parameter_grows_like_a_logarithm(eta: float, eps: float, seed: int) -> None:
    rng, theta, odds, top = random.Random(seed), 0.0, 0.0, clip_bound(eps)
    for t in range(1, 151):
        o = rng.choice((-top, top, rng.uniform(-top, top)))
        y = rng.choice((0.0, 1.0, float(theta >= 0)))
        odds += math.exp(abs(o))
        theta -= eta * (sigmoid(o + theta) - y)
        assert abs(theta) <= logit_radius_from_odds(0.0, eta, eta * odds) * SLACK
        assert abs(theta) <= logit_radius_from_clip(0.0, top, eta, eta * t) * SLACK


def test_the_logit_bounds_are_sharp() -> None:
    eta, top, theta, odds, rounds = 0.01, clip_bound(0.1), 0.0, 0.0, 60_000
    for _ in range(rounds):
        odds += math.exp(top)
        theta -= eta * (sigmoid(theta - top) - 1.0)
    assert theta / logit_radius_from_odds(0.0, eta, eta * odds) > 0.98
    assert theta / logit_radius_from_clip(0.0, top, eta, eta * rounds) > 0.98


@given(st.floats(0.01, 12.0), st.floats(0.01, 0.6), st.integers(0, 10**6))
def test_soft_labels_bound_the_logit_parameter(eta: float, gap: float, seed: int) -> None:
    rng, theta, top = random.Random(seed), 0.0, clip_bound(0.05)
    low, high = min(gap, 1 - gap), max(gap, 1 - gap)
    for _ in range(120):
        y = rng.choice((low, high, high if theta >= 0 else low))
        theta -= eta * (sigmoid(rng.choice((-top, top)) + theta) - y)
        assert abs(theta) <= logit_soft_radius(0.0, top, low, eta) * SLACK
    assert logit_soft_radius(0.0, top, 0.0, eta) == math.inf


@pytest.mark.parametrize("top", [0.0, 1.0, 4.6, 13.8, 50.0])
def test_the_pull_is_the_largest_value_of_its_function(top: float) -> None:
    best = max(u / 1000 * sigmoid(top - u / 1000) for u in range(0, 70_000))
    assert logit_pull(top) == pytest.approx(best, rel=1e-5)
    assert logit_pull(top) >= best


def test_features_with_the_logit_link_are_bounded() -> None:
    rng = random.Random(5)
    for rows in ("spiral", "random"):
        for labels in ("up", "greedy", "extreme"):
            game = Game(
                task="probability_logit", structure="features", dimension=3, low=0.0, high=1.0,
                rows=rows, labels=labels, eta=0.3, clip=0.05,
            )  # fmt: skip
            played = play(game, rng)
            growth = logit_growth(clip_bound(0.05), played.size, 0.3, 0.3 * played.n)
            assert played.farthest_norm <= math.sqrt(growth) * SLACK


def test_the_served_probability_is_the_clipped_one_at_zero() -> None:
    assert sigmoid(-clip_bound(1e-6)) == pytest.approx(1e-6)


@given(st.floats(0.02, 1.0), st.floats(0.05, 0.95), st.integers(0, 10**6))
def test_a_moving_scale_leaves_the_coverage_bound_exact(eta: float, level: float, seed: int) -> None:
    rng, u, covered, scale, ratio = random.Random(seed), 0.0, 0, 1.0, 0.0
    where = (0.0, 0.0)
    for t in range(1, 201):
        size = 500.0 if t > 100 else 1.0  # a jump by a factor of 500
        y = size * rng.choice((-1.0, 1.0, rng.gauss(0, 0.3)))
        ratio = max(ratio, abs(y) / scale)
        served = scale * math.sinh(u)
        covered += y <= served
        u -= eta * ((y <= served) - level)
        scale = 0.95 * scale + 0.05 * abs(y) + 1e-9
        b = asinh_bound(ratio)
        where = quantile_range(0.0, -b, b, level, eta)
        assert where[0] - 1e-9 <= u <= where[1] + 1e-9
        assert abs(covered / t - level) <= sinh_coverage_gap(0.0, ratio, eta, t) * SLACK + 1e-9


def test_rounds_without_a_scale_cost_at_most_one_each() -> None:
    gap = sinh_coverage_gap(0.0, 1.0, 0.1, 100, zero_scale_rounds=3)
    assert gap == pytest.approx(sinh_coverage_gap(0.0, 1.0, 0.1, 100) + 0.03)


def test_the_warm_start_is_the_quantile_of_an_exponential() -> None:
    assert math.sinh(warm_start(0.9)) == pytest.approx(math.log(10.0))
