"""Only ratios of weights matter: a row is learned with its weight over the running mean of those served so far."""

import json
from dataclasses import replace

import numpy as np
import pytest

import gradeq as gq
from laws.kinds import KINDS, Kind
from relative import relative

WEIGHED = {name: kind for name, kind in KINDS.items() if kind.weights}
WEIGHED["exp"] = Kind(lambda: gq.Debiaser(0.05, link="exp"), support=(0.01, np.inf))
WEIGHED["keyed logit"] = Kind(lambda: gq.Keyed(gq.Debiaser(0.3, outcome="binary")), binary=True, keyed=True)
WEIGHED["elo home"] = Kind(lambda: gq.Elo(0.2, home_advantage=True), games=True)
WEIGHED["elo proximal"] = Kind(lambda: gq.Elo(0.2, proximal=1e-3), games=True)
EVERY = pytest.mark.parametrize("name", WEIGHED)


def events(kind, n, seed=0):
    """Arguments, place and label of n rows."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(n):
        args, where, y = kind.args(rng), kind.where(rng), kind.label(rng)
        if kind.make().settings.get("link") == "exp" or getattr(kind.make(), "link_name", "") == "exp":
            args = (abs(args[0]) + 0.1,)
        found.append((args, where, y))
    return found


def lognormal(n, sigma=3.0, seed=1):
    weights = np.exp(sigma * np.random.default_rng(seed).normal(size=n))
    weights[::7] = 0.0
    return weights.tolist()


def lived(kind, rows, weights, late=0):
    """The layer after these rows, each label ``late`` rows after its own; and all tickets and postings."""
    layer, journal, waiting = kind.make(), [], []
    for (args, where, y), w in zip(rows, weights, strict=True):
        given = {} if w is None else {"weight": w}
        journal.append(layer.open(*args, **where, **given))
        waiting.append((journal[-1], y))
        if len(waiting) > late:
            journal.append(layer.post(*waiting.pop(0)))
    journal += [layer.post(*own) for own in waiting]
    return layer, journal


def told(layer):
    """What a layer says, apart from the weights themselves."""
    found = layer.equilibrium()
    return replace(found, learning=None), layer.theta if hasattr(layer, "theta") else layer.ratings


def without_given(entry):
    return entry._replace(given=1.0)


@EVERY
@pytest.mark.parametrize("constant", [1e-6, 0.1, 3.7, 300.0, 1e6])
def test_constant_weights_are_no_weights_to_the_last_bit(name, constant):
    kind = WEIGHED[name]
    late = 0 if "proximal" in name else 3
    rows = events(kind, 60)
    plain, journal = lived(kind, rows, [None] * 60, late)
    heavy, weighed = lived(kind, rows, [constant] * 60, late)
    assert list(map(without_given, journal)) == list(map(without_given, weighed))
    assert repr(told(plain)) == repr(told(heavy))


@EVERY
def test_a_power_of_two_changes_no_bit_and_other_factors_only_round(name):
    kind, weights = WEIGHED[name], lognormal(60)
    late = 0 if "proximal" in name else 2
    rows = events(kind, 60)
    one, journal = lived(kind, rows, weights, late)
    for factor in (2.0**-20, 2.0**13):
        other, scaled = lived(kind, rows, [factor * w for w in weights], late)
        assert list(map(without_given, journal)) == list(map(without_given, scaled))
        assert repr(told(one)) == repr(told(other))
    _, scaled = lived(kind, rows, [0.3 * w for w in weights], late)
    for mine, theirs in zip(journal, scaled, strict=True):
        assert np.allclose(mine.served, theirs.served, rtol=1e-9, atol=1e-9)
        assert mine.weight == pytest.approx(theirs.weight, rel=1e-12)


@EVERY
def test_the_weight_on_a_ticket_is_the_one_given_over_the_mean_so_far(name):
    kind, weights = WEIGHED[name], lognormal(50)
    rows = events(kind, 50)
    _, journal = lived(kind, rows, weights)
    tickets = [entry for entry in journal if isinstance(entry, gq.Ticket)]
    keys = [ticket.row.key for ticket in tickets]
    assert [ticket.weight for ticket in tickets] == relative(weights, keys)
    assert [ticket.given for ticket in tickets] == weights


@EVERY
@pytest.mark.parametrize("late", [0, 4])
def test_columns_events_cuts_journals_and_saved_states_agree_to_the_last_bit(name, late):
    kind = WEIGHED[name]
    if kind.bare or ("proximal" in name and late):
        pytest.skip("labels of a knob are no column, and proximal Elo has no late scores")
    n, weights = 80, lognormal(80)
    rows = events(kind, n)
    for k in range(0, n, 11):  # some rows before the first weight, too
        weights[k] = 1.0
    weights[:5] = [1.0] * 5
    layer, journal = lived(kind, rows, weights, late)
    kept = kind.saved(layer.to_json())
    assert kept.to_json() == layer.to_json()
    again = kind.make()
    again.replay(gq.Ticket.from_json(e.to_json()) if isinstance(e, gq.Ticket) else gq.Posting.from_json(e.to_json())
                 for e in journal)  # fmt: skip
    assert again.to_json() == layer.to_json()

    def columns(part):
        y = np.array([row[2] for row in part])
        args = list(zip(*(row[0] for row in part), strict=True))
        given = {}
        for what in ("groups", "features"):
            if what in part[0][1]:
                names = part[0][1][what]
                given[what] = {k: np.array([row[1][what][k] for row in part]) for k in names}
        if kind.keyed:
            given["key"] = np.array([row[1]["key"] for row in part])
        return (*(np.array(own) for own in args), y), given

    def run(into, first, last):
        args, given = columns(rows[first:last])
        times = np.arange(first, last, dtype=float)
        if late:
            given |= {"times": times, "label_times": times + late + 0.5}
        into.run(*args, weights=np.array(weights[first:last]), **given)

    whole, cut = kind.make(), kind.make()
    run(whole, 0, n)
    for first, last in ((0, 3), (3, 30), (30, 31), (31, n)):
        run(cut, first, last)
        cut = kind.saved(cut.to_json())
    assert cut.to_json() == whole.to_json()
    if not late:
        assert whole.internals.state == layer.internals.state


@EVERY
def test_what_is_previewed_or_refused_leaves_the_mean_of_weights_as_it_was(name):
    kind = WEIGHED[name]
    if "proximal" in name:
        pytest.skip("tickets of proximal Elo are scored at once")
    rows = events(kind, 12)
    for before in ([1.0] * 6, [2.0, 0.5, 1.0, 0.0, 3.0, 7.0]):
        layer, _ = lived(kind, rows[:6], before)
        args, where, y = rows[6]
        text = layer.to_json()
        ticket = layer.preview(*args, **where, weight=5.0)
        assert layer.to_json() == text
        with pytest.raises(gq.GradeqError):
            layer.adopt(ticket._replace(row=ticket.row._replace(values=())), y)
        with pytest.raises((gq.GradeqError, TypeError)):  # a knob's error is the user's own function
            layer.adopt(ticket, "x")
        assert layer.to_json() == text
        layer.adopt(ticket, y)
        opened, _ = lived(kind, rows[:7], [*before, 5.0])
        assert layer.to_json() == opened.to_json()


@EVERY
def test_partitions_have_the_mean_of_all_their_weights(name):
    kind, weights = WEIGHED[name], lognormal(40)
    rows = events(kind, 40)
    for first in ([1.0] * 20, weights[:20]):
        one, _ = lived(kind, rows[:20], first)
        two, _ = lived(kind, rows[20:], weights[20:])
        one.merge(two)
        state, keys = one.internals.state, [row[1].get("key") for row in rows]
        for key in set(keys):
            own = [w for w, k in zip([*first, *weights[20:]], keys, strict=True) if w > 0 and k == key]
            at = one.internals.names.code(key) if kind.keyed else 0
            assert state.weighed[at] == len(own)
            assert state.mean_weight[at] == pytest.approx(np.mean(own), rel=1e-12)


def test_a_state_saved_when_weights_were_absolute_begins_a_new_mean():
    layer = gq.Debiaser(0.1)
    layer.run(np.zeros(30), np.ones(30), weights=np.full(30, 0.5))
    text = layer.to_json()
    assert json.loads(text)  # what follows is that state without the columns of the mean
    state = layer.internals.state
    for column in ("mean_weight", "weighed", "largest_weight", "heaviest_step"):
        setattr(state, column, state.weighed[:0])
    state.facts[9] = 2.0  # a weight of 2 was learned from
    old = gq.from_json(layer.to_json())
    assert old.open(0.0, weight=300.0).weight == 1.0
    assert old.open(0.0, weight=100.0).weight == 0.5


def test_a_state_without_weights_goes_on_with_a_mean_of_one():
    layer = gq.from_json(gq_state())
    assert layer.open(0.0, weight=300.0).weight == 300.0 / (1.0 + 299.0 / 31.0)


def gq_state():
    layer = gq.Debiaser(0.1)
    layer.run(np.zeros(30), np.ones(30))
    text = layer.to_json()
    assert "mean_weight" not in text  # earlier versions read it
    return text
