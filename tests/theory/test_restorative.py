"""Facts of the losses, and horizons from monotonicity."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradeq.numerics import sigmoid
from gradeq.theory import (
    logistic_facts,
    logistic_pull_floor,
    monotone_horizon_positive,
    monotone_horizon_positive_simple,
    monotone_horizon_quadratic,
    monotone_horizon_quadratic_simple,
    monotone_horizon_zero,
    quantile_facts,
    squared_facts,
    squared_pull_floor,
)


@given(st.floats(0.1, 3), st.floats(0.05, 1.9), st.floats(-20, 20), st.floats(-1, 1))
def test_the_facts_of_the_losses_hold(b: float, eta: float, u: float, share: float) -> None:
    y = share * b
    facts = quantile_facts(b, 0.3)
    g = (y <= u) - 0.3
    assert abs(g) <= facts.lipschitz + 1e-12 and g * u >= -facts.pull - 1e-9
    assert abs(u) <= facts.horizon or g * u >= 0.0
    facts, g = squared_facts(b, eta), u - y
    assert g * u >= -facts.pull - 1e-9
    if abs(u) > facts.horizon:
        assert g * u >= eta / 2 * g * g - 1e-9
    else:
        assert abs(g) <= facts.lipschitz + 1e-9
    gap = 0.05
    facts, g = (logistic_facts(2 * b, min(gap, b)), -b + 2 * b * sigmoid(u) - share * (b - min(gap, b)))
    assert abs(g) <= facts.lipschitz + 1e-9 and g * u >= -facts.pull - 1e-9
    assert abs(u) <= facts.horizon or g * u >= -1e-9


def test_hard_labels_leave_the_logistic_loss_without_a_horizon() -> None:
    assert logistic_facts(1.0, 0.0).horizon == math.inf


def test_the_logistic_floor_is_attained() -> None:
    lowest = min((sigmoid(u / 1000) - 1.0) * u / 1000 for u in range(0, 20_000))
    assert lowest == pytest.approx(logistic_pull_floor(1.0), rel=1e-6)
    assert lowest >= logistic_pull_floor(1.0)


@given(st.floats(0.1, 3), st.floats(0.1, 3), st.floats(0.0, 0.99), st.floats(-9, 9), st.floats(-1, 1))
def test_the_squared_floor_holds(a1: float, b: float, part: float, u: float, share: float) -> None:
    a2, y = part * a1, share * b
    assert a1 * (u - y) * u - a2 * (u - y) ** 2 >= squared_pull_floor(a1, a2, b) - 1e-9


@given(st.floats(0.1, 3), st.floats(0.1, 9), st.floats(0.05, 3), st.floats(0.1, 5))
def test_monotone_horizons_are_ordered_and_sufficient(b: float, alpha: float, eta: float, lipschitz: float) -> None:
    assert monotone_horizon_zero(b, alpha) * alpha == pytest.approx(b)
    h = monotone_horizon_positive(b, alpha, eta, lipschitz)
    assert alpha * h * h - b * h == pytest.approx(eta * lipschitz**2 / 2, rel=1e-6, abs=1e-9)
    assert h <= monotone_horizon_positive_simple(b, alpha, eta, lipschitz) * (1 + 1e-12)


def test_the_quadratic_horizon_is_exact_and_below_the_printed_one() -> None:
    rng = random.Random(0)
    for _ in range(3000):
        beta = rng.uniform(0.1, 4)
        alpha, b = beta * rng.uniform(0.01, 1), rng.uniform(0.1, 3)
        eta = rng.uniform(0.01, 0.99) * 2 / beta
        h = monotone_horizon_quadratic(b, alpha, beta, eta)
        a = alpha * (1 - eta * beta / 2)
        # Worst case of the proof at its root: s = A h^2 with theta - eta v along -g(0).
        root = a * h * h - b * h * math.sqrt(max(0.0, 1 - 2 * eta * a)) - eta * b * b / 2
        assert root == pytest.approx(0.0, abs=1e-9 * (1 + h * h))
        printed = b * (1 + eta * beta + math.sqrt(eta / 2)) / (alpha * (1 - eta * beta / 2))
        assert h <= monotone_horizon_quadratic_simple(b, alpha, beta, eta) <= printed
    assert monotone_horizon_quadratic(1, 1, 1, 2.0) == math.inf
    assert monotone_horizon_quadratic_simple(1, 1, 1, 2.0) == math.inf


@given(st.floats(0.01, 1.99))
def test_the_quadratic_horizon_of_the_squared_error_is_its_own(eta: float) -> None:
    assert monotone_horizon_quadratic(1.0, 1.0, 1.0, eta) == pytest.approx(squared_facts(1.0, eta).horizon, rel=1e-6)
