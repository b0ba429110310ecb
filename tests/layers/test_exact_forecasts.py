"""Forecasts that are right to the last digit for long, and then no longer: a stuck sensor, months without a sale."""

import numpy as np
import pytest

import gradeq as gq

MAKE = {
    "quantile": lambda eta: gq.QuantileTracker(0.9, eta),
    "interval": lambda eta: gq.IntervalTracker(0.9, eta),
    "levels": lambda eta: gq.MultiQuantileTracker([0.05, 0.5, 0.95], eta),
    "conformal": lambda eta: gq.Conformal("absolute", 0.9, eta),
}
RIGHT, AFTER = 6000, 3000


def stream(centre, seed=3):
    """Labels that equal their forecast, then labels around it."""
    noise = np.random.default_rng(seed).normal(size=AFTER)
    f = np.full(RIGHT + AFTER, centre)
    return f, f + np.concatenate([np.zeros(RIGHT), noise])


@pytest.mark.parametrize("eta", [0.1, "auto"])
@pytest.mark.parametrize("centre", [0.0, 40.0])
@pytest.mark.parametrize("kind", MAKE)
def test_nothing_runs_away_while_forecasts_are_right(kind, centre, eta):
    """What comes after is served at the scale of its labels, and covered soon."""
    layer = MAKE[kind](eta)
    f, y = stream(centre)
    values = np.asarray(layer.run(f, y).values)
    served = values.reshape(len(f), -1) - (0.0 if kind == "conformal" else centre)
    assert np.abs(served[:RIGHT]).max() <= 1e-4
    assert np.abs(served[RIGHT:]).max() <= 30.0
    label = np.abs(y - f) if kind == "conformal" else y - centre
    covered = (label[RIGHT + 500 :, None] <= served[RIGHT + 500 :]).mean(axis=0)
    wanted = {"interval": [0.05, 0.95], "levels": [0.05, 0.5, 0.95]}.get(kind, [0.9])
    assert np.abs(covered - wanted).max() < 0.03
    reached = layer.equilibrium()
    assert reached.balance != "broken"
    for one in reached.coordinates:
        assert one.bound is None or abs(one.bias_after) <= one.bound


@pytest.mark.parametrize("kind", ["quantile", "interval", "levels"])
def test_keys_that_are_right_for_long_do_not_run_away(kind):
    many = gq.Keyed(MAKE[kind](0.1))
    f, y = stream(7.0)
    keys = np.arange(len(f)) % 3
    served = np.asarray(many.run(f, y, key=keys).values).reshape(len(f), -1) - 7.0
    assert np.abs(served).max() <= 30.0


def test_forecasts_are_served_as_they_are_until_a_scale_is_known():
    """The first labels that agree to the last digit say nothing about a scale."""
    layer = gq.QuantileTracker(0.9, 0.1)
    for _ in range(60):
        assert layer.predict(5.0) == 5.0
        layer.update(5.0)
    assert layer.predict(5.0) == 5.0
    layer.update(5.0)
    assert layer.predict(5.0) != 5.0
