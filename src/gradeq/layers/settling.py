"""Labels of earlier runs that have become due while no further row came: posted at a time of their own."""

from __future__ import annotations

from typing import Any

from gradeq.ledger.values import Posting, new


def settle(layer: Any, now: float, until: float | None = None) -> int:
    """Post the waiting labels that are due by ``until`` (or ``now``), in the order of their times; how many.

    What a run does before it serves a row of this time, so that a partition of a stream can be where the whole is
    though its own rows ended earlier. For layers without a time to live, whose tickets do not expire.
    """
    book = layer._book
    until = now if until is None else until
    due = [own for own in book.due_by(until) if own.due <= until]
    for own in sorted(due, key=lambda own: (own.due, own.ticket.number)):
        posting = layer._post(own.ticket, layer._entered(own.ticket.row), own.y)
        book.hold((), (own,))
        if own.id is not None:
            book.shut(own.id, new(Posting, posting))
    book.expire(now)
    return len(due)
