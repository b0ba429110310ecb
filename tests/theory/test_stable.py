"""No overflow for a trillion rounds, a million in the start, or forecasts at the edge."""

import inspect
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gradeq.theory as theory
from gradeq.theory import (
    elo_radius,
    exp_or_infinity,
    lambert_of_exp,
    late_logistic_virtual_radius,
    log_or_minus_infinity,
    logaddexp,
    logistic_hard_radius,
    logit_pull,
    logit_radius_from_clip,
    logit_radius_from_odds,
)


@pytest.mark.parametrize("n", [1.0, 1e6, 1e12])
@pytest.mark.parametrize("start", [0.0, 1.0, 1e6])
@pytest.mark.parametrize("eta", [1e-9, 0.1, 1e3])
def test_logarithmic_radii_are_finite_and_at_least_the_start(n: float, start: float, eta: float) -> None:
    for radius in (
        logistic_hard_radius(start, 2.0, eta, eta * n),
        logit_radius_from_odds(start, eta, eta * n * 1e6),
        logit_radius_from_clip(start, 13.8, eta, eta * n),
        late_logistic_virtual_radius(start, 1.0, 409 * eta, eta * n),
        elo_radius(2, eta, eta * n, [start, -start]),
    ):
        assert math.isfinite(radius) and radius >= start


@given(st.floats(-500, 500), st.floats(-500, 500))
def test_sums_of_exponentials_are_exact_in_logarithms(a: float, b: float) -> None:
    assert logaddexp(a, b) == logaddexp(b, a) >= max(a, b)
    assert math.exp(logaddexp(a, b) - max(a, b)) == pytest.approx(math.exp(a - max(a, b)) + math.exp(b - max(a, b)))
    assert logaddexp(a, -math.inf) == a and logaddexp(math.inf, a) == math.inf


@given(st.floats(-700, 1e9))
def test_lamberts_function_solves_its_equation(a: float) -> None:
    w = lambert_of_exp(a)
    assert w > 0.0
    assert w + math.log(w) == pytest.approx(a, rel=1e-9, abs=1e-9)


def test_edges_of_the_stable_functions() -> None:
    assert log_or_minus_infinity(0.0) == -math.inf and log_or_minus_infinity(1.0) == 0.0
    assert exp_or_infinity(710.0) == math.inf and exp_or_infinity(0.0) == 1.0
    assert logit_pull(1e6) < 1e6


def test_every_public_name_is_exported_and_documented() -> None:
    assert theory.__all__ == sorted(set(theory.__all__))
    for name in theory.__all__:
        item = getattr(theory, name)
        if inspect.isfunction(item) or inspect.isclass(item):
            assert item.__doc__, name
