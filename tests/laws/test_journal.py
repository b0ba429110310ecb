"""A layer is a sum of postings: journals, JSON, merging and columns follow, for every kind."""

import json

import numpy as np
import pytest

from gradeq import Posting, Ticket
from laws.kinds import KINDS


def lived(kind, seed=0, rows=120, lost=0.1, corrected=0.05):
    """A layer after some rows whose labels came late, some never; its journal, and the tickets still open."""
    rng = np.random.default_rng(seed)
    layer, journal, open_ = kind.make(), [], []
    for _ in range(rows):
        ticket = layer.open(*kind.args(rng), **kind.where(rng))
        journal.append(ticket)
        if rng.random() > lost:
            open_.append(ticket)
        while open_ and rng.random() < 0.6:
            place = int(rng.integers(len(open_)))
            journal.append(layer.post(open_.pop(place), kind.label(rng)))
            if rng.random() < corrected:
                journal.extend(layer.repost(journal[-1], kind.label(rng)))
    return layer, journal, open_


def columns(layer):
    return json.loads(layer.to_json())["state"]["columns"]


@pytest.mark.parametrize("name", KINDS)
def test_tickets_and_postings_read_back_from_json_to_the_last_bit(name):
    _, journal, _ = lived(KINDS[name], rows=30)
    for entry in journal:
        again = type(entry).from_json(entry.to_json())
        assert again == entry and type(again) in (Ticket, Posting)
        assert isinstance(again.row.names, tuple)


@pytest.mark.parametrize("name", KINDS)
def test_a_replayed_journal_is_the_state_to_the_last_bit(name):
    kind = KINDS[name]
    layer, journal, _ = lived(kind)
    again = kind.make()
    again.replay(type(entry).from_json(entry.to_json()) for entry in journal)
    assert columns(again) == columns(layer)
    assert again.theta == layer.theta and str(again.equilibrium()) == str(layer.equilibrium())


@pytest.mark.parametrize("name", KINDS)
def test_a_ticket_in_the_callers_hands_is_a_ticket_in_the_book(name):
    """open + post = predict + update, also with JSON in between."""
    kind = KINDS[name]
    rngs = [np.random.default_rng(5) for _ in range(2)]
    held, booked = kind.make(), kind.make()
    tickets, order = {}, np.random.default_rng(6)
    for i in range(80):
        tickets[i] = held.open(*kind.args(rngs[0]), **kind.where(rngs[0])).to_json()
        booked.predict(*kind.args(rngs[1]), **kind.where(rngs[1]), id=i)
        for k in order.permutation(list(tickets))[: int(order.integers(0, 3))].tolist():
            y = kind.label(order)
            held.post(Ticket.from_json(tickets.pop(k)), y)
            booked.update(y, id=k)
        if i % 30 == 29:
            held, booked = kind.saved(held.to_json()), kind.saved(booked.to_json())
    assert columns(held) == columns(booked)


@pytest.mark.parametrize("name", KINDS)
def test_two_partitions_joined_add_up(name):
    """The certificate of the joined state is exact, its averages those of both streams together."""
    kind = KINDS[name]
    one, two = (lived(kind, seed, corrected=0.0)[0] for seed in (1, 2))
    rows = [layer.equilibrium().rows for layer in (one, two)]
    sums = [
        {c.name: c.average_gradient * n for c in layer.equilibrium().coordinates}
        for layer, n in zip((one, two), rows, strict=True)
    ]
    one.merge(two)
    joined = one.equilibrium()
    assert joined.rows == sum(rows) and joined.gap < 1e-9
    assert joined.bound is None
    for c in joined.coordinates:
        expected = sum(own.get(c.name, 0.0) for own in sums) / sum(rows)
        assert c.average_gradient == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", KINDS)
def test_merging_does_not_depend_on_the_order_but_for_rounding(name):
    kind = KINDS[name]
    thetas = []
    for order in ((0, 1, 2), (2, 1, 0), (1, 2, 0)):
        parts = [lived(kind, seed, rows=60)[0] for seed in order]
        parts[0].merge(parts[1])
        parts[0].merge(parts[2])
        thetas.append(parts[0].theta)
    for other in thetas[1:]:
        assert set(other) == set(thetas[0])
        for key, value in thetas[0].items():
            assert other[key] == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize("name", KINDS)
def test_nothing_grows_with_the_rows_served(name):
    """Only what is open and what is remembered is kept: the state of 300 rows is no longer than that of 100."""
    kind = KINDS[name]
    rng, layer, lengths = np.random.default_rng(0), kind.make(), []
    for i in range(301):
        layer.post(layer.open(*kind.args(rng), **kind.where(rng)), kind.label(rng))
        if i in (100, 300):
            lengths.append(sum(len(str(v)) and len(v.get("values", [])) for v in columns(layer).values()))
    assert lengths[0] == lengths[1]


@pytest.mark.parametrize("name", KINDS)
def test_public_objects_show_public_names_and_say_what_they_are(name):
    layer, _, _ = lived(KINDS[name], rows=10)
    assert not [n for n in dir(layer) if n.startswith("_") and not n.startswith("__")]
    assert type(layer).__name__ in repr(layer) and "10 served" in repr(layer)


@pytest.mark.parametrize("name", KINDS)
def test_looking_changes_nothing(name):
    """Accounts are entered when somebody looks: at every event, now and then in a copy, or only at the end."""
    kind, rngs = KINDS[name], [np.random.default_rng(7) for _ in range(3)]
    watched, copied, left = (kind.make() for _ in rngs)
    for i in range(60):
        for layer, rng in zip((watched, copied, left), rngs, strict=True):
            ticket = layer.open(*kind.args(rng), **kind.where(rng))
            layer.post(ticket, kind.label(rng))
        watched.equilibrium()
        if i % 7 == 0:
            copied = copied.copy()
    assert columns(watched) == columns(copied) == columns(left)


@pytest.mark.parametrize("name", KINDS)
def test_previewed_tickets_change_nothing_until_their_labels_come(name):
    """Replicas may serve from an old state: what they served is journalled with its label, and replays."""
    kind, rng = KINDS[name], np.random.default_rng(8)
    layer, journal, waiting = kind.make(), [], []
    for _ in range(120):
        before = layer.to_json()
        waiting.append(layer.preview(*kind.args(rng), **kind.where(rng)))
        assert layer.to_json() == before
        while waiting and rng.random() < 0.55:
            ticket = waiting.pop(int(rng.integers(len(waiting))))
            journal += [ticket, layer.adopt(ticket, kind.label(rng))]
    before = layer.to_json()
    with pytest.raises((ValueError, TypeError)):
        layer.adopt(waiting[0], "no label")
    assert layer.to_json() == before
    again = kind.make()
    again.replay(type(entry).from_json(entry.to_json()) for entry in journal)
    assert columns(again) == columns(layer)
    assert layer.traffic["served"] == len(journal) // 2


@pytest.mark.parametrize("name", KINDS)
def test_a_previewed_ticket_whose_label_comes_at_once_is_an_opened_one(name):
    kind = KINDS[name]
    rngs = [np.random.default_rng(9) for _ in range(2)]
    opened, previewed = kind.make(), kind.make()
    for _ in range(60):
        opened.post(opened.open(*kind.args(rngs[0]), **kind.where(rngs[0])), kind.label(rngs[0]))
        ticket = previewed.preview(*kind.args(rngs[1]), **kind.where(rngs[1]))
        previewed.adopt(ticket, kind.label(rngs[1]))
    assert columns(opened) == columns(previewed)


@pytest.mark.parametrize("name", ["scalar", "disjoint", "overlapping", "logit", "shift", "linear", "quantile", "elo"])
@pytest.mark.parametrize("burst", [1, 7, 40])
def test_bounds_hold_for_values_served_from_old_states(name, burst):
    """An adversary lets a burst of rows be served from one state and labels them all on one side."""
    kind, rng = KINDS[name], np.random.default_rng(burst)
    layer = kind.make()
    for turn in range(400 // burst):
        tickets = [layer.preview(*kind.args(rng), **kind.where(rng)) for _ in range(burst)]
        for k in rng.permutation(burst).tolist():
            up = turn % 5 < 3
            if kind.games or kind.binary:
                y = float(up)
            else:
                y = kind.label(rng) if turn % 3 else float(np.ravel(tickets[k].served)[0]) + (2 * up - 1)
            layer.adopt(tickets[k], y)
        reached = layer.equilibrium()
        if reached.bound is not None:
            assert abs(reached.largest) <= reached.bound * (1 + 1e-9)
    assert layer.traffic["peak"] >= burst / (1 if len(layer.theta) == 1 else len(layer.theta))
