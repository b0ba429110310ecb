"""What a debiasing layer promises: certificates, bounds, harm caps, weights, groups, penalties."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradeq import Debiaser, Lasso, Power, Ridge
from relative import relative

SETTINGS = [
    {"eta": 0.3},
    {"eta": 1.5},
    {"eta": 0.1, "groups": ["g"]},
    {"eta": 0.2, "groups": ["g", "h"]},
    {"eta": 0.1, "features": ["x"]},
    {"eta": 0.3, "outcome": "binary"},
    {"eta": 0.3, "outcome": "binary", "groups": ["g", "h"]},
    {"eta": 0.3, "outcome": "binary", "link": "shift"},
    {"eta": 0.3, "outcome": "binary", "link": "shift", "groups": ["g"]},
    {"schedule": Power(0.5, 0.5)},
    {"schedule": Power(0.5, 0.5), "outcome": "binary", "groups": ["g"]},
    {"eta": 0.1, "penalty": Ridge(0.05), "features": ["x"]},
    {"eta": 0.1, "penalty": Lasso(0.01), "outcome": "binary", "link": "shift", "groups": ["g", "h"]},
    {"eta": "auto"},
    {"eta": "auto", "outcome": "binary"},
]


def attack(settings, seed, n=300):
    """Labels chosen by a player who sees what was served and pushes it away, or drifts, or flips."""
    rng = np.random.default_rng(seed)
    layer = Debiaser(**settings)
    binary = settings.get("outcome") == "binary"
    mode = seed % 4
    served, labels, base = [], [], []
    for t in range(n):
        groups = {k: int(rng.integers(3)) for k in settings.get("groups", ())} or None
        features = {"x": float(rng.uniform(-1, 1))} if "features" in settings else None
        f = float(rng.uniform(0.05, 0.95)) if binary else float(rng.normal())
        s = layer.predict(f, groups, features)
        low, high = (0.0, 1.0) if binary else (f - 1.0, f + 1.0)
        if mode == 0:
            y = high if s < f + 0.1 else low
        elif mode == 1:
            y = high
        elif mode == 2:
            y = high if (t // 40) % 2 else low
        else:
            y = float(rng.uniform(low, high))
        layer.update(y)
        served.append(s), labels.append(y), base.append(f)
    return layer, np.array(served), np.array(labels), np.array(base)


@pytest.mark.parametrize("settings", SETTINGS, ids=repr)
@given(seed=st.integers(0, 10**6))
def test_the_certificate_is_exact_and_the_bound_holds_against_adversaries(settings, seed):
    layer, served, labels, base = attack(settings, seed, n=120)
    result = layer.equilibrium()
    assert result.gap < 1e-12
    assert result.bias_after == pytest.approx(np.mean(served - labels), abs=1e-12)
    assert result.bias_before == pytest.approx(np.mean(base - labels), abs=1e-12)
    assert result.loss_after == pytest.approx(np.mean((served - labels) ** 2), abs=1e-12)
    assert result.loss_before == pytest.approx(np.mean((base - labels) ** 2), abs=1e-12)
    if result.bound is not None:
        assert abs(result.largest) <= result.bound * (1 + 1e-9)
    for own in result.coordinates:
        if own.bound is not None and not settings.get("features"):
            assert abs(own.bias_after) <= own.bound * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("settings", [{"eta": 0.05}, {"eta": 0.2, "groups": ["g", "h"]}], ids=repr)
@pytest.mark.parametrize("seed", range(8))
def test_the_squared_error_rises_by_at_most_the_harm_cap(settings, seed):
    layer, served, labels, base = attack(settings, seed)
    cap = layer.harm_cap()
    assert cap.factor is not None and "at most" in cap.sentence
    assert np.mean((served - labels) ** 2) <= cap.factor * np.mean((base - labels) ** 2) * (1 + 1e-12)


def test_where_no_harm_cap_is_proven_it_says_so():
    assert Debiaser(eta=0.1, outcome="binary", link="shift").harm_cap().factor is None
    assert Debiaser(schedule=Power(0.1, 0.5)).harm_cap().factor is None


@pytest.mark.parametrize("outcome", ["real", "binary"])
def test_logit_stays_inside_the_unit_interval_and_shift_may_not(outcome):
    layer = Debiaser(eta=1.0, outcome="binary")
    served = layer.run(np.full(200, 0.9), np.ones(200)).served
    assert served.min() >= 0.0 and served.max() <= 1.0
    shift = Debiaser(eta=1.0, outcome="binary", link="shift").run(np.full(200, 0.9), np.ones(200)).served
    assert shift.max() > 1.0 - 1e-9


def test_weight_zero_moves_nothing_and_relative_weights_scale_the_step():
    rng = np.random.default_rng(0)
    base, labels = rng.normal(size=50), rng.normal(size=50)
    weights = np.where(np.arange(50) % 3 == 0, 0.0, 1.0)
    weighted, only = Debiaser(eta=0.1), Debiaser(eta=0.1)
    weighted.run(base, labels, weights=weights)
    only.run(base[weights > 0], labels[weights > 0])
    assert weighted.theta == only.theta
    double, plain = Debiaser(eta=0.1), Debiaser(eta=0.1)
    double.run(base, labels, weights=np.full(50, 2.0))
    plain.run(base, labels)
    assert double.theta == plain.theta
    uneven, steps = Debiaser(eta=0.1), Debiaser(eta=0.1)
    given = rng.uniform(0.5, 2.0, 50)
    uneven.run(base, labels, weights=given)
    for f, y, w in zip(base, labels, relative(given.tolist()), strict=True):
        steps.set_step(0.1 * w)
        steps.predict(f), steps.update(y)
    assert uneven.theta["(all)"] == pytest.approx(steps.theta["(all)"], rel=1e-12)
    result = uneven.equilibrium()
    assert result.gap < 1e-13 and result.bound is not None and abs(result.largest) <= result.bound


def test_weighted_events_equal_weighted_columns():
    rng = np.random.default_rng(1)
    base, labels, weights = (rng.normal(size=60), rng.normal(size=60), rng.choice([0.0, 0.5, 2.0], 60))
    batch, events = Debiaser(eta=0.1, groups=["g"]), Debiaser(eta=0.1, groups=["g"])
    groups = rng.integers(0, 3, 60)
    served = batch.run(base, labels, {"g": groups}, weights=weights).served
    one_by_one = []
    for f, y, w, g in zip(base, labels, weights, groups, strict=True):
        one_by_one.append(events.predict(f, {"g": int(g)}, weight=w))
        events.update(y)
    assert np.array_equal(served, one_by_one) and batch.theta == events.theta


def test_bins_of_the_prediction_are_groups():
    rng = np.random.default_rng(3)
    p = rng.uniform(size=4000)
    y = (rng.uniform(size=4000) < p**2).astype(float)
    layer = Debiaser(eta=0.1, outcome="binary", bins=[0.25, 0.5, 0.75])
    served = layer.run(p, y).served
    result = layer.equilibrium()
    assert len(result.coordinates) == 4
    assert all(abs(c.bias_after) < 0.03 < abs(c.bias_before) or abs(c.bias_before) < 0.1 for c in result.coordinates)
    events = Debiaser(eta=0.1, outcome="binary", bins=[0.25, 0.5, 0.75])
    for i in range(200):
        assert events.predict(p[i]) == served[i]
        events.update(y[i])


def test_shadow_mode_serves_the_raw_value_and_learns_all_the_same():
    rng = np.random.default_rng(5)
    base, labels = rng.normal(size=80), rng.normal(1, 1, size=80)
    shadow, live = Debiaser(eta=0.1, shadow=True), Debiaser(eta=0.1)
    assert np.array_equal(shadow.run(base, labels).served, base)
    live.run(base, labels)
    assert shadow.theta == live.theta
    assert shadow.predict(3.0) == 3.0


def test_frozen_layers_serve_but_do_not_learn():
    layer = Debiaser(eta=0.5)
    layer.predict(0.0), layer.update(2.0)
    layer.freeze()
    layer.predict(0.0), layer.update(9.0)
    layer.run([0.0], [9.0])
    assert layer.theta["(all)"] == 1.0
    layer.resume()
    layer.predict(0.0), layer.update(2.0)
    assert layer.theta["(all)"] == 1.5 and layer.equilibrium().gap < 1e-15


def test_a_new_step_mid_life_keeps_the_certificate():
    rng = np.random.default_rng(6)
    labels = rng.normal(1, 1, 200)
    layer = Debiaser(eta=0.1)
    first = layer.run(np.zeros(100), labels[:100]).served
    layer.set_step(0.5)
    second = layer.run(np.zeros(100), labels[100:]).served
    result = layer.equilibrium()
    assert not result.exact and result.gap < 1e-13
    served = np.concatenate([first, second])
    assert result.bias_after == pytest.approx(np.mean(served - labels), abs=1e-13)
    assert abs(result.largest) <= result.bound and "step" in layer.log[0][0]


def test_labels_until_says_when_the_bound_is_met():
    layer = Debiaser(eta=0.1)
    layer.run(np.zeros(100), np.tile([1.0, -1.0], 50))
    more = layer.labels_until(0.01)
    assert more == 901  # b / (eta n) = 10 / n falls below 0.01 after n = 1000
    assert layer.labels_until(1.0) == 0


@pytest.mark.parametrize("groups", [[], ["g"], ["g", "h"]])
def test_a_sweep_equals_one_run_for_each_step(groups):
    rng = np.random.default_rng(7)
    n = 300
    base, labels = rng.normal(size=n), rng.normal(0.5, 1, n)
    labels[::11] = np.nan
    columns = {name: rng.integers(0, 3, n) for name in groups} or None
    etas = [0.3, 0.01, 0.1]
    frontier = Debiaser(eta=0.1, groups=groups).sweep(etas, base, labels, columns)
    assert [point.eta for point in frontier] == sorted(etas)
    for point in frontier:
        layer = Debiaser(eta=point.eta, groups=groups)
        layer.run(base, labels, columns)
        result = layer.equilibrium()
        worst = max(abs(c.bias_after) for c in result.coordinates)
        assert (point.bias, point.worst, point.loss) == pytest.approx(
            (result.bias_after, worst, result.loss_after), abs=1e-12
        )
        assert frontier.raw.loss == pytest.approx(result.loss_before, abs=1e-12)
    assert frontier.least_loss().loss == min(point.loss for point in frontier)
    assert "raw" in str(frontier)


def test_dataframes_come_back_as_they_came():
    pd = pytest.importorskip("pandas")
    pl = pytest.importorskip("polars")
    pa = pytest.importorskip("pyarrow")
    base, labels = [0.0, 1.0, 2.0], [1.0, None, 3.0]
    expected = Debiaser(eta=0.5).run(np.array(base), np.array([1.0, np.nan, 3.0])).served
    series = pd.Series(base, index=[5, 6, 7], name="f")
    known = pd.Series(labels, index=[5, 6, 7], dtype="Float64")
    got = Debiaser(eta=0.5).run(series, known).served
    assert isinstance(got, pd.Series) and list(got.index) == [5, 6, 7] and list(got) == list(expected)
    got = Debiaser(eta=0.5).run(pl.Series("f", base), pl.Series(labels)).served
    assert isinstance(got, pl.Series) and got.to_list() == list(expected)
    got = Debiaser(eta=0.5).run(pa.array(base), pa.array(labels)).served
    assert isinstance(got, pa.Array) and got.to_pylist() == list(expected)


@pytest.mark.parametrize("settings", [
    {"eta": 0.005, "groups": ["g", "h"]},
    {"eta": 0.005, "features": ["x"]},
    {"eta": 0.02, "outcome": "binary", "groups": ["g", "h"]},
    {"eta": 0.3, "outcome": "binary", "link": "shift", "groups": ["g"]},
    {"eta": 0.3, "groups": ["g"]},
    {"eta": 0.3},
], ids=repr)  # fmt: skip
@given(seed=st.integers(0, 10**6))
def test_bounds_hold_with_late_labels(settings, seed):
    rng = np.random.default_rng(seed)
    n = 200
    times = np.arange(n, dtype=float)
    due = times + rng.integers(1, 1 + seed % 15 + 1, n)
    binary = settings.get("outcome") == "binary"
    base = rng.uniform(0.05, 0.95, n) if binary else rng.normal(size=n)
    push = np.where(np.arange(n) // (1 + seed % 50) % 2, 1.0, -1.0)  # labels that turn round now and then
    labels = (push > 0).astype(float) if binary else base + push
    groups = {k: rng.integers(0, 3, n) for k in settings.get("groups", ())} or None
    features = {"x": rng.uniform(-1.5, 1.5, n)} if "features" in settings else None
    layer = Debiaser(**settings)
    layer.run(base, labels, groups, features, times=times, label_times=due)
    result = layer.equilibrium()
    assert result.bound is not None, "a theorem fits: delays are bounded and steps small"
    assert abs(result.largest) <= result.bound * (1 + 1e-9)
    assert result.gap < 1e-12


def test_a_bound_is_vacuous_when_it_is_not_below_the_largest_possible_error():
    n = 150
    x = np.where(np.arange(n) % 3 == 0, -0.9, 0.8)
    layer = Debiaser(eta=0.1, outcome="binary", features=["x", "one"])
    layer.run(np.full(n, 0.5), np.arange(n) % 2, features={"x": x, "one": np.ones(n)})
    result = layer.equilibrium()
    assert result.bound > 1.0 and result.vacuous
    small = Debiaser(eta=0.1, outcome="binary", features=["x"])
    small.run(np.full(n, 0.5), np.arange(n) % 2, features={"x": x / 10})
    assert small.equilibrium().vacuous == (small.equilibrium().bound >= 0.09)


def test_rows_without_a_label_do_not_loosen_the_bound_of_late_overlapping_groups():
    """Only labels have a lateness: rows served in between count in it, rows that never get a label have none."""
    n, found = 240, []
    times = np.arange(float(n))
    groups = {"g": np.arange(n) % 2, "h": np.arange(n) % 3}
    for lost in (False, True):
        labels = np.where(np.arange(n) < 60, 1.0, np.nan) if lost else np.ones(60)
        rows = slice(0, n if lost else 60)
        own = {name: column[rows] for name, column in groups.items()}
        layer = Debiaser(eta=0.01, groups=["g", "h"])
        layer.run(np.zeros(n)[rows], labels, own, times=times[rows], label_times=times[rows] + 3)
        found.append(layer.equilibrium())
    assert found[1].bound <= 1.2 * found[0].bound


def test_an_overlapping_group_has_the_whole_bound_over_its_own_share_of_the_weight():
    rng = np.random.default_rng(9)
    groups = {"g": rng.integers(0, 2, 300), "h": rng.integers(0, 3, 300)}
    weights = rng.uniform(0.5, 2.0, 300)
    layer = Debiaser(eta=0.05, groups=["g", "h"])
    layer.run(rng.normal(size=300), rng.normal(size=300), groups, weights=weights)
    result = layer.equilibrium()
    for own in result.coordinates:
        column, value = own.name.split("=")
        mass = np.array(relative(weights.tolist()))
        share = mass[groups[column] == int(value)].sum() / mass.sum()
        assert own.bound == pytest.approx(result.bound / share, rel=1e-12)
