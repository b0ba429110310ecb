"""Tickets of a lost future (a restored backup, another copy of the layer) are refused, and nothing changes."""

import json

import numpy as np
import pytest

import gradeq as gq
from gradeq import Ticket
from gradeq.engine import branches
from laws.kinds import KINDS


def lived(kind, layer, rng, rows):
    """Serve rows and learn from their labels at once; one ticket of each is left over, in JSON."""
    left = []
    for _ in range(rows):
        left.append(layer.open(*kind.args(rng), **kind.where(rng)).to_json())
        layer.post(layer.open(*kind.args(rng), **kind.where(rng)), kind.label(rng))
    return left


def refused(layer, verb, ticket, y):
    before = layer.to_json()
    with pytest.raises(gq.TicketError, match="This ticket was") as error:
        getattr(layer, verb)(Ticket.from_json(ticket), y)
    assert "\n" not in str(error.value) and layer.to_json() == before
    return str(error.value)


@pytest.mark.parametrize("name", KINDS)
def test_a_restored_layer_refuses_what_the_lost_one_served(name):
    kind, rng = KINDS[name], np.random.default_rng(4)
    layer = kind.make()
    early = lived(kind, layer, rng, 5)
    saved = layer.to_json()
    lost = lived(kind, layer, rng, 10)
    twice = kind.saved(saved)  # a second future of the same backup, lost too
    lost += lived(kind, twice, rng, 10)
    restored = kind.saved(saved)
    assert restored.to_json() == saved
    assert "later state" in refused(restored, "post", lost[0], kind.label(rng))
    later = []
    for k in range(12):
        later += lived(kind, restored, rng, 1)
        for ticket in (lost[k % 10], lost[10 + k % 10]):
            refused(restored, "post", ticket, kind.label(rng))
    again = kind.saved(restored.to_json())
    for ticket in (*early, *later):
        again.post(Ticket.from_json(ticket), kind.label(rng))
    found = again.equilibrium()
    assert found.bound is None or abs(found.largest) <= found.bound * (1 + 1e-9)


@pytest.mark.parametrize("name", KINDS)
def test_a_ledger_refuses_what_replicas_of_a_lost_state_served(name):
    kind, rng = KINDS[name], np.random.default_rng(5)

    def previews(layer, count=2):
        return [layer.preview(*kind.args(rng), **kind.where(rng)).to_json() for _ in range(count)]

    def adopted(layer, rows):
        for _ in range(rows):
            layer.adopt(layer.preview(*kind.args(rng), **kind.where(rng)), kind.label(rng))

    ledger = kind.make()
    early = previews(ledger.copy())
    adopted(ledger, 6)
    early += previews(ledger.copy())
    saved = ledger.to_json()
    lost = []
    for _ in range(8):
        adopted(ledger, 1)
        lost += previews(kind.saved(ledger.to_json()))
    restored = kind.saved(saved)
    assert "later state" in refused(restored, "adopt", lost[-1], kind.label(rng))
    for k in range(10):
        adopted(restored, 1)
        for ticket in lost[k : k + 3]:
            refused(restored, "adopt", ticket, kind.label(rng))
    for ticket in early:
        restored.adopt(Ticket.from_json(ticket), kind.label(rng))
    found = restored.equilibrium()
    assert found.bound is None or abs(found.largest) <= found.bound * (1 + 1e-9)


def test_the_examples_of_the_report():
    """A step of 1, served 0: labels of 10 took the bias to 20 under a bound of 2."""
    layer = gq.Debiaser(eta=0.5)
    saved = layer.to_json()
    tickets = [layer.open(0.0) for _ in range(200)]
    older = gq.from_json(saved)
    for ticket in tickets:
        with pytest.raises(gq.UnknownTicket, match=r"later state of this layer.*serve the row again"):
            older.post(ticket, 10.0)
    assert older.theta["(all)"] == 0.0
    for ticket in tickets:
        layer.post(ticket, 10.0)
    found = layer.equilibrium()
    assert abs(found.largest) <= found.bound


def test_copies_go_their_own_ways_and_merged_partitions_know_the_tickets_of_both():
    layer = gq.Keyed(gq.Debiaser(0.5))
    layer.post(layer.open(1.0, key="a"), 2.0)
    twin = layer.copy()
    mine, theirs = layer.open(1.0, key="a"), twin.open(1.0, key="a")
    for own, other in ((layer, theirs), (twin, mine)):
        with pytest.raises(gq.UnknownTicket):
            own.post(other, 2.0)
    layer.post(mine, 2.0), twin.post(theirs, 2.0)
    one, two = (gq.Keyed(gq.Debiaser(0.5)) for _ in range(2))
    tickets = [one.open(1.0, key="a"), two.open(1.0, key="b")]
    one.merge(two)
    for ticket in tickets:
        one.post(ticket, 2.0)
    assert one.theta == {"a": 0.5, "b": 0.5} and one.equilibrium().bound is not None


def test_an_opened_ticket_is_posted_and_a_previewed_one_adopted():
    layer = gq.Debiaser(0.5)
    before = layer.preview(1.0)
    with pytest.raises(gq.BadInput, match="use adopt"):
        layer.post(before, 1.0)
    opened = layer.open(1.0)
    with pytest.raises(gq.BadInput, match="use post"):
        layer.adopt(opened, 1.0)
    layer.post(opened, 1.0)


def test_a_replayed_journal_knows_the_tickets_that_are_still_open():
    layer = gq.Debiaser(0.5)
    tickets = [layer.open(1.0) for _ in range(4)]
    journal = [*tickets, layer.post(tickets[2], 2.0)]
    again = gq.Debiaser(0.5)
    again.replay(journal)
    assert again.to_json() == layer.to_json()
    again.post(tickets[0], 2.0)
    with pytest.raises(gq.UnknownTicket):
        again.post(layer.open(1.0), 2.0)


def without_marks(text):
    from gradeq.layers import serialization

    kind, settings, state = serialization.load(text)
    for name in ("branches", "unmarked"):
        state["tickets"].pop(name, None)
    return "".join(serialization.dump(kind, settings, state))


def test_states_and_tickets_of_earlier_versions_are_taken_unless_they_are_ahead():
    layer = gq.Debiaser(0.5)
    tickets = [layer.open(1.0)._replace(branch="") for _ in range(4)]
    old = gq.from_json(without_marks(layer.to_json()))
    ahead = layer.open(1.0)._replace(branch="")
    assert "branch" not in json.loads(tickets[0].to_json())["ticket"]
    old.post(Ticket.from_json(tickets[0].to_json()), 2.0)
    with pytest.raises(gq.UnknownTicket, match="later"):
        old.post(ahead, 2.0)
    old = gq.from_json(old.to_json())
    own = old.open(1.0)
    old = gq.from_json(old.to_json())
    old.post(tickets[1], 2.0), old.post(own, 2.0)
    with pytest.raises(gq.UnknownTicket, match="not served by this state"):
        old.post(ahead, 2.0)  # the number was used by another since


def test_a_state_whose_tickets_cannot_be_its_own_is_refused():
    from gradeq.layers import serialization

    layer = gq.Debiaser(0.5)
    layer.open(1.0)
    for bad in ([[2, 5, "x"]], [[3, 1, "x"]], [[1]], 7):
        kind, settings, state = serialization.load(layer.to_json())
        state["tickets"]["branches"] = bad
        with pytest.raises(gq.StateError, match="damaged"):
            gq.from_json("".join(serialization.dump(kind, settings, state)))


def test_a_process_that_was_forked_is_another_continuation(monkeypatch):
    monkeypatch.setattr(branches, "_forks", [0])
    layer = gq.Debiaser(0.5)
    before = layer.open(1.0)
    branches._forks.append(0)  # what a child does first
    after = layer.open(1.0)
    assert before.branch == branches.ROOT != after.branch
    assert layer.post(before, 2.0) and layer.post(after, 2.0)
    parent = gq.Debiaser(0.5)
    parent.open(1.0), parent.open(1.0)
    with pytest.raises(gq.TicketError):
        parent.post(after, 2.0)


def test_a_merged_layer_knows_the_tickets_of_a_partition_that_was_restored():
    def part(rows):
        layer = gq.Debiaser(0.5)
        for id in range(rows):
            layer.predict(0.0, id=f"{rows} {id}"), layer.update(1.0, id=f"{rows} {id}")
        return gq.from_json(layer.to_json())

    one, other, stranger = part(3), part(5), part(5)
    tickets = [layer.open(0.0) for layer in (one, other)]
    one.merge(other)
    with pytest.raises(gq.TicketError):
        one.post(stranger.open(0.0), 2.0)
    assert [one.post(ticket, 2.0).y for ticket in tickets] == [2.0, 2.0]


@pytest.mark.parametrize("given", [[1, 4], [-1, 2], [3, 2]])
def test_a_state_that_gave_away_what_it_never_served_is_damaged(given):
    with pytest.raises(ValueError, match="never served"):
        branches.Branches().restore({"branches": [[*given, "ab"]], "unmarked": 0}, 3)


@pytest.mark.parametrize("name", KINDS)
def test_a_ticket_that_is_posted_twice_is_refused(name):
    kind, rng = KINDS[name], np.random.default_rng(6)
    layer = kind.make()
    tickets = [layer.open(*kind.args(rng), **kind.where(rng)) for _ in range(4)]
    journal = [*tickets, layer.post(tickets[2], kind.label(rng))]
    again = kind.make()
    again.replay(journal)
    for own in (layer, layer.copy(), again):
        before = own.to_json()
        with pytest.raises(gq.LabelConflict, match="posted before") as error:
            own.post(Ticket.from_json(tickets[2].to_json()), kind.label(rng))
        assert "\n" not in str(error.value) and own.to_json() == before
        own.post(tickets[0], kind.label(rng))


def test_a_ticket_of_a_fresh_layer_with_another_step_is_refused():
    one, other = gq.Debiaser(0.5), gq.Debiaser(0.1)
    ticket = one.open(1.0)
    other.open(1.0)
    before = other.to_json()
    with pytest.raises(gq.UnknownTicket, match="another step"):
        other.post(ticket, 2.0)
    assert other.to_json() == before
    one.set_step(0.2)
    one.post(ticket, 2.0)
    one.post(one.open(1.0), 2.0)
