"""Quantiles on real streams: every group and every level within its bound, about the figures that are known."""

import numpy as np
import pytest

from gradeq import IntervalTracker, MultiQuantileTracker, QuantileTracker
from gradeq.datasets import climate, covid, elec2, french

LEVELS = [0.01, 0.025, *(round(0.05 * k, 2) for k in range(1, 20)), 0.975, 0.99]


@pytest.fixture(scope="module")
def forecasts(data_dir):
    return covid.load(data_dir)


@pytest.fixture(scope="module")
def scores(data_dir):
    """|y - f| of naive forecasts: yesterday's value, or that of five days ago."""
    power, prices, days = elec2.load(data_dir), french.load(data_dir), climate.load(data_dir)
    hours = np.arange(len(prices.spot))
    return {
        "elec2 demand": np.abs(power.nswdemand[48:] - power.nswdemand[:-48]),
        "elec2 price": np.abs(power.nswprice[48:] - power.nswprice[:-48]),
        "french prices": np.abs(prices.spot - prices.day_before[hours, prices.hour]),
        "climate": np.abs(days.meantemp[5:] - days.meantemp[:-5]),
        "humidity": np.abs(days.humidity[5:] - days.humidity[:-5]),
    }


def test_each_weekday_of_elec2_is_covered_within_its_bound(data_dir):
    power = elec2.load(data_dir)
    week = 336
    f, y = power.nswdemand[:-week], power.nswdemand[week:]
    day = power.day[week:]
    layer = IntervalTracker(0.9, "plain", groups=["day"])
    lower, upper = layer.run(f, y, {"day": day}).served.T
    held = (lower < y) & (y <= upper)
    bounds = {c.name: c.bound for c in layer.equilibrium().coordinates}
    for d in range(1, 8):
        both = sum(bounds[f"day={d} @ {end:g}"] for end in layer.levels)
        assert abs(np.mean(held[day == d]) - 0.9) <= both < 0.02
    assert layer.coverage.after == pytest.approx(np.mean(held), abs=1e-9)
    assert layer.equilibrium().gap < 1e-12


@pytest.mark.parametrize("horizon", [1, 2, 3, 4])
def test_covid_levels_never_cross_and_every_level_is_within_its_bound(forecasts, horizon):
    rows = np.flatnonzero(forecasts.horizon == horizon)
    rows = rows[np.argsort(forecasts.target_date[rows], kind="stable")]
    layer = MultiQuantileTracker(LEVELS, "plain")
    served = layer.run(forecasts.quantiles[rows], forecasts.deaths[rows]).served
    assert (np.diff(served, axis=1) >= 0.0).all()
    for c in layer.coverage:
        assert abs(c.after - c.target) <= c.bound < 0.2
        assert abs(c.after - c.target) < 0.005
    assert max(abs(c.before - c.target) for c in layer.coverage) > 0.05
    equilibrium = layer.equilibrium()
    assert not equilibrium.loss_got_worse
    assert equilibrium.gap < 1e-12


def test_covid_labels_that_come_late_are_learned_without_harm(forecasts):
    """Result B5: tau .9 from about .79 to about .86 or better, the pinball loss not above the base's."""
    rows = np.flatnonzero(forecasts.horizon == 1)
    rows = rows[np.argsort(forecasts.forecast_date[rows], kind="stable")]
    times = (forecasts.forecast_date[rows], forecasts.target_date[rows])
    for level, before, eta in ((0.9, 0.77, 0.1), (0.9, 0.77, "auto"), (0.1, 0.22, "auto")):
        base = forecasts.quantiles[rows, LEVELS.index(level)]
        layer = QuantileTracker(level, eta)
        layer.run(base, forecasts.deaths[rows], times=times[0], label_times=times[1])
        assert layer.coverage.before == pytest.approx(before, abs=0.01)
        assert layer.coverage.after == pytest.approx(level, abs=0.02)
        assert not layer.equilibrium().loss_got_worse


@pytest.mark.parametrize("name", ["elec2 demand", "elec2 price", "french prices", "climate", "humidity"])
def test_scores_are_covered_and_auto_is_near_the_best_step(scores, name):
    """Results B3, B5: sinh .1 warm within .003 of .9, auto within .003 and 2 % of the best of its four rates."""
    s = scores[name]
    nothing = np.zeros(len(s))
    losses = {}
    for eta in (0.01, 0.03, 0.1, 0.3, "auto"):
        layer = QuantileTracker(0.9, eta, warm=True)
        layer.run(nothing, s)
        losses[eta] = layer.equilibrium().loss_after
        if eta in (0.1, "auto"):
            assert layer.coverage.after == pytest.approx(0.9, abs=0.003)
            assert abs(layer.coverage.after - 0.9) <= layer.coverage.bound
    assert losses.pop("auto") <= 1.02 * min(losses.values())


def test_where_there_is_nothing_to_follow_the_sinh_link_costs_little(scores):
    """Shuffled scores have no trend to follow: the loss of sinh .1 stays within 4 % of the best constant."""
    s = np.random.default_rng(0).permutation(scores["french prices"])
    layer = QuantileTracker(0.9, "plain", warm=True)
    layer.run(np.zeros(len(s)), s)
    constant = np.quantile(s, 0.9)
    best = np.mean(np.maximum(0.9 * (s - constant), -0.1 * (s - constant)))
    assert layer.equilibrium().loss_after <= 1.04 * best
    assert layer.coverage.after == pytest.approx(0.9, abs=0.002)
