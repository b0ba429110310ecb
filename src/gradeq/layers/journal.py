"""Postings that are taken back, put in another's place, or done again from a journal; tickets counted only later."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradeq.engine.flight import FOREIGN
from gradeq.engine.sound import check_entry, check_kind
from gradeq.errors import BadInput
from gradeq.ledger import facts as fact
from gradeq.ledger.values import Posting, Ticket
from gradeq.rules.rule import learn, posting_of

if TYPE_CHECKING:
    from gradeq.layers.layer import Layer


def repost(layer: Layer, posting: Posting, y: Any) -> tuple[Posting, Posting]:
    """Replace the label of a posting: the old one taken back (sign -1), and the one put in its place.

    The new label gets the step of the old one, and teaches what was served and nothing else.
    """
    state, rule = layer._state, layer._rule
    check_entry(rule, posting)
    old = posting._replace(sign=-posting.sign, late=(), slopes=())
    new = posting_of(rule, posting, y, posting.eta, ())._replace(sign=posting.sign, slopes=())
    if posting.sign != 0.0 and posting.weight > 0.0:
        layer._names.knows(posting.row)
        place = layer._names.place(posting.row)
        few = rule.penalty is None
        memory = state.remember(place.params if few else None, (place.key,))
        try:
            learn(rule, state, place, old)
            learn(rule, state, place, new)
            if state.lost(memory):
                raise BadInput(
                    f"the label {posting.y!r} cannot be taken back: its loss is too large for a number; "
                    "go back to the state saved before it"
                )
        except Exception:
            state.undo(memory)
            raise
        state.facts[fact.CORRECTED] += 1.0
        layer._flight.correct(state, place, new)
        for own in (old, new):
            layer._revisions.add(own, place, rule.width)
    return old, new


def withdraw(layer: Layer, posting: Posting) -> Posting:
    """Take a posting back and put nothing in its place: what a journal has of that (sign -1)."""
    state = layer._state
    check_entry(layer._rule, posting)
    old = posting._replace(sign=-posting.sign, late=(), slopes=())
    layer._names.knows(posting.row)
    place = layer._names.place(posting.row)
    memory = state.remember(place.params if layer._rule.penalty is None else None, (place.key,))
    try:
        replay(layer, old)
        if state.lost(memory):
            raise BadInput(
                f"the label {posting.y!r} cannot be taken back: its loss is too large for a number; "
                "go back to the state saved before it"
            )
    except Exception:
        state.undo(memory)
        raise
    return old


def put_back(layer: Layer, posting: Posting, y: Any) -> Posting:
    """Enter a label where one was withdrawn, with the step of that one: what a journal has of it."""
    new = posting_of(layer._rule, posting, y, posting.eta, ())._replace(slopes=())
    replay(layer, new)
    return new


def replay(layer: Layer, entry: Ticket | Posting) -> None:
    """Do again what one entry of a journal says was done, bit for bit."""
    state, names, flight = layer._state, layer._names, layer._flight
    check_entry(layer._rule, entry)
    names.knows(entry.row)
    place = layer._entered(entry.row)
    if isinstance(entry, Ticket):
        served = (entry.served, entry.memo, entry.slopes)
        layer._issue(
            entry.row, place, entry.base, entry.given, lambda *_: served, relative=entry.weight
        )
        return
    if len(entry.late) not in (0, len(place.cells)):
        raise BadInput(FOREIGN)
    if entry.late:
        error = entry.errors[0] if layer._rule.width == 1 else entry.errors[: layer._rule.width]
        ticket = (*entry[:6], (), entry.memo, entry.slopes, entry.given)
        layer._post(
            ticket,
            place,
            entry.y,
            entry.late,
            (entry.late, entry.eta, entry.sign, entry.memo, error),
        )
        return
    state.catch_up()  # while a label is taken back, accounts have one less than facts
    if entry.sign != 0.0 and entry.weight > 0.0:
        learn(layer._rule, state, place, entry)
        layer._revisions.add(entry, place, layer._rule.width)
    state.facts[fact.CORRECTED] += float(entry.sign < 0.0 < entry.weight)
    flight.correct(state, place, entry)


def preview(layer: Any, args: tuple[Any, ...], given: dict[str, Any]) -> Ticket:
    """Serve a row without counting it: its ticket, and a layer that is as it was.

    The ticket says what the layer had counted by then, this row included; nobody knows of it until ``adopt``.
    """
    state, names = layer._state, layer._names
    mark, known, resized = names.mark(), names.count + names.keys, state._facts[fact.RESIZED]
    layer._flight.before = None
    ticket: Ticket = layer.open(*args, **given)
    layer._flight.unweigh(state)
    uncount(layer, names.place(ticket.row))
    state._facts[fact.RESIZED] = resized
    if names.count + names.keys > known:
        layer._forget(mark)
    return ticket


def adopt(layer: Layer, ticket: Ticket, y: Any) -> Posting:
    """Count the row of a previewed ticket and learn from its label: in a journal, the ticket and then the posting.

    Rows that nobody labels are never counted. The lateness of a label is the number of rows counted since the state
    that its row was served from, its own included: the updates that the served value did not know of.
    """
    check_kind(ticket, Ticket)
    y = layer._label(y)
    check_entry(layer._rule, ticket)
    names, state = layer._names, layer._state
    names.knows(ticket.row)
    mark, known, resized = names.mark(), names.count + names.keys, state._facts[fact.RESIZED]
    layer._flight.before = None
    replay(layer, ticket)
    try:
        return layer._posted(ticket, y)
    except Exception:
        layer._flight.unweigh(state)
        uncount(layer, names.place(ticket.row))
        state._facts[fact.RESIZED] = resized
        if names.count + names.keys > known:
            layer._forget(mark)
        raise


def uncount(layer: Any, place: Any) -> None:
    """Take back that a row was served."""
    layer._flight.unserve(layer._state, place.cells)
    if layer._ticking:
        layer._state.clock[place.clock] -= 1.0
