"""Rounds: the state after one does not depend on how its rows were cut, and is what the library makes of them."""

import json

import numpy as np
import pytest

import gradeq as gq
from gradeq.kernels.account import GRADIENT
from gradeq.layers.rounds import RoundSums, check_layer, part_of, posted, served, together
from gradeq.ledger.exact import exact, exact_sums

LAYERS = {
    "scalar": (lambda: gq.Debiaser(0.05), ()),
    "groups": (lambda: gq.Debiaser(0.05, groups=["g"]), ("g",)),
    "no cap": (lambda: gq.Debiaser(0.004, late_cap=None), ()),
    "logit": (lambda: gq.Debiaser(0.3, outcome="binary", groups=["g"]), ("g",)),
    "shift": (lambda: gq.Debiaser(0.3, outcome="binary", link="shift"), ()),
}


def rows_of(name, rng, n):
    base = rng.uniform(0.05, 0.95, n)
    labels = (rng.random(n) < 0.7).astype(float)
    if name in ("scalar", "groups", "no cap"):
        labels = base + rng.normal(0.4, 1.0, n)
    labels[rng.random(n) < 0.1] = np.nan
    groups = {"g": rng.choice(["a", "b", "c"], n)} if LAYERS[name][1] else None
    return base, labels, groups


def cut(groups, own):
    return None if groups is None else {"g": groups["g"][own]}


def lived(name, pieces, seed=3, rounds=8, n=60):
    """A layer after some rounds, each cut into so many pieces at random; what was served; what the rounds were."""
    rng, cutting = np.random.default_rng(seed), np.random.default_rng(pieces)
    layer, sums, told, shown = LAYERS[name][0](), {}, [], []
    for _ in range(rounds):
        base, labels, groups = rows_of(name, rng, n)
        part, out = {}, np.empty(n)
        for own in np.array_split(cutting.permutation(n), pieces):
            out[own], more = part_of(layer, base[own], labels[own], cut(groups, own))
            part = together(part, {k: RoundSums.of(json.loads(json.dumps(v.state()))) for k, v in more.items()})
        layer, sums, one = posted(layer, sums, part)
        told.append(one)
        shown.append(out)
    return layer, np.concatenate(shown), told


@pytest.mark.parametrize("name", LAYERS)
def test_the_state_does_not_depend_on_how_rows_are_cut(name):
    whole, shown, told = lived(name, 1)
    for pieces in (2, 20):
        again, other, rounds = lived(name, pieces)
        assert again.to_json() == whole.to_json()
        assert np.array_equal(other, shown) and rounds == told


@pytest.mark.parametrize("name", LAYERS)
def test_a_round_is_a_run_that_serves_all_rows_and_then_hears_all_labels(name):
    """The library posts the tickets of a round with its steps: the same state, but for rounding."""
    rng, layer, _, _ = np.random.default_rng(3), *lived(name, 1)
    again, live, sums = LAYERS[name][0](), LAYERS[name][0](), {}
    for _ in range(8):
        base, labels, groups = rows_of(name, rng, 60)
        before = live
        shown, part = part_of(live, base, labels, groups)
        live, sums, _ = posted(live, sums, part)
        keys = [{} if groups is None else {"groups": {"g": str(g)}} for g in (groups or {"g": base})["g"]]
        tickets = [before.preview(float(f), **key) for f, key in zip(base, keys, strict=True)]
        assert [ticket.served for ticket in tickets] == shown.tolist()
        for ticket, key, y in zip(tickets, keys, labels, strict=True):
            if not np.isnan(y):
                place = again.internals.names.row(**key)[0]
                eta = step_given(before, live, place.names[0])
                entry = again.open(ticket.base, **key)._replace(served=ticket.served)
                again.replay([posting_with(again, entry, float(y), eta)])
    for name_, u in layer.theta.items():
        assert again.theta[name_] == pytest.approx(u, rel=1e-12)
    ours, theirs = layer.equilibrium(), again.equilibrium()
    assert ours.rows == theirs.rows and ours.gap < 1e-12
    assert ours.bias_after == pytest.approx(theirs.bias_after, rel=1e-9)
    assert ours.loss_after == pytest.approx(theirs.loss_after, rel=1e-12)


def step_given(before, after, name):
    """The step of a round: what the parameter moved over the gradients that moved it."""

    def of(layer, column):
        place = layer.internals.names.index.get(name)
        return 0.0 if place is None else layer.internals.state.sums[place * 10 + column]

    return (of(after, 3) - of(before, 3)) / (of(after, GRADIENT) - of(before, GRADIENT))


def posting_with(layer, ticket, y, eta):
    from gradeq.rules.rule import posting_of

    return posting_of(layer.internals.rule, ticket, y, eta, (1,))


@pytest.mark.parametrize("push", [1.0, -1.0])
@pytest.mark.parametrize("n", [1, 5, 40])
@pytest.mark.parametrize("cap", ["auto", None, 0.9])
def test_no_bound_is_exceeded_in_rounds(cap, n, push):
    """An adversary pushes whole rounds to one side, then to the other, with rounds of one row between."""
    rng, layer, sums = np.random.default_rng(n), gq.Debiaser(0.5 / n, late_cap=cap), {}
    for k in range(200 // n + 20):
        size = n if k % 7 else 1
        base = np.zeros(size)
        labels = np.full(size, push if (k // 9) % 3 else -push) * rng.choice([1.0, 1.0, 0.2], size)
        _, part = part_of(layer, base, labels)
        layer, sums, told = posted(layer, sums, part)
        found = layer.equilibrium()
        assert found.bound == told.bound
        assert told.bound is None or abs(found.largest) <= told.bound * (1 + 1e-9)
        if cap == "auto" and size > 1:
            assert told.step <= 0.1 / size


def test_sums_of_floats_are_exact():
    rng = np.random.default_rng(5)
    values = np.concatenate([
        rng.normal(size=500) * 2.0 ** rng.integers(-1000, 900, 500).astype(float),
        [5e-324, -5e-324, 2.5e-320, 0.0, -0.0, 1.7e308, -1.7e308],
    ])  # fmt: skip
    at = rng.integers(0, 4, len(values))
    wanted = [sum(exact(x) for x in values[at == k].tolist()) for k in range(4)]
    assert exact_sums(values, at, 4) == wanted


def test_what_is_no_sum_over_disjoint_parameters_is_refused():
    for layer in (
        gq.Debiaser("auto"), gq.Debiaser(0.1, groups=["g", "h"]), gq.Debiaser(0.1, features=["x"]),
        gq.Debiaser(0.1, penalty=gq.Ridge(0.1)), gq.QuantileTracker(0.9, 0.1), gq.Elo(0.1), 5,
        gq.Debiaser(schedule=gq.Power(0.5, 0.4)), gq.Debiaser(0.1, shadow=True),
    ):  # fmt: skip
        with pytest.raises(gq.BadInput, match="rounds"):
            check_layer(layer)


def test_refused_rows_change_nothing():
    layer = gq.Debiaser(0.1)
    before = layer.to_json()
    with pytest.raises(gq.BadInput, match="loss is not a number"):
        part_of(layer, np.zeros(2), np.array([1.0, 1e200]))
    with pytest.raises(gq.BadInput):
        part_of(layer, np.array([0.0, np.nan]), np.zeros(2))
    with pytest.raises(gq.Diverging):
        wild, sums = gq.Debiaser(1.9, late_cap=None), {}
        for _ in range(50):
            _, part = part_of(wild, np.zeros(20), np.ones(20))
            wild, sums, _ = posted(wild, sums, part)
    assert layer.to_json() == before


def test_serving_changes_nothing():
    layer, _, _ = lived("groups", 1)
    before = layer.to_json()
    served(layer, np.ones(5), {"g": ["a", "b", "new", "a", "c"]})
    assert layer.to_json() == before


def test_steps_that_the_cap_holds_to_one_and_the_same_have_a_bound():
    """0.1 / 300 times 300 is more than 0.1 by a rounding; the facts know that no step differed."""
    layer, sums, rng = gq.Debiaser(0.05), {}, np.random.default_rng(6)
    for _ in range(3):
        base = rng.normal(size=300)
        _, part = part_of(layer, base, base + rng.uniform(2.0, 4.0, 300))
        layer, sums, told = posted(layer, sums, part)
        assert told.bound is not None and abs(layer.equilibrium().largest) <= told.bound
