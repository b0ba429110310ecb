"""Combinations in which a bound, a cap or a coverage was once printed that a run exceeded, or that crashed."""

import math
import re

import numpy as np
import pytest

import gradeq as gq
from gradeq import BadInput, Conformal, Debiaser, Elo, Keyed, MultiQuantileTracker, QuantileTracker


def kept(result):
    """The largest average is within the bound, overall and for each coordinate over its own rows."""
    for c in result.coordinates:
        assert c.bound is None or abs(c.bias_after) <= c.bound * (1 + 1e-9) + 1e-12, c
    return result.bound is None or abs(result.largest) <= result.bound * (1 + 1e-9) + 1e-12


def push_away(layer, n, **given):
    """Labels that keep away from what is served."""
    for _ in range(n):
        layer.update(-1.0 if layer.predict(0.0, **given) > 0.0 else 1.0, **given)


def test_corrected_labels_leave_neither_bound_nor_harm_cap():
    layer = Debiaser(eta=0.5)
    for i in range(100):
        layer.predict(0.0, id=i), layer.update(-1.0, id=i)
    for i in range(100):
        layer.correct(i, 1.0)
    result = layer.equilibrium()
    assert abs(result.largest) > 1.9 and result.bound is None and layer.harm_cap().factor is None
    assert layer.labels_until(0.1) is None and "corrected" in str(result) and result.gap < 1e-12


@pytest.mark.parametrize("keyed", [False, True])
def test_steps_that_rose_and_fell_are_not_forgotten(keyed):
    layer = Keyed(Debiaser(eta=1.0)) if keyed else Debiaser(eta=1.0)
    given = {"key": "a"} if keyed else {}
    for eta in (0.01, 1.5, 0.01, 1.5, 0.01):
        layer.set_step(eta)
        push_away(layer, 7, **given)
    assert kept(layer.equilibrium()) and layer.harm_cap().factor is None if not keyed else True
    if keyed:
        assert kept(layer.equilibrium("a"))


@pytest.mark.parametrize(
    "settings", [{"groups": ["g", "h"]}, {"features": ["x"]}, {"groups": ["g"], "penalty": gq.Ridge(0.1)}], ids=repr
)
def test_the_bound_of_a_coordinate_is_not_shown_as_that_of_coverage(settings):
    layer = QuantileTracker(0.9, 0.1, **settings)
    rng = np.random.default_rng(0)
    columns = {k: rng.choice(list("ab"), 200) for k in settings.get("groups", ())} or None
    x = {"x": rng.normal(size=200)} if "features" in settings else None
    layer.run(np.zeros(200), rng.normal(size=200), columns, x)
    assert layer.coverage.bound is None
    assert kept(layer.equilibrium())


def test_options_that_no_theorem_covers_are_refused():
    with pytest.raises(BadInput, match="one level"):
        MultiQuantileTracker([0.1, 0.9], 0.1, groups=["g"], penalty=gq.Ridge(0.1))
    with pytest.raises(BadInput, match="warm"):
        QuantileTracker(0.9, 0.1, warm=True, penalty=gq.Ridge(0.1))


def test_lateness_that_has_happened_is_not_erased():
    layer = Debiaser(eta=1.0, late_cap=None)
    tickets = [layer.open(0.0) for _ in range(30)]
    for ticket in tickets[::-1]:
        layer.post(ticket, 1.0)
    layer.reset_in_flight()
    assert kept(layer.equilibrium()) and layer.harm_cap().factor is None


def test_proximal_elo_with_small_weights_keeps_its_bound():
    elo = Elo(0.5, proximal=0.2)
    rng = np.random.default_rng(1)
    for _ in range(300):
        a, b = rng.choice(4, 2, replace=False)
        elo.play(f"p{a}", f"p{b}", 1.0 if a < b else 0.0, weight=0.05)
    assert kept(elo.equilibrium())


@pytest.mark.parametrize("penalty", [gq.Lasso(0.05), gq.Ridge(0.05)], ids=repr)
def test_elo_with_home_advantage_and_a_penalty_keeps_its_bound(penalty):
    elo = Elo(0.3, penalty=penalty, home_advantage=True)
    rng = np.random.default_rng(2)
    for t in range(300):
        a, b = rng.choice(3, 2, replace=False)
        side = float(rng.choice([-1.0, 1.0]))
        p = elo.peek(f"p{a}", f"p{b}", home=side)
        elo.play(f"p{a}", f"p{b}", 0.0 if p > 0.5 or t % 2 else 1.0, home=side)
    assert kept(elo.equilibrium())


def test_an_error_outside_its_range_is_refused():
    knob = gq.RiskControl(lambda theta, y: y, 0.5, 0.1, span=(0.0, 1.0))
    knob.predict()
    before = knob.to_json()
    for bad in (-0.1, 1.1):
        with pytest.raises(BadInput, match=r"must lie in \[0, 1\]"):
            knob.update(bad)
    assert knob.to_json() == before


@pytest.mark.parametrize("make", [lambda: QuantileTracker(0.9, 0.1, link="linear"), lambda: Debiaser(0.5)])
def test_steps_below_the_digits_of_the_forecast_keep_their_bound(make):
    """f + u = f in floats: the parameter moves and what is served does not, until it is large enough."""
    layer = make()
    for t in range(400):
        layer.predict(1e16 if t % 2 else 3e16)
        layer.update(1e16 + 2.0 if t % 2 else 3e16 - 4.0)
    assert kept(layer.equilibrium())


def test_heavy_late_labels_do_not_run_away():
    layer = Debiaser(eta=0.01)
    number, worst = 0, 0.0
    for _ in range(30):
        for _ in range(50):
            worst = max(worst, abs(layer.predict(0.0, weight=30.0, id=number)))
            number += 1
        for i in range(number - 50, number):
            layer.update(1.0, id=i)
    assert worst < 10.0 and kept(layer.equilibrium())


def test_penalties_do_not_go_stale_across_groups_or_pairs():
    elo = Elo(0.5, penalty=gq.Ridge(0.5))
    number = 0
    for _ in range(40):
        first = number
        for k in range(30):
            elo.predict(f"a{k}", f"b{k}", id=number)
            number += 1
        for i in range(first, number):
            elo.update(1.0, id=i)
    assert max(map(abs, elo.ratings.values())) < 50.0 and kept(elo.equilibrium())


def test_a_frozen_layer_learns_from_nothing_whenever_it_was_served():
    layer = Debiaser(eta=0.5)
    layer.run([0.0, 0.0], [1.0, 1.0], times=[0.0, 1.0], label_times=[5.0, 6.0])
    layer.predict(0.0, id="open")
    layer.freeze()
    layer.run([0.0], [1.0], times=[7.0], label_times=[9.0])
    layer.update(3.0, id="open")
    assert layer.correct("open", -3.0) == "corrected"
    result = layer.equilibrium()
    assert layer.theta == {"(all)": 0.0} and result.rows == 0 and result.gap == 0.0
    events, columns = Debiaser(eta=0.5), Debiaser(eta=0.5)
    for one in (events, columns):
        one.freeze()
    events.predict(0.0), events.update(1.0)
    columns.run([0.0], [1.0])
    assert events.traffic == columns.traffic and events.traffic["labelled"] == 1


def test_link_exp_has_a_step_without_a_unit():
    rng = np.random.default_rng(3)
    for size in (1e-3, 1.0, 1e6):
        f = size * np.exp(rng.normal(size=800))
        y = f * 1.3 * np.exp(0.3 * rng.normal(size=800))
        layer = Debiaser(link="exp")
        served = np.asarray(layer.run(f, y).served)
        assert (served / f).max() < 2.0
        result = layer.equilibrium()
        assert kept(result) and result.bound is not None and abs(result.bias_after) < 0.2
        assert result.bias_after == pytest.approx(np.mean((served - y) / f), abs=1e-9)


@pytest.mark.parametrize("size", [1e-300, 1e-170, 1e-162, 1e154, 1e200, 1e300])
@pytest.mark.parametrize(
    "make",
    [lambda s: Debiaser(0.5), lambda s: Debiaser(0.5, groups=["g", "h"]), lambda s: QuantileTracker(0.9, 0.1),
     lambda s: QuantileTracker(0.9, 0.1 * s, link="linear"), lambda s: Debiaser("auto"),
     lambda s: QuantileTracker(0.9, 0.1 * s, link="linear", groups=["g", "h"])],
)  # fmt: skip
def test_absurd_sizes_neither_crash_nor_break_a_bound(make, size):
    layer = make(min(max(size, 1e-90), 1e90))  # smaller and larger steps are refused
    rng = np.random.default_rng(4)
    groups = {"g": rng.choice(list("ab"), 60), "h": rng.choice(list("xy"), 60)}
    named = groups if layer.settings.get("groups") else None
    f = size * rng.uniform(-0.5, 0.5, 60)
    layer.run(f, f + size * rng.choice([-0.4, 0.4], 60), named)
    assert kept(layer.equilibrium()) and layer.labels_until(0.01) is not math.nan
    layer.harm_cap()
    str(layer.equilibrium())


def test_a_correction_cannot_make_a_parameter_infinite():
    layer = Debiaser(eta=1.9)
    layer.predict(0.0, id=1), layer.update(1.0, id=1)
    before = layer.to_json()
    with pytest.raises(gq.Diverging):
        layer.correct(1, 1.7e308)
    assert layer.to_json() == before


@pytest.mark.parametrize("make", [lambda: gq.QuantileEnsemble(0.9, [0.1], 0.1), lambda: Conformal("cqr", 0.9)])
def test_what_cannot_be_keyed_is_refused(make):
    with pytest.raises(BadInput, match="cannot be keyed"):
        Keyed(make())


def test_windows_of_every_layer():
    layers = {
        "elo": Elo(0.1), "keyed": Keyed(Debiaser(0.1)), "plain": gq.QuantileEnsemble(0.9, [0.1], 0.1, None),
        "risk": gq.RiskControl(lambda theta, y: float(y > theta), 0.2, 0.1),
    }  # fmt: skip
    for name, layer in layers.items():

        def step(y, layer=layer, name=name):
            if name == "elo":
                layer.play("a", "b", float(y > 0.5))
            elif name == "keyed":
                layer.predict(0.0, key="new" if y > 0.5 else "old"), layer.update(y)
            else:
                layer.predict(*(() if name == "risk" else (0.0,))), layer.update(y)

        step(0.2)
        earlier = layer.copy()
        step(0.9), step(0.1)
        window = layer.since(earlier)
        assert window.rows == 2 and window.gap < 1e-12


def test_a_long_list_of_steps_is_no_matter_for_the_compiler():
    n = 200_001
    layer = Debiaser(schedule=gq.Listed((0.1,) * n))
    layer.run(np.zeros(n), np.ones(n))
    assert layer.steps["largest"] == 0.1


def test_labels_until_is_reached_where_it_says():
    """Falling steps, late labels, an empty layer."""
    assert Debiaser(eta=0.1).labels_until(0.01) is None or Debiaser(eta=0.1).labels_until(0.01) > 0
    layer = Debiaser(schedule=gq.Power(0.5, 0.5))
    rng = np.random.default_rng(5)
    labels = rng.choice([-1.0, 1.0], 50_000)
    layer.run(np.zeros(100), labels[:100])
    target = layer.equilibrium().bound / 3.0
    more = layer.labels_until(target)
    assert more is not None and more > 0
    layer.run(np.zeros(int(1.05 * more) + 5), labels[100 : 105 + int(1.05 * more)])
    assert layer.equilibrium().bound <= target


@pytest.mark.parametrize(
    "make",
    [lambda: Keyed(Debiaser(0.1)), lambda: Debiaser(0.1, groups=["g"], penalty=gq.Ridge(0.05)),
     lambda: Debiaser(0.1, groups=["g"]), lambda: QuantileTracker(0.9, schedule=gq.Power(0.5, 0.5))],
)  # fmt: skip
def test_labels_until_tells_what_is_reached_from_what_is_not(make):
    """Also of keys together, with a penalty, and where late weights made the steps vary."""
    layer, n, rng = make(), 70, np.random.default_rng(8)
    given = {"groups": {"g": rng.choice(list("ab"), n)}} if layer.settings.get("groups") else {}
    given |= {"key": rng.integers(0, 3, n)} if layer.kind == "keyed" else {}
    if layer.settings.get("penalty") is None and layer.kind == "debias":
        given |= {"times": np.arange(n), "label_times": np.arange(n) + rng.integers(0, 9, n)}
        given |= {"weights": rng.uniform(0.1, 1.0, n)}
    layer.run(np.zeros(n), rng.choice([-1.0, 1.0], n), **given)
    bound = layer.equilibrium().bound
    assert layer.labels_until(1.001 * bound) == 0 != layer.labels_until(0.999 * bound)


def test_coverage_of_a_level_is_called_vacuous_by_its_own_level():
    layer = MultiQuantileTracker([0.1, 0.5, 0.9], 0.1, groups=["g"])
    rng = np.random.default_rng(9)
    for _ in range(300):
        layer.run([0.0], rng.normal(size=1), {"g": rng.choice(list("ab"), 1)})
        for own in layer.coverage:
            assert own.vacuous == (not own.bound < max(abs(own.before - own.target), 0.05))


def test_link_exp_serves_no_infinity_in_columns_either():
    for served in (
        lambda layer: layer.predict(1e308, features={"x": 1.0}),
        lambda layer: layer.run([1e308], None, features={"x": [1.0]}),
    ):
        layer = Debiaser(0.1, link="exp", features=["x"])
        for _ in range(9):
            layer.predict(1.0, features={"x": 1.0}), layer.update(9.0)
        before = layer.to_json()
        with pytest.raises(gq.Diverging):
            served(layer)
        assert layer.to_json() == before


def test_a_ticket_without_a_time_does_not_keep_others_from_expiring():
    layer = Debiaser(eta=0.1, ttl=5.0)
    layer.predict(0.0, id="timeless")
    layer.predict(0.0, id="later", time=100.0)
    layer.predict(0.0, id="old", time=1.0)
    assert layer.expire(50.0) == 1 and layer.traffic["open"] == 2


def test_soft_labels_have_the_bound_that_is_proven_for_them():
    layer = Debiaser(0.5, outcome="binary", clip=0.01)
    rng = np.random.default_rng(6)
    layer.run(rng.uniform(0.2, 0.8, 5000), rng.uniform(0.3, 0.7, 5000))
    result = layer.equilibrium()
    assert result.bound_from == "C2" and kept(result)


def test_late_labels_of_overlapping_groups_have_a_bound():
    rng = np.random.default_rng(7)
    n = 400
    times = np.arange(float(n))
    layer = Debiaser(eta=0.02, groups=["g", "h"])
    groups = {"g": rng.choice(list("ab"), n), "h": rng.choice(list("xyz"), n)}
    layer.run(np.zeros(n), rng.choice([-1.0, 1.0], n), groups, times=times, label_times=times + 4)
    result = layer.equilibrium()
    assert result.bound is not None and kept(result)
    events = Debiaser(eta=0.02, groups=["g", "h"])
    for i in range(n):
        events.predict(0.0, {name: str(column[i]) for name, column in groups.items()}, id=i)
        if i >= 4:
            events.update(1.0, id=i - 4)
    assert events.equilibrium().bound_from == result.bound_from == "A1"  # not what holds for labels at once


def test_unlabelled_rows_do_not_inflate_the_bound_of_late_overlapping_groups():
    rng, n = np.random.default_rng(10), 200
    labels = np.where(np.arange(n) < 150, rng.choice([-1.0, 1.0], n), np.nan)
    groups = {"g": rng.choice(list("ab"), n), "h": rng.choice(list("xyz"), n)}
    times = np.arange(float(n))
    found = set()
    for end in (155, n):  # 45 rows more without a label
        layer = Debiaser(eta=0.02, groups=["g", "h"])
        own = {name: column[:end] for name, column in groups.items()}
        layer.run(np.zeros(end), labels[:end], own, times=times[:end], label_times=times[:end] + 4)
        events = Debiaser(eta=0.02, groups=["g", "h"])
        for i in range(end):
            if 4 <= i < 154:
                events.update(labels[i - 4], id=i - 4)
            events.predict(0.0, {name: str(column[i]) for name, column in own.items()}, id=i)
        found |= {layer.equilibrium().bound, events.equilibrium().bound}
    assert len(found) == 1 and None not in found


def test_a_forecast_too_large_to_move_by_less_than_its_digits_keeps_its_bound():
    """Just below the label, rounding serves the label itself: the parameter goes half a digit further."""
    layer = QuantileTracker(0.9, 0.05, link="linear")
    for _ in range(4000):
        layer.predict(1e16), layer.update(1e16 - 2.0)
    assert abs(layer.theta["(all)"]) > 2.5 and kept(layer.equilibrium())


@pytest.mark.parametrize("groups", [1, 2, 20, 200])
@pytest.mark.parametrize("eta", [0.1, "auto"])
def test_the_figure_before_a_bound_in_the_verdict_is_what_the_bound_is_about(groups, eta):
    """The bias over all rows is the sum of what groups keep, and may be larger than the bound on each of them."""
    layer = Debiaser(eta, groups=["g"])
    column = [str(i % groups) for i in range(20 * groups)]
    layer.run(np.zeros(len(column)), np.ones(len(column)), groups={"g": column})
    elo = Elo(eta)
    elo.run(column, ["rival"] * len(column), [1.0] * len(column))  # the first side always wins
    for reached in (layer.equilibrium(), elo.equilibrium()):
        verdict = reached.verdict()
        if reached.vacuous:
            assert "; no worst-case guarantee" in verdict
            continue
        figure, bound = beside_bound(verdict)
        assert figure == pytest.approx(abs(reached.largest), rel=1e-3)
        assert figure <= bound * (1 + 1e-3)
    found = layer.equilibrium()
    # What the groups keep adds up to the bias of all: never to more than all of their bounds.
    assert abs(found.bias_after) <= groups * found.bound * (1 + 1e-9)
    assert found.bias_after == pytest.approx(math.fsum(c.average_gradient for c in found.coordinates))
    # With one step all groups are alike; auto learns from one group for the others.
    if eta == 0.1:
        assert (abs(found.bias_after) > found.bound) == (groups > 1)


def beside_bound(verdict):
    """The last figure that is said before the bound, and the bound."""
    said = verdict.partition("proven limit ")
    named = re.findall(r"(?:bias.*? \S+ ->|largest average gradient|over all rows) (\S+?)[, ]", said[0])
    return abs(float(named[-1])), float(said[2].split()[0].rstrip(",)"))
