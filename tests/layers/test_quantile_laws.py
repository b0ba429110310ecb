"""What quantile trackers promise: exact certificates, bounds against any player, no crossing, no unit."""

import math
import sys
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradeq import (
    BadInput,
    Diverging,
    IntervalTracker,
    MultiQuantileTracker,
    Power,
    QuantileTracker,
    Ridge,
    from_json,
)
from gradeq.kernels.levels import FADE

SLACK = 1e-9


def players(rng):
    """Labels chosen with the served value in view: each tries to push coverage away from its level."""
    return {
        "misses by a hair": lambda served, f: min(served + 1e-9 * (1.0 + abs(served)), f + 3.0),
        "hugs from below": lambda served, f: max(f - 3.0, min(served, f + 3.0)),
        "flees": lambda served, f: f + 3.0 if served < f + 3.0 else f - 3.0,
        "drifts away": lambda served, f: f + min(3.0, abs(served - f) * 1.5 + 0.1),
        "jumps": lambda served, f: f + rng.choice([-3.0, 3.0]),
        "noise": lambda served, f: f + rng.uniform(-3.0, 3.0),
    }


def duel(layer, player, rounds, seed=0, groups=None):
    """Play one player against a layer, one round after the other."""
    rng = np.random.default_rng(seed)
    play = players(rng)[player]
    for _ in range(rounds):
        f = float(rng.normal())
        row = {} if groups is None else {"groups": {g: rng.choice(list("abc")) for g in groups}}
        served = layer.predict(f, **row)
        values = served if isinstance(served, tuple) else (served,)
        layer.update(float(play(values[int(rng.integers(len(values)))], f)))
    return layer.equilibrium()


def within_bounds(equilibrium):
    for c in equilibrium.coordinates:
        if c.bound is not None and c.rows:
            assert abs(c.bias_after) <= c.bound * (1 + SLACK) + SLACK, c
    assert abs(equilibrium.largest) <= equilibrium.bound * (1 + SLACK) + SLACK


@pytest.mark.parametrize("player", players(np.random.default_rng(0)))
@pytest.mark.parametrize("link", ["sinh", "linear"])
@pytest.mark.parametrize("level", [0.1, 0.9])
def test_no_player_pushes_one_level_beyond_its_bound(level, link, player):
    within_bounds(duel(QuantileTracker(level, 0.3, link=link), player, 400))


@pytest.mark.parametrize("player", players(np.random.default_rng(0)))
@pytest.mark.parametrize("link", ["sinh", "linear"])
def test_no_player_pushes_several_levels_beyond_their_bounds(link, player):
    layer = MultiQuantileTracker([0.05, 0.1, 0.5, 0.9], 0.3, link=link)
    within_bounds(duel(layer, player, 400))


@pytest.mark.parametrize("player", players(np.random.default_rng(0)))
@pytest.mark.parametrize("groups", [["a"], ["a", "b"]], ids=len)
def test_no_player_pushes_groups_beyond_their_bounds(groups, player):
    within_bounds(duel(QuantileTracker(0.8, groups=groups), player, 300, groups=groups))
    within_bounds(duel(IntervalTracker(0.8, groups=groups), player, 300, groups=groups))


@pytest.mark.parametrize("player", players(np.random.default_rng(0)))
def test_the_bound_on_coverage_is_that_of_all_rows_together(player):
    """Disjoint groups add up; where groups overlap only coordinates are bounded, and none is shown for the whole."""
    for make in (lambda g: QuantileTracker(0.8, groups=g), lambda g: IntervalTracker(0.8, groups=g)):
        apart, overlapping = make(["a"]), make(["a", "b"])
        duel(apart, player, 300, groups=["a"])
        duel(overlapping, player, 300, groups=["a", "b"])
        coverage = apart.coverage
        assert abs(coverage.after - coverage.target) <= coverage.bound * (1 + SLACK)
        assert overlapping.coverage.bound is None and overlapping.coverage.vacuous is None
        assert overlapping.equilibrium().bound is not None


@pytest.mark.parametrize("player", players(np.random.default_rng(0)))
def test_bounds_hold_with_late_labels(player):
    rng = np.random.default_rng(3)
    for layer in (QuantileTracker(0.8), MultiQuantileTracker([0.2, 0.8], 0.2, link="linear")):
        play = players(rng)[player]
        waiting = {}
        for t in range(300):
            f = float(rng.normal())
            served = layer.predict(f, id=t)
            waiting[t] = float(play(served if isinstance(served, float) else served[0], f))
            while waiting and rng.random() < 0.5:
                k = rng.choice(list(waiting))
                layer.update(waiting.pop(k), id=int(k))
        within_bounds(layer.equilibrium())


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=60),
    st.sampled_from([0.025, 0.5, 0.975]),
    st.sampled_from(["sinh", "linear"]),
)
def test_the_coverage_gap_is_the_displacement_over_eta_n(labels, level, link):
    """Result 3.1: |coverage - level| = |u_1 - u| / (eta T), the comparator being that of the report."""
    layer = QuantileTracker(level, 0.25, link=link)
    covered = 0
    for y in labels:
        covered += y <= layer.predict(1.0)
        layer.update(y)
    gap = covered / len(labels) - level
    assert gap == pytest.approx(-layer.theta["(all)"] / (0.25 * len(labels)), abs=1e-12)
    assert layer.coverage.after == pytest.approx(covered / len(labels), abs=1e-9)
    assert layer.equilibrium().gap < 1e-12


@given(st.lists(st.tuples(st.floats(-5, 5), st.floats(-1e3, 1e3)), min_size=1, max_size=80))
def test_levels_never_cross_and_intervals_cover_as_counted(rows):
    many, pair = MultiQuantileTracker([0.1, 0.2, 0.5, 0.7], 0.4), IntervalTracker(0.5, 0.4)
    held = 0
    for f, y in rows:
        served = many.predict([f, -f, f * f, 1.0])
        assert all(a <= b for a, b in pairwise(served))
        many.update(y)
        lower, upper = pair.predict((f, f + 1.0))
        held += lower < y <= upper
        pair.update(y)
    assert pair.coverage.after == pytest.approx(held / len(rows), abs=1e-9)


def test_the_sinh_link_is_the_formula_written_out():
    """One level, and three with the projection by hand: asinh units, m at index K // 2, scale 1e-9 |m| at least."""
    rng = np.random.default_rng(5)
    layer = MultiQuantileTracker([0.2, 0.5, 0.8], 0.3)
    u, num, den = [0.0] * 3, 0.0, 0.0
    for _ in range(200):
        f = sorted(rng.normal(50.0, 3.0, size=3).tolist())
        m = f[1]
        served = layer.predict(f)
        if num == 0.0:
            want = f
        else:
            s = max(num / den, 1e-9 * abs(m))
            wish = [math.asinh((x - m) / s) + v for x, v in zip(f, u, strict=True)]
            want = [m + s * math.sinh(x) for x in isotonic(wish)]
        assert served == pytest.approx(want, rel=1e-12)
        y = float(rng.normal(52.0, 10.0))
        layer.update(y)
        u = [v - 0.3 * ((y <= q) - tau) for v, q, tau in zip(u, served, (0.2, 0.5, 0.8), strict=True)]
        num, den = FADE * num + abs(y - m), FADE * den + 1.0
    assert list(layer.theta.values()) == pytest.approx(u)
    assert math.isclose(FADE**100, 0.5)


def isotonic(z):
    """The max-min formula of isotonic regression."""
    n = len(z)
    means = {(i, j): sum(z[i : j + 1]) / (j + 1 - i) for i in range(n) for j in range(i, n)}
    return [max(min(means[i, j] for j in range(k, n)) for i in range(k + 1)) for k in range(n)]


def test_equality_counts_as_covered():
    """The tie as printed: on constant labels the printed convention covers always; ours at its level."""
    layer = QuantileTracker(0.5, 0.1, link="linear")
    for _ in range(1000):
        layer.predict(0.0)
        layer.update(0.0)
    assert layer.coverage.before == 1.0
    assert layer.coverage.after == pytest.approx(0.5, abs=0.002)


@pytest.mark.parametrize("level", [0.001, 0.025, 0.975, 0.999])
def test_extreme_levels_are_reached(level):
    rng = np.random.default_rng(1)
    y = rng.lognormal(size=20000)
    layer = QuantileTracker(level)
    layer.run(np.zeros(len(y)), y)
    assert layer.coverage.after == pytest.approx(level, abs=layer.coverage.bound)
    assert layer.coverage.bound < 0.01


@pytest.mark.parametrize("factor", [2.0**20, 1e6, 1e-9])
def test_units_do_not_matter_with_the_sinh_link(factor):
    rng = np.random.default_rng(2)
    f = np.cumsum(rng.normal(size=600))
    y = f + rng.standard_t(2, size=600) * np.exp(np.cumsum(rng.normal(size=600) * 0.05))
    for make in (lambda: QuantileTracker(0.9), lambda: QuantileTracker(0.9, "auto")):
        one, other = make().run(f, y).served, make().run(f * factor, y * factor).served
        assert np.array_equal(y <= one, y * factor <= other)
        assert other == pytest.approx(one * factor, rel=1e-6)


def test_a_jump_by_any_factor_is_caught_up_with_in_logarithmic_time():
    rng = np.random.default_rng(4)
    y = rng.exponential(size=4000)
    y[2000:] *= 500.0
    sinh, linear = QuantileTracker(0.9, warm=True), QuantileTracker(0.9, 0.1, link="linear")
    late = slice(2200, None)
    assert np.mean(y[late] <= sinh.run(np.zeros(4000), y).served[late]) == pytest.approx(0.9, abs=0.02)
    assert np.mean(y[late] <= linear.run(np.zeros(4000), y).served[late]) < 0.5


def test_the_warm_start_covers_exponential_scores_from_the_second_label():
    rng = np.random.default_rng(6)
    first = []
    for _ in range(300):
        layer = QuantileTracker(0.9, warm=True)
        y = rng.exponential(size=30)
        first.append(np.mean(y[10:] <= layer.run(np.zeros(30), y).served[10:]))
    assert np.mean(first) == pytest.approx(0.9, abs=0.02)


def test_the_cost_of_a_step_does_not_grow():
    layer = MultiQuantileTracker([0.1, 0.5, 0.9])
    rng = np.random.default_rng(0)

    def calls(rounds):
        count = 0

        def counted(frame, event, arg):
            nonlocal count
            count += event == "call"

        sys.setprofile(counted)
        for y in rng.normal(size=rounds).tolist():
            layer.predict(0.0)
            layer.update(y)
        sys.setprofile(None)
        return count

    early = calls(300)
    layer.run(np.zeros(20000), rng.normal(size=20000))
    assert calls(300) <= early * 1.05


def test_bounds_shrink_and_labels_until_says_when():
    rng = np.random.default_rng(8)
    layer = QuantileTracker(0.9)
    layer.run(np.zeros(500), rng.normal(size=500))
    more = layer.labels_until(0.01)
    assert layer.equilibrium().bound > 0.01
    layer.run(np.zeros(more + 1), np.clip(rng.normal(size=more + 1), -1.0, 1.0))
    assert layer.equilibrium().bound < 0.011
    assert QuantileTracker(0.9).labels_until(0.01) is None  # no label yet, so no range is known


def test_a_new_step_mid_life_keeps_the_certificate_and_a_valid_bound():
    rng = np.random.default_rng(9)
    layer = IntervalTracker(0.8, 0.3)
    layer.run(np.zeros(300), rng.normal(size=300))
    layer.set_step(0.05)
    layer.run(np.zeros(300), rng.normal(size=300))
    equilibrium = layer.equilibrium()
    assert not equilibrium.exact and equilibrium.gap < 1e-12
    within_bounds(equilibrium)


def test_decaying_steps_keep_their_bounds():
    rng = np.random.default_rng(10)
    for layer in (
        QuantileTracker(0.9, schedule=Power(0.5, 0.5)),
        MultiQuantileTracker([0.1, 0.9], schedule=Power(0.5, 0.3)),
    ):
        layer.run(np.zeros(3000), rng.standard_t(2, size=3000))
        within_bounds(layer.equilibrium())


def test_shadow_serves_the_forecast_and_learns():
    layer = IntervalTracker(0.8, 0.3, shadow=True)
    rng = np.random.default_rng(11)
    f = np.stack([np.full(100, -1.0), np.full(100, 1.0)], axis=1)
    y = rng.normal(size=100) * 3
    open_ = IntervalTracker(0.8, 0.3)
    assert np.array_equal(layer.run(f, y).served, f)
    open_.run(f, y)
    assert layer.theta == open_.theta
    assert layer.predict((-1.0, 1.0)) == (-1.0, 1.0)


@pytest.mark.parametrize(
    "make",
    [
        lambda: QuantileTracker(1.5),
        lambda: QuantileTracker(0.0),
        lambda: QuantileTracker(float("nan")),
        lambda: QuantileTracker(0.9, 0.0),
        lambda: QuantileTracker(0.9, float("inf")),
        lambda: QuantileTracker(0.9, link="cubic"),
        lambda: QuantileTracker(0.9, link="linear"),
        lambda: QuantileTracker(0.9, "auto", link="linear"),
        lambda: QuantileTracker(0.9, features=["x"]),
        lambda: QuantileTracker(0.9, 0.1, link="linear", warm=True),
        lambda: QuantileTracker(0.9, 0.1, schedule=Power(0.1, 0.5)),
        lambda: QuantileTracker(0.9, "auto", penalty=Ridge(0.1)),
        lambda: QuantileTracker(0.9, "auto", features=["x"]),
        lambda: MultiQuantileTracker([0.1, 0.9], penalty=Ridge(0.1)),
        lambda: IntervalTracker(0.8, 0.1, link="linear", penalty=Ridge(0.1)),
        lambda: MultiQuantileTracker([]),
        lambda: MultiQuantileTracker([0.9, 0.1]),
        lambda: MultiQuantileTracker([0.1, 0.1]),
        lambda: IntervalTracker(1.0),
    ],
)
def test_wrong_settings_are_refused_in_one_line(make):
    with pytest.raises(BadInput) as error:
        make()
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "use",
    [
        lambda layer: layer.predict(float("nan")),
        lambda layer: layer.predict([1.0, 2.0, 3.0]),
        lambda layer: layer.predict("one"),
        lambda layer: layer.update(float("inf")),
        lambda layer: layer.run([1.0, float("nan")], [1.0, 2.0]),
        lambda layer: layer.run([1.0], [1.0, 2.0]),
        lambda layer: layer.run(np.ones((4, 3)), np.ones(4)),
        lambda layer: layer.run([1.0], [1.0], groups={"race": ["a"]}),
    ],
)
def test_bad_values_are_refused_and_change_nothing(use):
    layer = IntervalTracker(0.8)
    layer.predict(1.0)
    before = layer.to_json()
    with pytest.raises(ValueError):
        use(layer)
    assert layer.to_json() == before


@pytest.mark.parametrize(
    "layer",
    [
        QuantileTracker(0.9, 1e100, features=["x"]),
        MultiQuantileTracker([0.1, 0.5, 0.9], 1e100, link="linear", features=["x"]),
    ],
    ids=repr,
)
def test_a_step_beyond_the_finite_numbers_is_refused_and_changes_nothing(layer):
    ticket, before = layer.open(0.0, features={"x": 1e150}), layer.to_json()
    with pytest.raises(Diverging):
        layer.post(ticket._replace(weight=1e99), 1.0)
    assert layer.to_json() == before
    if layer.link_name == "linear":  # what sinh serves is capped
        with pytest.raises(Diverging):
            layer.run([0.0] * 3, [1.0] * 3, features={"x": [1e150] * 3})
        assert layer.to_json() == before


@pytest.mark.parametrize("make", [lambda eta: QuantileTracker(0.9, eta), lambda eta: IntervalTracker(0.8, eta)])
def test_a_sweep_equals_one_run_for_each_step(make):
    rng = np.random.default_rng(3)
    base, labels = rng.normal(size=400), rng.normal(0.5, 2.0, 400)
    frontier = make(0.1).sweep([0.3, 0.03], base, labels)
    assert [point.eta for point in frontier] == [0.03, 0.3]
    for point in frontier:
        layer = make(point.eta)
        layer.run(base, labels)
        result = layer.equilibrium()
        assert point.loss == result.loss_after
        assert point.worst == max(abs(c.bias_after) for c in result.coordinates)
    assert frontier.raw.loss > frontier.least_loss().loss


@pytest.mark.parametrize(
    "make",
    [lambda: QuantileTracker(0.9, 0.1), lambda: MultiQuantileTracker([0.4, 0.6], 0.1)],
    ids=["one level", "several"],
)
def test_a_scale_that_would_overflow_is_saved_and_read_again(make):
    """Labels of 1e308 on both sides: the sum of their sizes is more than a number holds."""
    layer = make()
    for y in (1e308, -1e308, 1.5e308, -1.5e308):
        layer.predict(0.0)
        layer.update(y)
        again = from_json(layer.to_json())
        assert again.to_json() == layer.to_json()
