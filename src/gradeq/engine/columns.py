"""Whole columns through a layer: the order of serving and posting, the steps, then one pass of the rule.

The same bits as one event at a time, in any cut. A run that fails leaves nothing behind: what it may change is
remembered first, and only that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gradeq.engine.flight import SQUARED, Flight, norm_of, smaller, too_large
from gradeq.engine.keeping import Counted, Kept, enter, kept_with
from gradeq.engine.names import Placed
from gradeq.engine.tickets import Book, Waiting
from gradeq.errors import BadInput
from gradeq.kernels import choice
from gradeq.kernels import descent as loops
from gradeq.kernels.call import run_loop
from gradeq.kernels.finite import is_finite
from gradeq.ledger import facts as fact
from gradeq.ledger.batch import (
    Batch,
    Floats,
    Ints,
    Order,
    Rows,
    listed,
    posted_at_once,
    posted_when_due,
    reordered,
    stacked,
)
from gradeq.ledger.constants import filled, ones
from gradeq.ledger.state import State
from gradeq.ledger.values import Row, Ticket
from gradeq.rules.rule import Rule, learn, posting_of
from gradeq.schedules import Constant, Power, Schedule


class Columns(NamedTuple):
    """Rows in input order, checked: predictions, labels (nan: none), weights (None: all 1), places, times.

    ``kept``: the tickets of rows whose label is still to come are kept, under these ids.
    """

    base: Floats  # (n,) or (n, levels)
    labels: Floats
    weights: Floats | None
    placed: Placed
    times: NDArray[Any] | None = None
    label_times: NDArray[Any] | None = None
    kept: Kept | None = None


class Ran(NamedTuple):
    """What a pass gave: served values in input order, and which rows taught the layer something."""

    served: Floats
    posts: Ints  # input row numbers in the order of posting (carried-over tickets left out)
    expired: int
    waiting: int
    weights: Floats | None = None  # of the rows, as they are learned with; None: all 1


class Engine(NamedTuple):
    """The parts of a layer that a run needs."""

    rule: Rule
    state: State
    flight: Flight
    book: Book
    names: Any
    frozen: bool
    sizing: str  # what makes a row too large for its step (``kernels.flight``)
    sized: float  # the squared norm of a row without features


def run_columns(engine: Engine, columns: Columns) -> Ran:
    """Serve every row and post every label that is due; the caller undoes all if this raises."""
    n, rows = len(columns.base), columns.placed.rows
    if getattr(engine.rule, "by_events", False) or not n:
        return passed(engine, columns)
    entries = len(rows.params) // n if isinstance(rows, Rows) else 2
    given = columns.weights is None, columns.label_times is None
    kind = choice.kind_of(engine.rule, engine.rule.width, entries, *given)
    with choice.one_run(kind, n):
        return passed(engine, columns)


def passed(engine: Engine, columns: Columns) -> Ran:
    """One pass over all rows."""
    rule, state, flight, book = engine.rule, engine.state, engine.flight, engine.book
    order = serving_order(columns.times)
    if order is not None:
        columns = in_order(columns, order)
    carried = carried_over(book, columns.times)
    n, first = len(columns.base) + len(carried), len(carried)
    full = with_carried(engine, columns, carried) if first else columns
    relative = flight.weigh_many(state, engine.names, columns.placed.keys, columns.weights)
    weights = ones(n - first) if relative is None else relative
    if first:
        weights = np.concatenate([[own.ticket.weight for own in carried], weights])
    known = labelled(full.labels, full.weights)
    late = columns.label_times is not None or (columns.times is not None and bool(book.waiting))
    at_once = not late and columns.kept is None
    posting, times = due(book, full, columns, carried, known) if late else (None, None)
    if posting is None:
        posting = posted_at_once(known)
    heard = posting
    if engine.frozen:
        posting = heard._replace(cuts=np.zeros(n, dtype=np.int64), posts=heard.posts[:0])
    steps = scheduled(engine, columns, n, first, posting.cuts)
    resized = 0
    weighted = relative is not None or first > 0
    varied = weighted or type(rule.schedule) is not Constant
    norms = full.placed.norms if flight.featured else None
    if weighted or (engine.sizing == SQUARED and (varied or norms is not None)):
        steps, resized = limited(engine.sizing, steps, weights, norms, engine.sized, first)
    for k, own in enumerate(carried):
        steps[k] = own.ticket.step
    tickets = [own.ticket for own in carried]
    plain = at_once and not varied and not resized and len(posting.posts) == n
    batch = Batch(
        full.base, full.labels, weights, steps, steps, full.placed.rows, full.placed.keys, first,
        posting.cuts, posting.posts, tickets, at_once, plain, full.times if times is None else times[0],
        full.weights,
    )  # fmt: skip
    etas, opened, delays, told = flight.many(state, batch, full.placed.cells, full.placed.norms)
    batch = batch._replace(etas=etas, plain=plain and etas is steps)
    state.facts[fact.RESIZED] += float(resized)
    flight.settle_many(state, batch, full.placed.norms, told, heard, engine.frozen)
    if engine.frozen:
        batch = batch._replace(labels=np.full(n, np.nan))
    tickets_of: Callable[[Ints], list[Ticket]]
    if getattr(rule, "by_events", False) or (rule.penalty is not None and not batch.at_once):
        served, events = by_events(engine, batch, opened, delays, full)
        tickets_of = partial(picked, events)
    else:
        served, memos = rule.run(state, batch)
        tickets_of = Maker(engine, full, batch, served, memos, opened).tickets
    kept = kept_with(columns.kept, carried, columns.labels)
    waits = still_waiting(full, posting, times or columns.times, tickets_of, kept and kept.ids)
    if kept is not None:
        counted = Counted(full.placed.cells, opened, state.view("rows")) if late else None
        enter(book, rule, kept, batch, heard, tickets_of, counted, engine.frozen)
    book.hold(waits, carried)
    if columns.times is not None and n > first:
        book.expire(float(columns.times[-1]))
        book.now = float(columns.times[-1])
    out = served[first:]
    posts = batch.posts[batch.posts >= first] - first if first else batch.posts
    if order is not None:
        back = np.empty_like(out)
        back[order] = out
        out, posts = back, order[posts]
        if relative is not None:
            relative = relative[np.argsort(order)]
    waiting = len(book.waiting) if columns.times is not None else 0
    return Ran(out, posts, len(posting.expired), waiting, relative)


def labelled(labels: Floats, weights: Floats | None) -> NDArray[np.bool_]:
    """Which rows have a label that may be learned from."""
    known = np.ones(len(labels), dtype=bool) if is_finite(labels) else ~np.isnan(labels)
    if weights is not None and not (len(weights) and weights.min() > 0.0):
        known &= weights > 0.0
    return known


def carried_over(book: Book, times: NDArray[Any] | None) -> list[Waiting]:
    """The tickets of earlier runs that a run over these times may post or let expire."""
    if times is None or not len(times) or not book.waiting:
        return []
    return book.due_by(times.max())


def serving_order(times: NDArray[Any] | None) -> Ints | None:
    """The stable order by time, or None when the rows already are in it."""
    if times is None or len(times) < 2 or bool(np.all(times[1:] >= times[:-1])):
        return None
    return np.argsort(times, kind="stable")


def in_order(columns: Columns, order: Ints) -> Columns:
    """All columns in another row order."""

    def picked(column: NDArray[Any] | None) -> Any:
        return None if column is None else column[order]

    rows, cells, clock, keys, norms = columns.placed
    placed = Placed(
        reordered(rows, order), reordered(cells, order), clock[order], keys[order], picked(norms)
    )
    return Columns(
        columns.base[order], columns.labels[order], picked(columns.weights), placed,
        picked(columns.times), picked(columns.label_times),
        None if columns.kept is None else columns.kept.ordered(order),
    )  # fmt: skip


def with_carried(engine: Engine, columns: Columns, carried: list[Waiting]) -> Columns:
    """The rows of tickets carried over from an earlier run, then the new rows."""
    tickets = [own.ticket for own in carried]
    places = [engine.names.place(ticket.row) for ticket in tickets]
    before = listed([place.params for place in places], [t.row.values for t in tickets])
    cells = listed([place.cells for place in places], [(1.0,) * len(p.cells) for p in places])
    placed = columns.placed
    norms = placed.norms
    if norms is not None:
        norm_of_row = norm_of if engine.flight.featured else len
        own = [float(norm_of_row(ticket.row.values)) for ticket in tickets]
        norms = np.concatenate([own, norms])
    w = np.ones(len(columns.base)) if columns.weights is None else columns.weights
    return Columns(
        np.concatenate([np.array([t.base for t in tickets], dtype=float), columns.base]),
        np.concatenate([[own.y for own in carried], columns.labels]),
        np.concatenate([[t.given for t in tickets], w]),
        Placed(
            stacked(before, placed.rows),
            stacked(cells, placed.cells),
            placed.clock,
            np.concatenate([np.array([p.key for p in places], dtype=np.int64), placed.keys]),
            norms,
        ),
        columns.times,
        columns.label_times,
    )


def due(
    book: Book, full: Columns, columns: Columns, carried: list[Waiting], known: NDArray[np.bool_]
) -> tuple[Order, tuple[NDArray[Any], NDArray[Any]]]:
    """The order of posting when labels have times of their own (default: the time of their row), and all times."""
    if columns.times is None:
        raise BadInput("label times need the times of the rows; give times as well")
    own = columns.label_times if columns.label_times is not None else columns.times
    when, label_times = columns.times, own
    if carried:
        when = np.concatenate([np.array([w.time for w in carried], dtype=when.dtype), when])
        label_times = np.concatenate([np.array([w.due for w in carried], dtype=own.dtype), own])
    known &= label_times == label_times
    order = posted_when_due(when, label_times, known, len(carried), book.ttl)
    return order, (when, label_times)


def scheduled(engine: Engine, columns: Columns, n: int, first: int, cuts: Ints) -> Floats:
    """The scheduled step of each row; the clocks go on."""
    schedule, state, names = engine.rule.schedule, engine.state, engine.names
    clock, own = columns.placed.clock, names.clocked == "clock"
    if type(schedule) is Constant:
        if own and len(state.clock) == 1:
            state.clock[0] += float(len(clock))
        elif own:
            np.add.at(state.view("clock"), clock, 1.0)
        # The steps of tickets carried over are written into them.
        return np.full(n, schedule.eta) if first else filled(n, schedule.eta)
    if names.clocked == "total":  # time is counted in labels learned from
        return steps_at(schedule, cuts + (int(state.total[0]) + 1))
    counts, places = state.view(names.clocked), clock
    if not own and len(clock) * 8 < len(counts):  # rows are counted with their cells: only look
        used, places = np.unique(clock, return_inverse=True)
        counts = counts[used]
    elif not own:
        counts = counts.copy()
    ticks = np.ones(n, dtype=np.int64)
    if len(counts) == 1:
        ticks[first:] = np.arange(n - first) + int(counts[0]) + 1
        counts[0] += n - first
    else:
        run_loop(loops.ticked, (), (places, counts, ticks[first:]), n - first)
    return steps_at(schedule, ticks)


def steps_at(schedule: Schedule, ticks: Ints) -> Floats:
    """The step of a schedule at each of these times."""
    steps, n = np.empty(len(ticks)), len(ticks)
    # Only a power is sure to compile; any other schedule is asked row by row.
    run_loop(loops.stepped, (schedule,), (ticks, steps), n if type(schedule) is Power else 0)
    return steps


def limited(
    kind: str, steps: Floats, weights: Floats, norms: Floats | None, size: float, first: int
) -> tuple[Floats, int]:
    """The same with smaller steps for rows that are too large for theirs, and how many those are."""
    sizes = np.broadcast_to(size if norms is None else norms, len(steps))
    with np.errstate(over="ignore"):  # infinity is too large as well
        over = too_large(kind, steps, weights, sizes)
    if not over.any():
        return steps, 0
    made = steps.copy()
    made[over] = smaller(kind, steps[over], weights[over], sizes[over])
    return made, int(np.count_nonzero(over[first:]))


@dataclass(frozen=True)
class Maker:
    """Makes the tickets of rows of a run, for those whose label is still to come."""

    engine: Engine
    full: Columns
    batch: Batch
    served: Floats
    memos: Any
    opened: Ints

    def tickets(self, rows: Ints) -> list[Ticket]:
        """The tickets of these rows, carried ones among them, in their order."""
        batch, carried = self.batch, self.batch.carried
        new = rows[rows >= batch.first]
        made = self._made(new)
        if len(new) == len(rows):
            return list(made)
        return [carried[k] if k < batch.first else next(made) for k in rows.tolist()]

    def _made(self, rows: Ints) -> Iterator[Ticket]:
        batch, placed, names = self.batch, self.full.placed, self.engine.names
        before = int(self.engine.state.facts[fact.SERVED]) - len(batch.base)
        params, values = (
            cut(placed.rows, placed.rows.params, rows),
            cut(placed.rows, placed.rows.values, rows),
        )
        counts = cut(placed.cells, self.opened, rows)
        memos = [()] * len(rows) if self.memos is None else plain(self.memos[rows])
        numbers = zip(
            (rows + before + 1).tolist(), plain(batch.base[rows]), plain(self.served[rows]),
            batch.weights[rows].tolist(), batch.steps[rows].tolist(), counts, memos, strict=True,
        )  # fmt: skip
        given = [1.0] * len(rows) if self.full.weights is None else self.full.weights[rows].tolist()
        known: dict[Any, Row] = {}  # by places and series: few rows have names of their own
        each = zip(params, values, placed.keys[rows].tolist(), numbers, given, strict=True)
        for at, z, key, (number, *rest), own in each:
            row = known.get((at, key))
            if row is None:
                row = known[at, key] = names.row_at(at, z, key)
            row = row if row.values == z else row._replace(values=z)
            yield Ticket._make((number, row, *rest, (), own, ""))


def cut(rows: Any, entries: Any, chosen: Ints) -> list[tuple[Any, ...]]:
    """The entries of the chosen rows, one tuple each."""
    flat = entries.tolist() if len(chosen) * 8 > len(rows.starts) else entries
    starts, ends = rows.starts[chosen].tolist(), rows.starts[chosen + 1].tolist()
    if flat is entries:
        return [tuple(flat[a:b].tolist()) for a, b in zip(starts, ends, strict=True)]
    return [tuple(flat[a:b]) for a, b in zip(starts, ends, strict=True)]


def plain(column: Any) -> list[Any]:
    """Each row as a number, or a tuple of numbers."""
    return column.tolist() if column.ndim == 1 else [tuple(row) for row in column.tolist()]


def picked(tickets: list[Ticket], rows: Ints) -> list[Ticket]:
    """The tickets of these rows."""
    return [tickets[k] for k in rows.tolist()]


def still_waiting(
    full: Columns, posting: Order, times: Any, tickets: Callable[[Ints], list[Ticket]], ids: Any
) -> list[Waiting]:
    """The tickets whose labels are known but not due by the last row."""
    rows = posting.waiting
    if not len(rows):
        return []
    when, label_times = times if isinstance(times, tuple) else (times, times)
    columns = (column[rows].tolist() for column in (full.labels, label_times, when))
    own = [None] * len(rows) if ids is None else [ids[k] for k in rows.tolist()]
    return list(map(Waiting, tickets(rows), *columns, own))


def by_events(
    engine: Engine, batch: Batch, opened: Ints, delays: Floats, full: Columns
) -> tuple[Floats, list[Ticket]]:
    """Serve and judge row by row: for rules whose tickets carry more than a pass can."""
    rule, state, names = engine.rule, engine.state, engine.names
    tickets: list[Ticket] = list(batch.carried)
    rows = np.arange(batch.first, len(batch.base))
    served_later = Maker(engine, full, batch, batch.base, None, opened).tickets(rows)
    labels, etas = batch.labels.tolist(), batch.etas.tolist()

    def post(k: int) -> None:
        ticket = tickets[k]
        late = int(delays[k]) if len(delays) else 1
        posting = posting_of(rule, ticket, labels[k], etas[k], (late,))
        learn(rule, state, names.place(ticket.row), posting)

    posts, done = batch.posts.tolist(), 0
    for i in range(batch.first, len(labels)):
        while done < batch.cuts[i]:
            post(posts[done])
            done += 1
        bare = served_later[i - batch.first]
        place = names.place(bare.row)
        served, memo, slopes = rule.serve(state, place, bare.row.values, bare.base)
        tickets.append(bare._replace(served=served, memo=memo, slopes=slopes))
    for k in posts[done:]:
        post(k)
    return np.array([ticket.served for ticket in tickets], dtype=float), tickets
