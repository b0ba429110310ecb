"""The tickets of a run over whole columns: kept where the label is to come, closed under their ids where it came."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradeq.engine.tickets import Book, Id, Waiting
from gradeq.errors import BadInput
from gradeq.ledger.batch import Batch, Floats, Ints, Order
from gradeq.ledger.values import Ticket
from gradeq.rules.rule import Rule, measured

# Makes the tickets of rows of a run.
Tickets = Callable[[Ints], list[Ticket]]


class Kept(NamedTuple):
    """The ids of rows whose tickets are kept (None: without an id).

    ``heard``: labels as they came, also those that are not learned from (nan: still to come). ``times``: when each
    ticket was served, as one event at a time has it; None where the times of the run say it.
    """

    ids: Sequence[Id | None]
    heard: Floats
    times: Sequence[float] | None = None

    def ordered(self, order: Ints) -> Kept:
        """The same in another row order."""
        times = None if self.times is None else [self.times[k] for k in order]
        return Kept([self.ids[k] for k in order], self.heard[order], times)

    def after(self, carried: list[Waiting]) -> Kept:
        """The same behind tickets carried over from an earlier run."""
        ids = [own.id for own in carried]
        labels = np.array([own.y for own in carried])
        return Kept([*ids, *self.ids], np.concatenate([labels, self.heard]), self.times)


def kept_with(kept: Kept | None, carried: list[Waiting], labels: Floats) -> Kept | None:
    """The tickets of a run with those carried over; None where no row has an id and none is to be kept."""
    if not carried:
        return kept
    if kept is not None:
        return kept.after(carried)
    if all(own.id is None for own in carried):
        return None
    # Rows of a run without ids: nothing of theirs is kept.
    heard = np.where(np.isnan(labels), 0.0, labels)
    return Kept([None] * len(labels), heard).after(carried)


def new_ids(book: Book, ids: Sequence[Any]) -> list[Id | None]:
    """Ids as they are kept; those that stand twice or were served before are refused, and nothing is changed."""
    seen: dict[Id | None, None] = {}
    for row, given in enumerate(ids):
        try:
            id = book.check_new(given)
        except BadInput as error:
            raise BadInput(f"row {row}: {error}") from None
        if id in seen:
            raise BadInput(f"row {row}: id {id!r} appears twice; every prediction needs its own id")
        seen[id] = None
    return list(seen)


class Counted(NamedTuple):
    """How rows were counted: the cells of each row, their counts when it was served, and their counts now."""

    cells: Any
    opened: Ints
    now: Floats

    def lateness(self, order: Order, first: int) -> dict[int, tuple[int, ...]]:
        """How late each posted label was in each of its cells, as ``Flight.arrive`` counts it."""
        starts, params, posts = self.cells.starts, self.cells.params, order.posts
        if not len(posts):
            return {}
        n = len(starts) - 1
        each = np.diff(starts)
        row_of = np.repeat(np.arange(n), each)
        served = row_of >= first  # those carried over were counted before
        # By cell, and within a cell by row: how many rows of a cell were served before row i is looked up.
        table = np.sort(params[served] * (n + 1) + row_of[served])
        before = np.searchsorted(order.cuts[first:], np.arange(len(posts)), "right") + first
        entries = np.concatenate([np.arange(starts[k], starts[k + 1]) for k in posts])
        cells, until = params[entries], np.repeat(before, each[posts])
        upto, high = (np.searchsorted(table, cells * (n + 1) + row) for row in (until, n))
        counts = self.now[cells] - (high - upto)
        late = np.maximum(1, counts - self.opened[entries] + 1).astype(np.int64)
        ends = np.cumsum(each[posts])
        cut = np.split(late, ends[:-1])
        return {k: tuple(own.tolist()) for k, own in zip(posts.tolist(), cut, strict=True)}


def enter(
    book: Book,
    rule: Rule,
    kept: Kept,
    batch: Batch,
    order: Order,
    tickets: Tickets,
    counted: Counted | None,
    frozen: bool,
) -> None:
    """Write the tickets of a run into the book; rows as they were served, those carried over first.

    ``counted``: where labels came late; None where each was posted right after its row.
    """
    answered = ~np.isnan(kept.heard)
    answered[order.waiting] = answered[order.expired] = False
    posts = order.posts
    learned = np.zeros(len(answered), dtype=bool)
    learned[posts] = True
    # What was not learned from (weight 0, a tie that is dropped) is closed all the same.
    closing = np.concatenate([np.flatnonzero(answered & ~learned), posts])
    if not len(batch.carried) and not len(order.waiting) and (posts[1:] > posts[:-1]).all():
        closing = np.flatnonzero(answered)
    named = np.array([k for k in closing.tolist() if kept.ids[k] is not None], dtype=np.int64)
    book.forgotten += max(0, len(named) - book.remember)
    last = named[-book.remember :]
    late = {} if counted is None else counted.lateness(order, batch.first)
    for k, ticket in zip(last.tolist(), tickets(last), strict=True):
        own = late.get(k, (1,) * len(ticket.counts))
        posting = measured(rule, ticket, float(kept.heard[k]), float(batch.etas[k]), own)
        book.shut(kept.ids[k], posting._replace(sign=0.0) if frozen else posting)
    for k in order.expired.tolist():
        id = kept.ids[k]
        if id is not None:
            book.lapse(id)
    put(book, kept, batch, tickets, np.flatnonzero(np.isnan(kept.heard)))


def put(book: Book, kept: Kept, batch: Batch, tickets: Tickets, rows: Ints) -> None:
    """Keep the tickets of rows without a label; as with single events, each row's time lets older ones expire."""
    timed = batch.times is not None and (book.ttl is not None or book.maturity is not None)
    first = batch.first
    for k, ticket in zip(rows.tolist(), tickets(rows), strict=True):
        if kept.times is not None:
            book.put(ticket, kept.ids[k], kept.times[k - first])
            book.expire(kept.times[k - first])
        else:
            book.put(ticket, kept.ids[k], float(batch.times[k]) if timed else None)
