"""Bounds from sums that a state keeps: of steps, and of the squares that the mix of auto left; and older states."""

import math
from fractions import Fraction

import numpy as np
import pytest

import gradeq as gq
from gradeq import Debiaser, Elo, Keyed, QuantileTracker
from gradeq.kernels.account import PATH, STEPS, VARIATION, follow

GROUPS = ["a", "b"]


def rows(n, seed=0):
    rng = np.random.default_rng(seed)
    groups = {"a": rng.choice(["x", "y"], n), "b": rng.choice(["u", "v", "w"], n)}
    return rng.uniform(-1.0, 1.0, n), groups, rng.uniform(0.3, 2.0, n)


def kept(result):
    for c in result.coordinates:
        assert c.bound is None or abs(c.bias_after) <= c.bound * (1 + 1e-9) + 1e-12, c
    assert abs(result.largest) <= result.bound * (1 + 1e-9) + 1e-12


def older(layer, *columns):
    """The layer as a state without these columns, which was saved before they came, makes it."""
    state = layer.internals.state
    saved = {name: own[:] for name, own in state.saved().items() if name not in columns}
    twin = layer.copy()
    twin.internals.state.restore(saved, state.counts["parameter"], state.counts["key"])
    return twin


def test_the_bound_of_overlapping_groups_vanishes_with_decaying_steps():
    found = []
    for n in (1000, 10_000, 100_000):
        layer = Debiaser(schedule=gq.Power(0.25, 0.5), groups=GROUPS)
        y, groups, _ = rows(n)
        layer.run(np.zeros(n), y, groups=groups)
        kept(layer.equilibrium())
        found.append(layer.equilibrium().bound)
    assert found[0] < 0.65 and found[1] < 0.36 and found[2] < 0.2


@pytest.mark.parametrize(
    "make",
    [
        lambda: Debiaser(schedule=gq.Power(0.25, 0.5), groups=GROUPS),
        lambda: Debiaser(schedule=gq.Power(0.25, 0.5), groups=["b"], outcome="real"),
        lambda: Debiaser(eta=0.05, groups=GROUPS, late_cap=0.01),
        lambda: Debiaser(groups=GROUPS),
        lambda: QuantileTracker(0.7, schedule=gq.Power(0.5, 0.3), groups=GROUPS),
    ],
)
@pytest.mark.parametrize("late", [False, True])
def test_events_and_columns_add_up_the_same_steps_to_the_last_bit(make, late):
    y, groups, w = rows(200, 3)
    times = np.arange(200.0)
    due = times + (np.where(np.arange(200) % 3, 0.0, 4.5) if late else 0.0)
    whole, parts, events = make(), make(), make()
    groups = {k: groups[k] for k in whole.internals.names.groups}
    labels = {"times": times, "label_times": due} if late else {}
    whole.run(np.zeros(200), y, groups=groups, weights=w, **labels)
    for part in (slice(0, 70), slice(70, 71), slice(71, 200)):
        few = {k: v[part] for k, v in labels.items()}
        own = {k: v[part] for k, v in groups.items()}
        parts.run(np.zeros(200)[part], y[part], groups=own, weights=w[part], **few)
    waiting = []
    for i in range(200):
        for j in sorted((j for j in waiting if due[j] <= times[i]), key=lambda j: (due[j], j)):
            events.update(y[j], id=j)
            waiting.remove(j)
        row = {k: v[i] for k, v in groups.items()}
        events.predict(0.0, groups=row, weight=w[i], id=i)
        if late:
            waiting.append(i)
        else:
            events.update(y[i], id=i)
    for name in ("steps", "total_steps", "mix_squares", "total_mix_squares"):
        if hasattr(whole.internals.state, name):
            own = getattr(whole.internals.state, name).tolist()
            assert own == getattr(parts.internals.state, name).tolist(), name
            assert own == getattr(events.internals.state, name).tolist(), name
    kept(whole.equilibrium())


def test_a_state_without_the_sums_of_steps_prints_the_older_bound():
    y, groups, _ = rows(2000)
    layer = Debiaser(schedule=gq.Power(0.25, 0.5), groups=GROUPS)
    layer.run(np.zeros(2000), y, groups=groups)
    old = older(layer, "steps", "total_steps")
    assert old.equilibrium().bound > 1.5 * layer.equilibrium().bound
    kept(old.equilibrium())
    before = old.equilibrium().bound
    old.run(np.zeros(2000), y, groups=groups)
    assert math.inf in old.internals.state.steps and before / 2 < old.equilibrium().bound < 2 * before
    kept(old.equilibrium())
    again = gq.from_json(old.to_json())
    assert again.equilibrium().bound == old.equilibrium().bound


def test_auto_is_bounded_by_the_squares_of_what_its_mix_left():
    rng = np.random.default_rng(1)
    n = 4000
    y = rng.standard_t(2.2, n) * 10.0
    groups = {"a": rng.choice(["x", "y"], n), "b": rng.choice(["u", "v", "w"], n)}
    plain, auto = Debiaser(eta=0.01, groups=GROUPS), Debiaser(groups=GROUPS)
    for layer in (plain, auto):
        layer.run(np.zeros(n), y, groups=groups)
        kept(layer.equilibrium())
    assert auto.equilibrium().bound < 1.5 * plain.equilibrium().bound
    old = older(auto, "mix_squares", "total_mix_squares")
    assert old.equilibrium().bound > 5 * auto.equilibrium().bound
    old.run(np.zeros(n), y, groups=groups)
    kept(old.equilibrium())
    assert math.inf in old.internals.state.mix_squares


def test_auto_in_keys_and_corrected_keeps_its_squares():
    rng = np.random.default_rng(2)
    layer = Keyed(Debiaser())
    layer.run(np.zeros(600), rng.normal(size=600), key=rng.choice(list("abc"), 600))
    kept(layer.equilibrium())
    for key in "abc":
        kept(layer.equilibrium(key))
    one = Debiaser()
    for i in range(50):
        one.predict(0.0, id=i)
        one.update(float(rng.normal()), id=i)
    before = one.internals.state.mix_squares[0]
    one.correct(7, 100.0)
    assert one.internals.state.mix_squares[0] > before + 9000.0
    assert one.equilibrium().bound is None


@pytest.mark.parametrize("penalty", [gq.Lasso, gq.Ridge])
@pytest.mark.parametrize("settings", [{}, {"outcome": "binary"}, {"outcome": "binary", "link": "shift"}])
def test_a_small_penalty_leaves_the_bound_of_a_layer_as_it_is(penalty, settings):
    y, groups, w = rows(3000)
    y = (y > 0.2) * 1.0 if settings else y
    base = np.full(3000, 0.5)
    found = []
    for own in ({}, {"penalty": penalty(1e-6)}, {"penalty": penalty(0.01)}):
        layer = Debiaser(eta=0.05, groups=GROUPS, **settings, **own)
        layer.run(base, y, groups=groups, weights=w)
        kept(layer.equilibrium())
        found.append(layer.equilibrium().bound)
    assert found[1] < 1.01 * found[0] and found[2] < 4 * found[0]


@pytest.mark.parametrize("penalty", [{"penalty": gq.Lasso(0.002)}, {"penalty": gq.Ridge(0.002)}, {"proximal": 0.002}])
def test_ratings_with_the_papers_penalty_have_a_bound_that_says_something(penalty):
    rng = np.random.default_rng(4)
    a = rng.integers(0, 20, 3000)
    b = (a + 1 + rng.integers(0, 19, 3000)) % 20
    elo = Elo(0.1, **penalty)
    elo.run([f"p{i}" for i in a], [f"p{i}" for i in b], (rng.random(3000) < 0.7) * 1.0)
    kept(elo.equilibrium())
    assert elo.equilibrium().bound < 0.06


def test_a_row_of_weight_0_whose_square_no_float_holds_warns_of_nothing():
    layer = Debiaser()
    layer.run(np.array([0.0, 1e200, 0.0]), np.array([1.0, -1e200, 2.0]), weights=np.array([1.0, 0.0, 1.0]))
    assert math.isfinite(layer.internals.state.mix_squares[0])


@pytest.mark.parametrize("columns", [False, True])
def test_the_sums_of_steps_are_those_of_the_postings(columns):
    """Added up again as fractions, from the steps and weights that rows were learned with."""
    rng = np.random.default_rng(4)
    n = 60
    f, y, w = rng.normal(size=n), rng.normal(size=n), rng.uniform(0.2, 3.0, n)
    layer = gq.Debiaser(schedule=gq.Power(0.5, 0.4))
    postings = [layer.post(layer.open(a, weight=c), b) for a, b, c in zip(f, y, w.tolist(), strict=True)]
    if columns:
        layer = gq.Debiaser(schedule=gq.Power(0.5, 0.4))
        layer.run(f, y, weights=w)
    mass = squares = variation = mass_changes = square_changes = Fraction(0)
    last = None
    for own in postings:
        inverse, step = 1 / Fraction(own.eta), Fraction(own.eta) * Fraction(own.weight)
        change = Fraction(0) if last is None else abs(inverse - last)
        variation += change
        mass_changes, square_changes = (mass_changes + mass * change, square_changes + squares * change)
        mass, squares, last = mass + step, squares + step * step, inverse
    assert layer.equilibrium().rows == n
    wanted = [float(own) for own in (mass, squares, mass_changes, square_changes)]
    for found in (layer.internals.state.total_steps, layer.internals.state.steps):
        assert list(found) == pytest.approx(wanted, rel=1e-12)
    assert float(layer.internals.state.total_path[VARIATION]) == pytest.approx(float(variation), rel=1e-12)


def test_many_labels_of_one_step_are_followed_as_each_of_them():
    one, many = [(np.zeros(PATH), np.zeros(STEPS)) for _ in range(2)]
    for eta, count in ((0.5, 3), (0.25, 2), (0.4, 4)):
        follow(*many, 0, eta, 2.0, float(count))
        for _ in range(count):
            follow(*one, 0, eta, 2.0, 1.0)
    assert all(np.allclose(a, b, rtol=1e-14) for a, b in zip(one, many, strict=True))
