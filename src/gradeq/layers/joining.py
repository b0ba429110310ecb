"""Two partitions of one stream joined: sums add up, tickets and names come along."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradeq.errors import BadInput
from gradeq.layers.making import check_same_settings
from gradeq.ledger import facts as fact
from gradeq.ledger.meetings import joined
from gradeq.ledger.values import Ticket
from gradeq.spans import comparable, remedy


def merge(layer: Any, other: Any) -> None:
    """Join the state of another partition into this layer's: ``Layer.merge``."""
    check_same_settings(layer, other)
    book = other._book
    theirs_too = set().union(book.by_id, book.closed, book.held, book.lapsed)
    if any(layer._book.knows(id) for id in theirs_too):
        raise BadInput("both partitions have served the same id; ids are unique across partitions")
    kinds = [own.desk.get("times", {}).get("kind") for own in (layer._book, book)]
    if not comparable(*kinds):
        raise BadInput(
            f"the times of one partition are {kinds[0]}, those of the other {kinds[1]}; {remedy(*kinds)}"
        )
    served = int(layer._state.facts[fact.SERVED])
    parameters, keys = layer._names.merged(other._names)
    layer._state.grow(layer._names.count, layer._names.keys)
    crossed = met(layer, other, parameters)
    before, added, width = layer._state.rows[:], other._state.copy(), layer._rule.width
    layer._flight.join(layer._state, added, (layer._names, other._names))
    pairs = joined(layer._state, added, parameters) if hasattr(added, "met") else ()
    layer._state.merge(added, parameters, keys, pairs)
    layer._revisions.merge(other._revisions)
    if crossed:
        layer._state.facts[fact.MERGED] = 1.0

    def moved(ticket: Ticket) -> Ticket:
        cells = layer._names.place(ticket.row).cells
        counts = tuple(k + int(before[c]) for k, c in zip(ticket.counts, cells, strict=True))
        slopes = [0.0] * (len(layer._state.u) if ticket.slopes else 0)
        for i, slope in enumerate(ticket.slopes):
            slopes[parameters[i // width] * width + i % width] = slope
        number = ticket.number + served
        return ticket._replace(number=number, counts=counts, slopes=tuple(slopes))

    for ticket, id, time in book.tickets():
        own = moved(ticket)
        layer._book.put(own, id, time)
        key = own.row.key
        if book.singles.get(key) == ticket.number and layer._book.single(key) is None:
            layer._book.singles[key] = own.number
    layer._book.closed.update(book.closed)
    layer._book.lapsed.update(book.lapsed)
    waiting = book.waiting.values()
    layer._book.hold([own._replace(ticket=moved(own.ticket)) for own in waiting])
    layer._book.forgotten += book.forgotten
    layer._book.branches.merge(book.branches)
    for key, count in book.replaced.items():
        layer._book.replaced[key] = layer._book.replaced.get(key, 0) + count
    if layer._book.early is not None and book.early is not None:
        layer._book.early.join(book.early, served, int(layer._state.facts[fact.SERVED]))
    times = [now for now in (layer._book.now, book.now) if now is not None]
    layer._book.now = max(times, default=None)
    layer._book.clock = kinds[0] or kinds[1]
    layer._book.note_clock()


def check_partition(layer: Any, other: Any) -> None:
    """Refuse what is no other partition; one that was merged before cannot be told from one that was not."""
    if type(other) is not type(layer):
        raise BadInput(f"merge takes another {type(layer).__name__}, not {type(other).__name__}")
    if other is layer:
        raise BadInput("a layer cannot be merged with itself; its labels would be counted twice")


def met(layer: Any, other: Any, parameters: Sequence[int]) -> bool:
    """Whether one partition has served from parameters that the other has learned about: no single run did that.

    Also a row without a label counts: what was served did not know of the labels that the other had, however soon
    its own comes after the merge. Of partitions that have not met, some single run over all rows did the same.
    """
    (learned, served), (taught, shown) = (learned_and_served(own) for own in (layer, other))
    here = np.asarray(parameters, dtype=np.int64)
    return bool((learned[here] & shown).any() or (served[here] & taught).any())


def learned_and_served(layer: Any) -> tuple[Any, Any]:
    """Which parameters labels were learned about, and which some row was served from."""
    learned = layer._state.view("sums")[:: layer._rule.stride] > 0.0
    return learned, learned | layer._names.served_from(layer._state.view("rows"))
