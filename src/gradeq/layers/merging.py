"""Two partitions of one stream joined: sums add up, tickets and names come along."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gradeq.errors import BadInput
from gradeq.inputs.durations import DATES, comparable, remedy
from gradeq.layers.serialization import check_same_settings
from gradeq.ledger import facts as fact
from gradeq.ledger.pair_table import joined
from gradeq.ledger.values import Ticket
from gradeq.records import copy_with

if TYPE_CHECKING:
    from gradeq.layers.internals import Internals
    from gradeq.layers.layer import Layer

Bools = NDArray[np.bool_]


def merge(layer: Layer, other: Layer) -> None:
    check_same_settings(layer, other)
    mine, theirs = layer.internals, other.internals
    tickets, book, state = mine.tickets, theirs.tickets, mine.state
    ids = set().union(book.by_id, book.closed, book.waiting_ids, book.lapsed)
    if any(tickets.knows(id) for id in ids):
        raise BadInput("both partitions have served the same id; ids are unique across partitions")
    kinds = [each.desk.get("times", {}).get("kind") for each in (tickets, book)]
    if not comparable(*kinds):
        raise BadInput(f"the times of one partition are {kinds[0]}, those of the other {kinds[1]}; {remedy(*kinds)}")
    served = int(state.facts[fact.SERVED])
    parameters, keys = mine.names.merged(theirs.names)
    state.grow(mine.names.count, mine.names.keys)
    crossed = have_met(mine, theirs, parameters)
    before, added, width = state.rows[:], theirs.state.copy(), mine.rule.width
    mine.lateness.join(state, added, (mine.names, theirs.names))
    pairs = joined(state, added, parameters) if hasattr(added, "met") else ()
    state.merge(added, parameters, keys, pairs)
    mine.revisions.merge(theirs.revisions)
    if crossed:
        state.facts[fact.MERGED] = 1.0

    def moved(ticket: Ticket) -> Ticket:
        cells = mine.names.place(ticket.row).cells
        counts = tuple(k + int(before[c]) for k, c in zip(ticket.counts, cells, strict=True))
        slopes = [0.0] * (len(state.u) if ticket.slopes else 0)
        for i, slope in enumerate(ticket.slopes):
            slopes[parameters[i // width] * width + i % width] = slope
        number = ticket.number + served
        return copy_with(ticket, number=number, counts=counts, slopes=tuple(slopes))

    for ticket, id, time in book.tickets():
        copied, key = moved(ticket), ticket.row.key
        tickets.put(copied, id, time)
        if book.singles.get(key) == ticket.number and tickets.single(key) is None:
            tickets.singles[key] = copied.number
    tickets.closed.update(book.closed)
    tickets.lapsed.update(book.lapsed)
    tickets.hold([copy_with(label, ticket=moved(label.ticket)) for label in book.waiting.values()])
    tickets.forgotten += book.forgotten
    tickets.branches.merge(book.branches)
    for key, count in book.replaced.items():
        tickets.replaced[key] = tickets.replaced.get(key, 0) + count
    if tickets.early is not None and book.early is not None:
        tickets.early.join(book.early, served, int(state.facts[fact.SERVED]))
    tickets.now = max((now for now in (tickets.now, book.now) if now is not None), default=None)
    tickets.clock = min(kinds, key=lambda kind: (kind is None, kind == DATES))
    tickets.note_clock()


def check_partition(layer: Layer, other: object) -> None:
    """Raise unless this is another partition; whether it was merged before cannot be checked."""
    if type(other) is not type(layer):
        raise BadInput(f"merge takes another {type(layer).__name__}, not {type(other).__name__}")
    if other is layer:
        raise BadInput("a layer cannot be merged with itself; its labels would be counted twice")


def have_met(mine: Internals, theirs: Internals, parameters: Sequence[int]) -> bool:
    """Whether one partition has served from parameters that the other has learned about: no single run did that.

    A row without a label counts too: it was served without the other's labels, however soon after the merge its own
    label comes. If partitions have not met, a single run over all rows would have served the same.
    """
    (learned, served), (learned_there, served_there) = (learned_and_served(each) for each in (mine, theirs))
    here = np.asarray(parameters, dtype=np.int64)
    return bool((learned[here] & served_there).any() or (served[here] & learned_there).any())


def learned_and_served(internals: Internals) -> tuple[Bools, Bools]:
    """Which parameters labels were learned about, and which some row was served from."""
    state = internals.state
    learned: Bools = state.view("sums")[:: internals.rule.stride] > 0.0
    return learned, learned | internals.names.served_from(state.view("rows"))
