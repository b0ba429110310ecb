"""Weighted rows: the weighted average obeys the same bounds with eta times weight."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradeq.numerics import sigmoid
from gradeq.theory import (
    propensity_average,
    weighted_average,
    weighted_harm_factor,
    weighted_logit_radius,
    weighted_pull_growth,
    weighted_quantile_range,
    weighted_squared_growth,
    weighted_squared_radius,
)
from theory.adversaries import SLACK

weights = st.lists(st.floats(0.0, 3.0), min_size=20, max_size=80)


@given(weights, st.floats(0.01, 0.6), st.floats(0.05, 0.95), st.integers(0, 10**6))
def test_weighted_trackers_stay_in_their_ranges(ws: list[float], eta: float, level: float, seed: int) -> None:
    rng, q, m, p = random.Random(seed), 0.0, 0.0, 0.0
    total, odds, top = 0.0, 0.0, max(ws)
    where = weighted_quantile_range(0.0, -1.0, 1.0, level, eta, top)
    radius = weighted_squared_radius(0.0, 1.0, eta, top)
    for w in ws:
        y = rng.choice((-1.0, 1.0, 1.0 if m < 0 else -1.0))
        total += w * ((y <= q) - level)
        q -= eta * w * ((y <= q) - level)
        m -= eta * w * (m - y)
        o = rng.uniform(-2, 2)
        odds += w * math.exp(abs(o))
        p -= eta * w * (sigmoid(o + p) - float(p >= 0))
        assert where.low - 1e-9 <= q <= where.high + 1e-9
        assert abs(m) <= radius * SLACK
        assert abs(p) <= weighted_logit_radius(0.0, eta, top, odds) * SLACK
    if sum(ws) > 0:
        average = weighted_average(0.0, q, eta, sum(ws))
        assert average == pytest.approx(total / sum(ws), abs=1e-9)
        assert abs(average) <= where.length / (eta * sum(ws)) * SLACK + 1e-9


def test_scaling_all_weights_is_scaling_the_step() -> None:
    assert weighted_squared_radius(0.0, 1.0, 0.5, 3.0) == weighted_squared_radius(0.0, 1.0, 1.5, 1.0)


@given(weights, st.floats(0.01, 0.3), st.integers(0, 10**6))
def test_weighted_features_grow_at_most_as_proven(ws: list[float], eta: float, seed: int) -> None:
    rng, theta, square, mean = random.Random(seed), [0.0, 0.0], [0.0, 0.0], 0.0
    for w in ws:
        angle = rng.uniform(0, 2 * math.pi)
        z = (math.cos(angle), math.sin(angle))
        u, v = (sum(a * b for a, b in zip(z, t, strict=True)) for t in (theta, square))
        e, f = 2 * sigmoid(u) - 1 - rng.choice((-1, 1)), v - rng.choice((-1, 1))
        theta = [a - eta * w * e * b for a, b in zip(theta, z, strict=True)]
        square = [a - eta * w * f * b for a, b in zip(square, z, strict=True)]
        mean += w
    growth = weighted_pull_growth(2 * 0.27846455, 4.0, eta, sum(ws), sum(w * w for w in ws))
    assert math.hypot(*theta) <= math.sqrt(growth) * SLACK + 1e-9
    growth = weighted_squared_growth(1.0, 1.0, eta, max(ws), mean)
    assert math.hypot(*square) <= math.sqrt(growth) * SLACK + 1e-9


@given(weights, st.floats(0.01, 0.3), st.integers(0, 10**6))
def test_the_weighted_harm_cap_holds(ws: list[float], eta: float, seed: int) -> None:
    rng, theta, served, base = random.Random(seed), 0.0, 0.0, 0.0
    for w in ws:
        r = rng.choice((-1.0, 1.0, rng.gauss(0, 1) ** 3, -math.copysign(1, theta)))
        served += w * (theta - r) ** 2
        base += w * r * r
        theta -= eta * w * (theta - r)
    assert served <= base * weighted_harm_factor(eta, max(ws)) * SLACK + 1e-9
    assert weighted_harm_factor(1.0, 1.0) == math.inf
    assert weighted_squared_growth(1.0, 1.0, 1.0, 2.0, 1.0) == math.inf


def test_propensities_restore_the_average_over_all_rounds() -> None:
    exceeded = 0
    for seed in range(40):
        rng, u, total, excess, n, eta = random.Random(seed), 0.0, 0.0, 0.0, 3000, 0.02
        for t in range(n):
            kind = t % 2
            pi = 0.2 if kind else 0.9
            y = rng.uniform(0.5, 1.0) if kind else rng.uniform(-1.0, -0.5)
            e = max(-2.0, min(2.0, u)) - y
            total += e
            excess += 1 / pi - 1
            if rng.random() < pi:
                u -= eta * e / pi
        bound = propensity_average(u, eta, n, 3.0, excess, 0.2, 0.05)
        exceeded += abs(total / n) > bound
    assert exceeded == 0


def test_a_heavy_step_has_the_unit_of_the_error_of_risk_control():
    """Errors up to ``most`` make steps as many times larger, the largest product of step and weight too."""
    import numpy as np

    import gradeq as gq

    layer = gq.RiskControl(lambda theta, y: 30.0 * y, 29.0, 4e-4, span=(-0.1, 0.1), most=32.0)
    with pytest.warns(gq.GradeqWarning, match="span begins"):  # the error does not depend on theta
        layer.run(np.zeros(40), weights=np.where(np.arange(40) == 5, 3.0, 1.0))
    setting = layer._setting()
    assert setting.weight_max > 2.0
    assert setting.largest_step == setting.weight_max * setting.eta == 32.0 * layer.internals.state.heaviest_step[0]
