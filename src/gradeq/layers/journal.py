"""Postings that are taken back, put in another's place, or done again from a journal; tickets counted only later."""

from __future__ import annotations

from copy import copy
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from gradeq.engine.branches import CONTENT, PREVIEWED
from gradeq.engine.flight import FOREIGN
from gradeq.engine.sound import check_entry, check_kind
from gradeq.errors import BadInput, UnknownTicket
from gradeq.ledger import facts as fact
from gradeq.ledger.values import Posting, Ticket
from gradeq.rules.rule import learn, posting_of

LOST = (
    "a backup was restored, or a copy went on by itself. "
    "Post it to the layer that served it, or serve the row again"
)

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
        note_branch(layer, entry)
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
    book, branches = layer._book, layer._book.branches
    book.branches = copy(branches)
    try:
        ticket: Ticket = layer.open(*args, **given)
    finally:
        book.branches = branches
    layer._flight.unweigh(state)
    uncount(layer, names.place(ticket.row))
    state._facts[fact.RESIZED] = resized
    if names.count + names.keys > known:
        layer._forget(mark)
    return ticket._replace(branch=mark_of_state(layer))


def mark_of_state(layer: Any) -> str:
    """What tells this state from another that has served as many rows: whose it is, or its content."""
    branches, state = layer._book.branches, layer._state
    if branches.trusting:
        return ""
    mark: str = branches.mark_of(state.number)
    if mark:
        return mark if mark[0] == CONTENT else PREVIEWED + mark
    own = blake2b(digest_size=8)
    for name, values in state.saved().items():
        own.update(name.encode() + bytes(values))
    return CONTENT + own.hexdigest()


def note_branch(layer: Any, ticket: Ticket) -> None:
    """What a ticket of a journal says about whose it is, or (previewed) whose the state before it was."""
    mark, branches = ticket.branch, layer._book.branches
    if mark[:1] in (PREVIEWED, CONTENT):
        branches.note(ticket.number - 1, mark.removeprefix(PREVIEWED))
    else:
        branches.note(ticket.number, mark)


def check_history(layer: Any, ticket: Ticket, y: Any) -> None:
    """Refuse a ticket that this state has not served: how late its label is, nobody knows."""
    branches, served = layer._book.branches, layer._state.number
    if branches.trusting or (
        ticket.number <= served and branches.knows(ticket.number, ticket.branch)
    ):
        return
    layer._rule.measure(ticket.served, ticket.base, y, ticket.memo)  # of another kind of layer?
    if ticket.branch[:1] in (PREVIEWED, CONTENT):
        raise BadInput(
            "this ticket was previewed, so its row is not counted yet; use adopt(ticket, y)"
        )
    if ticket.number > served:
        raise UnknownTicket(
            f"This ticket was served by a later state of this layer (row {ticket.number:,}; this one has served "
            f"{served:,}): {LOST}"
        )
    raise UnknownTicket(f"This ticket was not served by this state of the layer: {LOST}")


def adopt_known(layer: Any, ticket: Ticket, y: Any) -> Posting:
    """The same as ``adopt`` for a ticket that a past of this layer has previewed; any other is refused."""
    check_kind(ticket, Ticket)
    branches, before, served = layer._book.branches, ticket.number - 1, layer._state.number
    mark = ticket.branch
    if branches.trusting:
        return adopt(layer, ticket, y)
    if mark and mark[0] not in (PREVIEWED, CONTENT):
        raise BadInput("this ticket was opened, so its row is counted already; use post(ticket, y)")
    if before > served:
        raise UnknownTicket(
            f"This ticket was previewed from a later state of this layer ({before:,} rows served; this one has "
            f"served {served:,}): {LOST}"
        )
    known = branches.knows(before, mark.removeprefix(PREVIEWED))
    if not known and (before < served or mark != mark_of_state(layer)):
        raise UnknownTicket(f"This ticket was not previewed from a state of this layer: {LOST}")
    given = list(branches.given)
    try:
        posting = adopt(layer, ticket, y)
    except Exception:
        branches.given = given
        raise
    branches.give(layer._state.number)
    return posting


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
