"""Runs whole columns through a rule: order of serving and posting, steps, and the tickets that stay open."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gradeq.engine.lateness import AT_ONCE, PROMPT, SQUARED, Lateness, norm_of, smaller, too_large
from gradeq.engine.names import Placed
from gradeq.engine.tickets import Id, TicketBook, WaitingLabel
from gradeq.errors import BadInput
from gradeq.kernels import choice
from gradeq.kernels import descent as loops
from gradeq.kernels.account import is_finite
from gradeq.kernels.choice import run_loop
from gradeq.ledger import facts as fact
from gradeq.ledger.batch import (
    Batch,
    Floats,
    Ints,
    Order,
    Rows,
    constant,
    listed,
    posted_at_once,
    posted_when_due,
    reordered,
    stacked,
)
from gradeq.ledger.state import State
from gradeq.ledger.values import Row, Ticket
from gradeq.rules.rule import Rule, learn, measured, posting_of
from gradeq.schedules import Constant, Power, Schedule


class RowColumns(NamedTuple):
    """Rows in input order, checked: predictions, labels (nan: none), weights (None: all 1), places, times.

    ``tickets``: the tickets of rows whose label is still to come are kept, under these ids.
    """

    base: Floats  # (n,) or (n, levels)
    labels: Floats
    weights: Floats | None
    placed: Placed
    times: NDArray[Any] | None = None
    label_times: NDArray[Any] | None = None
    tickets: RunTickets | None = None


class CappedSteps(NamedTuple):
    """Labels of a pass whose steps the late-label cap made smaller, the smallest of these steps, and how many of them
    only their weight brought under the cap: with the mean weight they would have kept their step."""

    rows: int
    least: float
    heavy: int

    def with_more(self, more: CappedSteps | None) -> CappedSteps:
        """Those of two passes."""
        if more is None:
            return self
        return CappedSteps(self.rows + more.rows, min(self.least, more.least), self.heavy + more.heavy)


class Ran(NamedTuple):
    """What a pass gave: served values in input order, and which rows taught the layer something."""

    served: Floats
    posts: Ints  # input row numbers in the order of posting (carried-over tickets left out)
    expired: int
    waiting: int
    weights: Floats | None = None  # of the rows, as they are learned with; None: all 1
    capped: CappedSteps | None = None  # by the late-label cap


class Engine(NamedTuple):
    """The parts of a layer that a run needs."""

    rule: Rule
    state: State
    flight: Lateness
    book: TicketBook
    names: Any
    frozen: bool
    sizing: str  # what makes a row too large for its step (``kernels.flight``)
    sized: float  # the squared norm of a row without features


def run_columns(engine: Engine, columns: RowColumns) -> Ran:
    """Serve every row and post every label that is due; the caller undoes all if this raises."""
    n, rows = len(columns.base), columns.placed.rows
    if getattr(engine.rule, "by_events", False) or not n:
        return passed(engine, columns)
    entries = len(rows.params) // n if isinstance(rows, Rows) else 2
    given = columns.weights is None, columns.label_times is None
    kind = choice.kind_of(engine.rule, engine.rule.width, entries, *given)
    with choice.one_run(kind, n):
        return passed(engine, columns)


def passed(engine: Engine, columns: RowColumns) -> Ran:
    """One pass over all rows."""
    rule, state, flight, book = engine.rule, engine.state, engine.flight, engine.book
    order = serving_order(columns.times)
    if order is not None:
        columns = in_order(columns, order)
    carried = carried_over(book, columns.times)
    n, first = len(columns.base) + len(carried), len(carried)
    full = with_carried(engine, columns, carried) if first else columns
    relative = flight.weigh_many(state, engine.names, columns.placed.keys, columns.weights)
    weights = constant(n - first, 1.0) if relative is None else relative
    if first:
        weights = np.concatenate([[own.ticket.weight for own in carried], weights])
    known = labelled(full.labels, full.weights)
    late = columns.label_times is not None or (columns.times is not None and bool(book.waiting))
    at_once = not late and columns.tickets is None
    posting, times = due(book, full, columns, carried, known) if late else (None, None)
    if posting is None:
        posting = posted_at_once(known)
    heard = posting
    if engine.frozen:
        posting = heard._replace(cuts=np.zeros(n, dtype=np.int64), posts=heard.posts[:0])
    steps = planned = scheduled(engine, columns, n, first, posting.cuts)
    resized = 0
    weighted = relative is not None or first > 0
    varied = weighted or type(rule.schedule) is not Constant
    norms = full.placed.norms if flight.featured else None
    if weighted or (engine.sizing == SQUARED and (varied or norms is not None)):
        steps, resized = limited(engine.sizing, steps, weights, norms, engine.sized, first)
    for k, own in enumerate(carried):
        steps[k] = planned[k] = own.ticket.step
    tickets = [own.ticket for own in carried]
    plain = at_once and not varied and not resized and len(posting.posts) == n
    batch = Batch(
        full.base, full.labels, weights, steps, steps, full.placed.rows, full.placed.keys, first,
        posting.cuts, posting.posts, tickets, at_once, plain, full.times if times is None else times[0],
        full.weights,
    )  # fmt: skip
    etas, opened, delays, stats = flight.many(state, batch, full.placed.cells, full.placed.norms)
    batch = batch._replace(etas=etas, plain=plain and etas is steps)
    state.facts[fact.RESIZED] += float(resized)
    flight.settle_many(state, batch, full.placed.norms, stats, heard, engine.frozen)
    if engine.frozen:
        batch = batch._replace(labels=np.full(n, np.nan))
    tickets_of: Callable[[Ints], list[Ticket]]
    if getattr(rule, "by_events", False) or (rule.penalty is not None and not batch.at_once):
        served, events = by_events(engine, batch, opened, delays, full)
        tickets_of = partial(picked, events)
    else:
        served, memos = rule.run(state, batch)
        tickets_of = Maker(engine, full, batch, served, memos, opened).tickets
    kept = tickets_with(columns.tickets, carried, columns.labels) if carried else columns.tickets
    waits = []
    if len(posting.waiting):
        waits = still_waiting(full, posting, times or columns.times, tickets_of, kept and kept.ids)
    if kept is not None:
        counted = Counted(full.placed.cells, opened, state.view("rows")) if late else None
        enter(book, rule, kept, batch, heard, tickets_of, counted, engine.frozen)
    book.hold(waits, carried)
    if columns.times is not None and n > first:
        book.expire(float(columns.times[-1]))
        book.now = float(columns.times[-1])
    waiting = len(book.waiting) if columns.times is not None else 0
    capped = capped_steps(batch, planned) if stats.capped else None
    posts = batch.posts[batch.posts >= first] - first if first else batch.posts
    ran = Ran(served[first:], posts, len(posting.expired), waiting, relative, capped)
    return ran if order is None else in_input_order(ran, order)


def capped_steps(batch: Batch, planned: Floats) -> CappedSteps:
    """The labels of a pass whose steps were capped, among steps that were ``planned`` for rows of any size."""
    rows = batch.posts[batch.etas[batch.posts] < batch.steps[batch.posts]]
    etas = batch.etas[rows]
    heavy = etas * batch.weights[rows] >= planned[rows]
    return CappedSteps(len(rows), float(etas.min()), int(np.count_nonzero(heavy)))


def in_input_order(ran: Ran, order: Ints) -> Ran:
    """The results of rows that were served in another order than they came in."""
    served = np.empty_like(ran.served)
    served[order] = ran.served
    weights = None if ran.weights is None else ran.weights[np.argsort(order)]
    return ran._replace(served=served, posts=order[ran.posts], weights=weights)


def labelled(labels: Floats, weights: Floats | None) -> NDArray[np.bool_]:
    """Which rows have a label that may be learned from."""
    known = np.ones(len(labels), dtype=bool) if is_finite(labels) else ~np.isnan(labels)
    if weights is not None and not (len(weights) and weights.min() > 0.0):
        known &= weights > 0.0
    return known


def carried_over(book: TicketBook, times: NDArray[Any] | None) -> list[WaitingLabel]:
    """The tickets of earlier runs that a run over these times may post or let expire."""
    if times is None or not len(times) or not book.waiting:
        return []
    return book.due_by(times.max())


def serving_order(times: NDArray[Any] | None) -> Ints | None:
    """The stable order by time, or None when the rows already are in it."""
    if times is None or len(times) < 2 or bool(np.all(times[1:] >= times[:-1])):
        return None
    return np.argsort(times, kind="stable")


def in_order(columns: RowColumns, order: Ints) -> RowColumns:
    """All columns in another row order."""
    rows, cells, clock, keys, norms = columns.placed
    optional = (norms, columns.weights, columns.times, columns.label_times)
    norms, weights, times, label_times = [None if own is None else own[order] for own in optional]
    placed = Placed(reordered(rows, order), reordered(cells, order), clock[order], keys[order], norms)
    return RowColumns(
        columns.base[order], columns.labels[order], weights, placed, times, label_times,
        None if columns.tickets is None else columns.tickets.ordered(order),
    )  # fmt: skip


def with_carried(engine: Engine, columns: RowColumns, carried: list[WaitingLabel]) -> RowColumns:
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
    return RowColumns(
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


def due_times(waiting: list[WaitingLabel], kind: np.dtype[Any]) -> NDArray[Any]:
    """When waiting labels are due, as times of a run: just after a whole number is the next one."""
    whole = kind.kind == "i"
    return np.array([math.ceil(own.due) if whole else own.due for own in waiting], dtype=kind)


def due(
    book: TicketBook, full: RowColumns, columns: RowColumns, carried: list[WaitingLabel], known: NDArray[np.bool_]
) -> tuple[Order, tuple[NDArray[Any], NDArray[Any]]]:
    """The order of posting when labels have times of their own (default: the time of their row), and all times."""
    if columns.times is None:
        raise BadInput("label times need the times of the rows; give times as well")
    own = columns.label_times if columns.label_times is not None else columns.times
    when, label_times = columns.times, own
    if carried:
        when = np.concatenate([np.array([w.time for w in carried], dtype=when.dtype), when])
        label_times = np.concatenate([due_times(carried, own.dtype), own])
    known &= label_times == label_times
    order = posted_when_due(when, label_times, known, len(carried), book.ttl)
    return order, (when, label_times)


def scheduled(engine: Engine, columns: RowColumns, n: int, first: int, cuts: Ints) -> Floats:
    """The scheduled step of each row; the clocks go on."""
    schedule, state, names = engine.rule.schedule, engine.state, engine.names
    clock, own = columns.placed.clock, names.clocked == "clock"
    if type(schedule) is Constant:
        if own and len(state.clock) == 1:
            state.clock[0] += float(len(clock))
        elif own:
            np.add.at(state.view("clock"), clock, 1.0)
        # The steps of tickets carried over are written into them.
        return np.full(n, schedule.eta) if first else constant(n, schedule.eta)
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
    full: RowColumns
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
        params, values = (cut(placed.rows, placed.rows.params, rows), cut(placed.rows, placed.rows.values, rows))
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
    return column.tolist() if column.ndim == 1 else [tuple(row) for row in column.tolist()]


def picked(tickets: list[Ticket], rows: Ints) -> list[Ticket]:
    return [tickets[k] for k in rows.tolist()]


def still_waiting(
    full: RowColumns, posting: Order, times: Any, tickets: Callable[[Ints], list[Ticket]], ids: Any
) -> list[WaitingLabel]:
    """The tickets whose labels are known but not due by the last row."""
    rows = posting.waiting
    when, label_times = times if isinstance(times, tuple) else (times, times)
    columns = (column[rows].tolist() for column in (full.labels, label_times, when))
    own = [None] * len(rows) if ids is None else [ids[k] for k in rows.tolist()]
    return list(map(WaitingLabel, tickets(rows), *columns, own))


def by_events(
    engine: Engine, batch: Batch, opened: Ints, delays: Floats, full: RowColumns
) -> tuple[Floats, list[Ticket]]:
    """Serve and judge row by row: for rules whose tickets carry more than a pass can."""
    rule, state, names = engine.rule, engine.state, engine.names
    tickets: list[Ticket] = list(batch.carried)
    rows = np.arange(batch.first, len(batch.base))
    served_later = Maker(engine, full, batch, batch.base, None, opened).tickets(rows)
    labels, etas = batch.labels.tolist(), batch.etas.tolist()

    def post(k: int) -> None:
        ticket = tickets[k]
        late = int(delays[k]) if len(delays) else AT_ONCE
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


# Makes the tickets of rows of a run.
Tickets = Callable[[Ints], list[Ticket]]


class RunTickets(NamedTuple):
    """The ids of rows whose tickets are kept (None: without an id).

    ``labels``: labels as they came, also those that are not learned from (nan: still to come). ``times``: when each
    ticket was served, as one event at a time has it; None where the times of the run say it.
    """

    ids: Sequence[Id | None]
    labels: Floats
    times: Sequence[float] | None = None

    def ordered(self, order: Ints) -> RunTickets:
        """The same in another row order."""
        times = None if self.times is None else [self.times[k] for k in order]
        return RunTickets([self.ids[k] for k in order], self.labels[order], times)

    def after(self, carried: list[WaitingLabel]) -> RunTickets:
        """The same behind tickets carried over from an earlier run."""
        ids = [own.id for own in carried]
        labels = np.array([own.y for own in carried])
        return RunTickets([*ids, *self.ids], np.concatenate([labels, self.labels]), self.times)


def tickets_with(kept: RunTickets | None, carried: list[WaitingLabel], labels: Floats) -> RunTickets | None:
    """The tickets of a run with those carried over; None where no row has an id and none is to be kept."""
    if kept is not None:
        return kept.after(carried)
    if all(own.id is None for own in carried):
        return None
    # Rows of a run without ids: nothing of theirs is kept.
    heard = np.where(np.isnan(labels), 0.0, labels)
    return RunTickets([None] * len(labels), heard).after(carried)


def new_ids(book: TicketBook, ids: Sequence[object]) -> list[Id | None]:
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
        """How late each posted label was in each of its cells, as ``Lateness.arrive`` counts it."""
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
        late = np.maximum(AT_ONCE, counts - self.opened[entries] + AT_ONCE).astype(np.int64)
        ends = np.cumsum(each[posts])
        cut = np.split(late, ends[:-1])
        return {k: tuple(own.tolist()) for k, own in zip(posts.tolist(), cut, strict=True)}


def enter(
    book: TicketBook,
    rule: Rule,
    kept: RunTickets,
    batch: Batch,
    order: Order,
    tickets: Tickets,
    counted: Counted | None,
    frozen: bool,
) -> None:
    """Write the tickets of a run into the book; rows as they were served, those carried over first.

    ``counted``: where labels came late; None where each was posted right after its row.
    """
    answered = ~np.isnan(kept.labels)
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
        own = late.get(k, PROMPT * len(ticket.counts))
        posting = measured(rule, ticket, float(kept.labels[k]), float(batch.etas[k]), own)
        book.shut(kept.ids[k], posting._replace(sign=0.0) if frozen else posting)
    for k in order.expired.tolist():
        id = kept.ids[k]
        if id is not None:
            book.lapse(id)
    put(book, kept, batch, tickets, np.flatnonzero(np.isnan(kept.labels)))


def put(book: TicketBook, kept: RunTickets, batch: Batch, tickets: Tickets, rows: Ints) -> None:
    """Keep the tickets of rows without a label; as with single events, each row's time lets older ones expire."""
    timed = batch.times is not None
    first = batch.first
    for k, ticket in zip(rows.tolist(), tickets(rows), strict=True):
        if kept.times is not None:
            book.put(ticket, kept.ids[k], kept.times[k - first])
            book.expire(kept.times[k - first])
        else:
            book.put(ticket, kept.ids[k], float(batch.times[k]) if timed else None)
