"""One event at a time, whole columns, any cut, saved and resumed, compiled or not: the same bits."""

import numpy as np
import pytest

from gradeq import Debiaser, Lasso, Power, Ridge, from_json

N = 400
SETTINGS = [
    {"eta": 0.05},
    {"eta": 0.05, "groups": ["race"]},
    {"eta": 0.05, "groups": ["race", "sex"]},
    {"eta": 0.02, "groups": ["race"], "features": ["x", "z"]},
    {"eta": 0.02, "features": ["x"]},
    {"outcome": "binary"},
    {"outcome": "binary", "groups": ["race", "sex"]},
    {"outcome": "binary", "link": "shift", "groups": ["race"]},
    {"schedule": Power(0.5, 0.5), "groups": ["race"]},
    {"schedule": Power(0.5, 0.4), "groups": ["race", "sex"]},
    {"eta": 0.05, "penalty": Lasso(0.01), "groups": ["race", "sex"]},
    {"eta": 0.05, "penalty": Ridge(0.01), "features": ["x"]},
    {"eta": 0.01, "link": "exp"},
    {"eta": 0.3, "in_flight": 7, "groups": ["race"]},
    {"eta": "auto"},
    {"eta": "auto", "outcome": "binary", "groups": ["race"]},
    {"eta": "auto", "groups": ["race", "sex"]},
]


def stream(settings, seed=0, n=N, missing=True):
    rng = np.random.default_rng(seed)
    base = rng.normal(size=n)
    labels = base + 0.7 + rng.standard_t(3, size=n)
    if settings.get("outcome") == "binary":
        base, labels = 1 / (1 + np.exp(-base)), (labels > 0).astype(float)
    if settings.get("link") == "exp":
        base, labels = np.exp(0.3 * base), np.exp(0.3 * labels)
    if missing:
        labels[rng.random(n) < 0.1] = np.nan
    groups = {"race": rng.choice(["a", "b", "c"], n, p=[0.7, 0.2, 0.1]), "sex": rng.choice(["f", "m"], n)}
    features = {"x": rng.normal(size=n), "z": rng.uniform(-1, 1, n)}
    times = np.sort(rng.uniform(0, 100, n)).round(1)
    due = times + rng.exponential(3, n).round(1)
    return (
        base,
        labels,
        {name: groups[name] for name in settings.get("groups", ())} or None,
        {name: features[name] for name in settings.get("features", ())} or None,
        times,
        due,
    )


def part(columns, rows):
    return None if columns is None else {name: column[rows] for name, column in columns.items()}


def same(one, other):
    return one.to_json() == other.to_json()


@pytest.mark.parametrize("settings", SETTINGS, ids=repr)
def test_events_equal_columns_to_the_last_bit(settings):
    base, labels, groups, features, _, _ = stream(settings, missing=False)
    batch, events = Debiaser(**settings), Debiaser(**settings)
    served = batch.run(base, labels, groups, features).served
    one_by_one = []
    for i in range(len(base)):
        row_groups = None if groups is None else {k: str(v[i]) for k, v in groups.items()}
        row_features = None if features is None else {k: v[i] for k, v in features.items()}
        one_by_one.append(events.predict(base[i], row_groups, row_features))
        events.update(labels[i])
    assert np.array_equal(served, one_by_one)
    assert batch.theta == events.theta
    assert str(batch.equilibrium()) == str(events.equilibrium())
    assert same(batch, events)


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("settings", SETTINGS, ids=repr)
def test_any_cut_saved_and_resumed_equals_the_whole_run(settings, late):
    base, labels, groups, features, times, due = stream(settings)
    when = (times, due) if late else (None, None)
    whole = Debiaser(**settings)
    served = whole.run(base, labels, groups, features, *when).served
    pieces, resumed = [], Debiaser(**settings)
    for a, b in [(0, 1), (1, 90), (90, 91), (91, 250), (250, N)]:
        rows = slice(a, b)
        cut = (times[rows], due[rows]) if late else (None, None)
        got = resumed.run(base[rows], labels[rows], part(groups, rows), part(features, rows), *cut)
        pieces.append(got.served)
        resumed = from_json(resumed.to_json())
    assert np.array_equal(served, np.concatenate(pieces))
    assert same(whole, resumed)


@pytest.mark.parametrize("settings", SETTINGS, ids=repr)
def test_late_columns_equal_late_events(settings):
    """Posting by id what is due before each row, in order of label time, is what a run does."""
    base, labels, groups, features, times, due = stream(settings, missing=False)
    batch, events = Debiaser(**settings), Debiaser(**settings)
    served = batch.run(base, labels, groups, features, times, due).served
    one_by_one, pending = [], []
    for i in range(len(base)):
        for _, k in sorted(entry for entry in pending if entry[0] <= times[i]):
            events.update(labels[k], id=k)
        pending = [entry for entry in pending if entry[0] > times[i]]
        row_groups = None if groups is None else {k: str(v[i]) for k, v in groups.items()}
        row_features = None if features is None else {k: v[i] for k, v in features.items()}
        one_by_one.append(events.predict(base[i], row_groups, row_features, id=i))
        pending.append((due[i], i))
    assert np.array_equal(served, one_by_one)
    assert batch.theta == events.theta
    assert str(batch.equilibrium()) == str(events.equilibrium())
    assert batch.traffic == events.traffic


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("settings", SETTINGS[:3] + SETTINGS[5:7] + SETTINGS[10:11] + SETTINGS[14:15], ids=repr)
def test_compiled_equals_interpreted(settings, late, monkeypatch):
    pytest.importorskip("numba")
    base, labels, groups, features, times, due = stream(settings, seed=3, n=1500)
    when = (times, due) if late else (None, None)
    interpreted, compiled = Debiaser(**settings), Debiaser(**settings)
    monkeypatch.setenv("GRADEQ_COMPILE", "0")
    slow = interpreted.run(base, labels, groups, features, *when)
    monkeypatch.setenv("GRADEQ_COMPILE", "1")
    fast = compiled.run(base, labels, groups, features, *when)
    assert np.array_equal(slow.served, fast.served)
    assert same(interpreted, compiled)


def test_a_subclass_may_change_what_is_served():
    class Rounded(Debiaser):
        def predict(self, f, **given):
            return round(super().predict(f, **given))

    layer = Rounded(eta=0.5)
    layer.predict(10.0), layer.update(13.0)
    assert layer.predict(10.0) == 12 and layer.update(11.4) == "applied"
    assert layer.predict(10.0) == 11


def test_copies_are_independent():
    layer = Debiaser(eta=0.5)
    layer.predict(10.0), layer.update(12.0)
    twin = layer.copy()
    layer.predict(10.0), layer.update(12.0)
    assert (twin.theta, layer.theta) == ({"(all)": 1.0}, {"(all)": 1.5})
