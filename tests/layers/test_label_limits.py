"""Limits of labels: what is served stays inside, and what is said about it holds."""

import numpy as np
import pytest

import gradeq as gq
from gradeq import BadInput

N = 400
RNG = np.random.default_rng(5)
DEMAND = RNG.poisson(0.8, N).astype(float)  # about half of them are 0
FORECASTS = DEMAND + RNG.normal(0.5, 1.5, N)
KEYS = RNG.integers(0, 7, N)
CAPPED = np.minimum(DEMAND, 3.0)
BOTH = (0.0, 3.0)

QUANTILES = {
    "one": lambda support: gq.QuantileTracker(0.3, 0.1, support=support),
    "auto": lambda support: gq.QuantileTracker(0.3, support=support),
    "linear": lambda support: gq.QuantileTracker(0.3, 0.1, link="linear", support=support),
    "ensemble": lambda support: gq.QuantileEnsemble(0.3, [0.05, 0.5], 0.1, support=support),
    "several": lambda support: gq.MultiQuantileTracker([0.1, 0.5, 0.9], 0.1, support=support),
    "interval": lambda support: gq.IntervalTracker(0.8, 0.1, support=support),
}
MEANS = {
    "one": lambda support: gq.Debiaser(0.1, support=support),
    "auto": lambda support: gq.Debiaser(support=support),
    "shift": lambda support: gq.Debiaser(0.5, outcome="binary", link="shift", support=support),
}


def columns(shown):
    return np.asarray(shown, dtype=float).reshape(N, -1)


@pytest.mark.parametrize("make", QUANTILES.values(), ids=QUANTILES)
def test_quantiles_learn_as_if_there_were_no_limits_and_are_shown_inside(make):
    free, held = make(None), make(BOTH)
    before, shown = columns(free.run(FORECASTS, CAPPED).served), held.run(FORECASTS, CAPPED)
    assert np.array_equal(columns(shown.served), np.clip(before, *BOTH))
    assert np.array_equal(columns(shown.values), before)
    assert held.theta == free.theta
    assert held.equilibrium() == free.equilibrium()


@pytest.mark.parametrize("make", QUANTILES.values(), ids=QUANTILES)
def test_clipped_coverage_is_that_of_what_was_shown(make):
    layer = make(BOTH)
    shown, y = columns(layer.run(FORECASTS, CAPPED).served), CAPPED
    covered = (y[:, None] <= shown).mean(axis=0)
    if isinstance(layer, gq.IntervalTracker):
        lower, upper = shown.T
        at_limit = np.isin(lower, BOTH)
        covered = [np.mean(((lower < y) | (at_limit & (y == lower))) & (y <= upper))]
        assert at_limit.any()
    said = layer.coverage if isinstance(layer.coverage, list) else [layer.coverage]
    assert [one.clipped for one in said] == pytest.approx(covered, abs=1e-9)
    assert all(one.clipped != one.after for one in said[:1])
    assert make(None).run(FORECASTS, CAPPED) and not hasattr(make(None).internals.state, "limited")


def test_labels_that_tie_at_a_limit_do_not_drive_the_state_away():
    """Half of the labels are 0: no quantile of level 0.1 exists, so judged at the limit u would fall for ever."""
    layer = gq.QuantileTracker(0.1, 0.1, support=(0, None))
    layer.run(np.tile(FORECASTS, 20), np.tile(DEMAND, 20))
    found = layer.coverage
    assert found.after == pytest.approx(0.1, abs=0.01)
    assert found.clipped > 0.4
    assert abs(layer.theta["(all)"]) < 3.0


@pytest.mark.parametrize("make", MEANS.values(), ids=MEANS)
def test_a_mean_is_judged_by_what_was_shown(make):
    y = DEMAND > 0 if make is MEANS["shift"] else CAPPED
    f = np.clip(FORECASTS, 0, 1) if make is MEANS["shift"] else FORECASTS
    limits = (0, 1) if make is MEANS["shift"] else BOTH
    layer = make(limits)
    served = np.asarray(layer.run(f, y.astype(float)).served)
    assert served.min() >= limits[0] and served.max() <= limits[1]
    assert np.isin(served, limits).any()
    result = layer.equilibrium()
    assert result.bias_after == pytest.approx(np.mean(served - y), abs=1e-12)
    assert result.gap < 1e-12
    assert result.bound is not None and abs(result.bias_after) <= result.bound


@pytest.mark.parametrize("layer", [gq.Debiaser(0.1, support=(0, 9)), QUANTILES["several"]((0, 9))])
@pytest.mark.parametrize("wrap", [lambda layer: layer, gq.Keyed])
@pytest.mark.parametrize("label", [-0.5, 9.5, np.nextafter(9.0, 10.0)])
def test_a_label_outside_is_refused_and_nothing_changes(layer, wrap, label):
    own = wrap(layer.copy())
    key = {"key": "a"} if wrap is gq.Keyed else {}
    own.predict(1.0, id="x", **key)
    before = own.to_json()
    keys = {"key": ["a", "a"]} if key else {}
    for post in (lambda: own.update(label, id="x"), lambda: own.run([1.0, 1.0], [2.0, label], **keys)):
        with pytest.raises(BadInput, match=r"label .* lies outside the support \[0, 9\]"):
            post()
    assert own.to_json() == before


@pytest.mark.parametrize("wrap", [lambda layer: layer, gq.Keyed], ids=["alone", "keyed"])
@pytest.mark.parametrize("make", [*QUANTILES.values(), *list(MEANS.values())[:2]])
def test_events_columns_and_resumed_runs_agree(make, wrap):
    layer = make(BOTH)
    if wrap is gq.Keyed and layer.kind == "ensemble":
        return
    pattern = {k: v for k, v in layer.settings.items()} if wrap is gq.Keyed else None
    if pattern and pattern.get("eta") == "auto":
        pattern["eta"] = None
        layer = type(layer)(**pattern)
    whole, events = wrap(layer.copy()), wrap(layer.copy())
    keyed = wrap is gq.Keyed
    resumed = gq.from_json(whole.to_json())
    served = columns(whole.run(FORECASTS, CAPPED, **({"key": KEYS} if keyed else {})).served)
    shown = []
    for f, y, key in zip(FORECASTS.tolist(), CAPPED.tolist(), KEYS.tolist(), strict=True):
        ticket = events.open(f, **({"key": key} if keyed else {}))
        shown.append(events.value_of(ticket))
        events.post(ticket, y)
    for part in (slice(0, 150), slice(150, N)):
        resumed.run(FORECASTS[part], CAPPED[part], **({"key": KEYS[part]} if keyed else {}))
        resumed = gq.from_json(resumed.to_json())
    assert np.array_equal(served, columns(shown))
    assert whole.to_json() == events.to_json() == resumed.to_json()


def test_shadow_mode_shows_the_raw_prediction():
    layer = gq.QuantileTracker(0.3, 0.1, support=(0, None), shadow=True)
    assert layer.predict(-4.0) == -4.0


@pytest.mark.parametrize(
    "support, said",
    [
        ((3, 1), "the lower limit must be below the upper one"),
        ((2, 2), "the lower limit must be below the upper one"),
        ((0,), "give a pair"),
        (7, "give a pair"),
        ((float("nan"), 1), "is not finite"),
        (("zero", 1), "is not a number"),
        ((float("inf"), None), "is not finite"),
    ],
)
def test_a_support_that_makes_no_sense_is_refused(support, said):
    with pytest.raises(BadInput, match=said):
        gq.Debiaser(0.1, support=support)


def test_no_limit_on_either_side_is_no_support():
    assert gq.Debiaser(0.1, support=(None, float("inf"))).support is None


def test_a_state_whose_loss_left_the_numbers_reads_back():
    """Of absurd features the loss before the limits is infinite, and so is what the limits take from it."""
    layer = gq.QuantileTracker(0.9, 0.01, features=["x"], support=(-1000.0, 0.0))
    for k in range(40):
        layer.predict(3e4, features={"x": 2000.0 * (-1) ** k})
        layer.update(0.0)
    assert np.isinf(layer.internals.state.limited).any()
    assert gq.from_json(layer.to_json()).to_json() == layer.to_json()
