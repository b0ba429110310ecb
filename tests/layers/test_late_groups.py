"""Late labels with group columns or features: each coordinate is bounded by the steps of its own labels."""

import json

import numpy as np
import pytest

import gradeq as gq
from gradeq import Debiaser, MultiQuantileTracker, QuantileTracker
from gradeq.certificates.reading import reading_of, setting_of

ROWS = 3000
MAKERS = {
    "mean": lambda **more: Debiaser(0.02, **more),
    "auto": lambda **more: Debiaser("auto", **more),
    "logit": lambda **more: Debiaser(0.1, outcome="binary", maturity=0.0, clip=0.05, **more),
    "shift": lambda **more: Debiaser(0.1, outcome="binary", maturity=0.0, link="shift", **more),
    "quantile": lambda **more: QuantileTracker(0.9, 0.05, **more),
    "linear": lambda **more: QuantileTracker(0.5, 0.05, link="linear", **more),
    "levels": lambda **more: MultiQuantileTracker([0.1, 0.5, 0.9], 0.05, **more),
}


def stream(name, n=ROWS, seed=3):
    """Forecasts, labels (those of crossed groups apart, so that no sum of two is right), groups, times."""
    rng = np.random.default_rng(seed)
    groups = {"g": rng.choice(list("abc"), n, p=[0.6, 0.3, 0.1]), "h": rng.choice(list("xy"), n)}
    crossed = np.where((groups["g"] == "a") == (groups["h"] == "x"), 1.0, -1.0)
    forecasts, labels = rng.normal(size=n), 0.5 * crossed + rng.normal(size=n)
    if name in ("logit", "shift"):
        forecasts, labels = rng.uniform(0.3, 0.7, n), (labels > 0.0).astype(float)
    else:
        labels = forecasts + labels
    times = np.arange(float(n))
    return forecasts, labels, groups, times, times + rng.integers(1, 60, n)


def within(result):
    for c in result.coordinates:
        assert c.bound is not None and abs(c.bias_after) <= c.bound * (1 + 1e-9) + 1e-12, c
    assert abs(result.largest) <= result.bound * (1 + 1e-9)


@pytest.mark.parametrize("name", MAKERS)
def test_steps_that_differ_from_group_to_group_do_not_multiply_the_bound(name):
    """Each label has another step; by parts every change of it would cost the whole radius."""
    layer = MAKERS[name](groups=["g", "h"])
    f, y, groups, times, landed = stream(name)
    layer.run(f, y, groups, times=times, label_times=landed)
    result, setting = layer.equilibrium(), setting_of(reading_of(layer))
    within(result)
    assert layer.steps["capped"] > ROWS / 2
    assert setting.inverse_variation > 300.0 / setting.eta_last  # they changed all the time
    # Three times what one constant step, the mean of those given, would have; and the spread of the steps.
    own = setting.own_steps
    even = gq.theory.best_bound(gq.theory.Setting(**{**plain(setting), "eta": setting.step_mass / setting.n}))
    spread = float(np.sqrt(np.max(1.0 - own.mass**2 / own.squares / own.weights)))
    error = min(np.sqrt(np.max(own.errors / own.weights)), 1.0)
    assert result.bound <= 3.0 * even.value + spread * error


def plain(setting):
    """The same layer with one constant step."""
    names = (
        "task", "structure", "level", "levels", "n", "low", "high", "lows", "highs", "square_sum", "size", "clip",
        "largest", "dimension", "zero_scale_rounds", "lateness", "cap", "divisor",
    )  # fmt: skip
    return {name: getattr(setting, name) for name in names} | {"inverse_variation": 0.0}


def test_features_have_it_too():
    rng, n = np.random.default_rng(5), ROWS
    f, y, _, times, landed = stream("mean")
    layer = Debiaser(0.02, features=["x", "z"])
    layer.run(
        f, y, features={"x": rng.uniform(0.5, 1.0, n), "z": rng.uniform(-1.0, 1.0, n)},
        times=times, label_times=landed,
    )  # fmt: skip
    result = layer.equilibrium()
    assert all(abs(c.average_gradient) <= result.bound for c in result.coordinates)
    assert setting_of(reading_of(layer)).own_steps is not None


@pytest.mark.parametrize("name", MAKERS)
def test_events_columns_and_a_run_that_was_resumed_have_the_same_bounds(name):
    n = 300
    f, y, groups, times, landed = stream(name, n)
    whole, events, resumed = (MAKERS[name](groups=["g", "h"]) for _ in range(3))
    whole.run(f, y, groups, times=times, label_times=landed)
    due = {}
    for i in range(n):
        for k in sorted(due.pop(i, ())):
            events.update(float(y[k]), id=k)
        events.predict(float(f[i]), {g: str(own[i]) for g, own in groups.items()}, id=i)
        due.setdefault(int(landed[i]), []).append(i)
        if i == n // 2:
            events = gq.from_json(events.to_json())
    half = n // 2
    ids = [f"r{i}" for i in range(n)]
    for part in (slice(0, half), slice(half, n)):
        own = {g: column[part] for g, column in groups.items()}
        resumed.run(f[part], y[part], own, times=times[part], label_times=landed[part], ids=ids[part])
        resumed = gq.from_json(resumed.to_json())
    found = [bounds(layer) for layer in (whole, events, resumed)]
    if name == "auto":  # its experts depend on what was known at the cut
        found.pop()
    assert all(own == found[0] for own in found)


def bounds(layer):
    result = layer.equilibrium()
    return [result.bound, *(c.bound for c in result.coordinates)]


def test_a_state_that_never_added_up_its_steps_has_no_bound_of_this_form():
    f, y, groups, times, landed = stream("mean")
    layer = Debiaser(0.02, groups=["g", "h"])
    layer.run(f, y, groups, times=times, label_times=landed)
    state = layer.internals.state.copy()
    twin = gq.from_json(layer.to_json())
    for name in ("steps", "total_steps"):
        setattr(twin.internals.state, name, type(getattr(state, name))("d"))
    old = gq.from_json(twin.to_json())
    assert not len(old.internals.state.steps)
    before, after = old.equilibrium(), layer.equilibrium()
    assert before.bound > 50.0 * after.bound
    within(before)
    old.predict(0.0, {"g": "a", "h": "x"}), old.update(1.0)
    assert old.equilibrium().bound > 50.0 * after.bound  # what is not known does not become known
    json.loads(old.to_json())


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("name", ["mean", "logit", "quantile"])
def test_partitions_with_other_groups_keep_the_bound_of_each_when_merged(name, order):
    """``total_path`` keeps the larger 1/s of both and adds the changes: no part of a bound falls by merging.

    Every form is R/s + R' V with R and R' that grow with the sums of all labels, so the larger 1/s, the sum of V and
    the sums together bound each partition's coordinates; each path of a parameter is that of its own partition.
    """
    parts = []
    for k, delay in enumerate((3, 80)):  # the one is capped little, the other much
        f, y, groups, times, _ = stream(name, 600, seed=k)
        groups = {g: np.char.add(column, f"-{k}") for g, column in groups.items()}
        layer = MAKERS[name](groups=["g", "h"])
        layer.run(f, y, groups, times=times, label_times=times + delay)
        parts.append(layer)
    first, second = parts[:: 1 - 2 * order]
    before = [(len(p.equilibrium().coordinates), p.equilibrium()) for p in (first, second)]
    merged = gq.from_json(first.to_json())
    merged.merge(second)
    result = merged.equilibrium()
    assert result.bound is not None
    within(result)
    by_name = {c.name: c for c in result.coordinates}
    for _, own in before:
        assert result.bound * result.rows >= own.bound * own.rows * (1 - 1e-12)
        for c in own.coordinates:
            assert by_name[c.name].bound >= c.bound * (1 - 1e-12)
            assert by_name[c.name].bias_after == c.bias_after
