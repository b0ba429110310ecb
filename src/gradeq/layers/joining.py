"""Two partitions of one stream joined: sums add up, tickets and names come along."""

from __future__ import annotations

from typing import Any

from gradeq.errors import BadInput
from gradeq.layers.making import check_same_settings
from gradeq.ledger import facts as fact
from gradeq.ledger.meetings import joined
from gradeq.ledger.values import Ticket


def merge(layer: Any, other: Any) -> None:
    """Join the state of another partition into this layer's: ``Layer.merge``."""
    check_same_settings(layer, other)
    theirs_too = (set(book) for book in (other._book.by_id, other._book.closed, other._book.held))
    if any(layer._book.knows(id) for id in set().union(*theirs_too)):
        raise BadInput("both partitions have served the same id; ids are unique across partitions")
    mine = labels_by_name(layer)
    theirs = labels_by_name(other)
    both = any(mine.get(name) and count for name, count in theirs.items())
    served = int(layer._state.facts[fact.SERVED])
    parameters, keys = layer._names.merged(other._names)
    layer._state.grow(layer._names.count, layer._names.keys)
    before, added, width = layer._state.rows[:], other._state.copy(), layer._rule.width
    layer._flight.join(layer._state, added)
    pairs = joined(layer._state, added, parameters) if hasattr(added, "met") else ()
    layer._state.merge(added, parameters, keys, pairs)
    layer._state.facts[fact.MERGED] += float(both)

    def moved(ticket: Ticket) -> Ticket:
        cells = layer._names.place(ticket.row).cells
        counts = tuple(k + int(before[c]) for k, c in zip(ticket.counts, cells, strict=True))
        slopes = [0.0] * (len(layer._state.u) if ticket.slopes else 0)
        for i, slope in enumerate(ticket.slopes):
            slopes[parameters[i // width] * width + i % width] = slope
        number = ticket.number + served
        return ticket._replace(number=number, counts=counts, slopes=tuple(slopes))

    for ticket, id, time in other._book.tickets():
        layer._book.put(moved(ticket), id, time)
    layer._book.closed.update(other._book.closed)
    layer._book.lapsed.update(other._book.lapsed)
    waiting = other._book.waiting.values()
    layer._book.hold([own._replace(ticket=moved(own.ticket)) for own in waiting])
    layer._book.forgotten += other._book.forgotten


def check_partition(layer: Any, other: Any) -> None:
    """Refuse what is no other partition; one that was merged before cannot be told from one that was not."""
    if type(other) is not type(layer):
        raise BadInput(f"merge takes another {type(layer).__name__}, not {type(other).__name__}")
    if other is layer:
        raise BadInput("a layer cannot be merged with itself; its labels would be counted twice")


def labels_by_name(layer: Any) -> dict[Any, float]:
    """How many labels each parameter has learned from."""
    counts = layer._state.view("sums")[:: layer._rule.stride]
    return dict(zip(layer._names.names, counts.tolist(), strict=True))
