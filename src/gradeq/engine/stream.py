"""Whole columns over the desk: the order of serving and posting, times t, the cap, then one pass of the head."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gradeq.engine.batch import (
    Batch,
    Floats,
    Ints,
    Posting,
    Rows,
    posted_at_once,
    posted_when_due,
    stacked,
)
from gradeq.engine.constants import ones, zeros
from gradeq.engine.desk import Desk, Row, Ticket
from gradeq.errors import BadInput
from gradeq.kernels import loops
from gradeq.kernels.call import run_loop


class Columns(NamedTuple):
    """Rows in input order, checked: predictions, labels (nan: none), weights, and where each row belongs."""

    base: Floats  # (n,) or (n, levels)
    labels: Floats
    weights: Floats
    rows: Rows
    cells: Rows
    clock: Ints
    units: Ints
    norms: Floats | None  # squared norms of rows with features
    times: NDArray[Any] | None = None
    label_times: NDArray[Any] | None = None


class Ran(NamedTuple):
    """What a pass gave: served values in input order, and which rows taught the layer something."""

    served: Floats
    posts: Ints  # input row numbers in the order of posting (carried-over tickets left out)
    expired: int
    waiting: int


def run_columns(desk: Desk, columns: Columns) -> Ran:
    """Serve every row and post every label that is due; the desk and its head move on together."""
    order = serving_order(columns.times)
    if order is not None:
        columns = reordered(columns, order)
    carried = desk.waiting if columns.times is not None else []
    first = len(carried)
    full = with_carried(columns, carried) if first else columns
    n = len(full.base)
    known = ~np.isnan(full.labels) & (full.weights > 0.0)
    if columns.label_times is None and not first:
        posting = posted_at_once(known)
        at_once = True
    else:
        posting = due(desk, full, columns, carried, known)
        at_once = False
    ticks = ticking(desk, columns, n, first)
    crowd, norms, open_now, peaks, tops = crowding(desk, full, posting, known, first, at_once)
    sizes = np.maximum(norms, 1.0) if desk.sized else None
    plain = at_once and bool(known.all()) and bool((full.weights == 1.0).all()) and not crowd.any()
    batch = Batch(
        full.base, full.labels, full.weights, ticks, crowd, full.rows, full.units, first,
        posting.cuts, posting.posts, [ticket.memo for ticket, _, _ in carried], at_once, plain, sizes,
    )  # fmt: skip
    if desk.leashed:
        reach = (
            10.0 * max(peaks.max(initial=1), 1) * max(desk.heaviest, full.weights.max(initial=1.0))
        )
        desk.head.leash = float(reach)  # type: ignore[attr-defined]
    try:
        served, memos = desk.head.run(batch)
    except Exception:
        untick(desk, columns)
        raise
    if open_now.flags.owndata:  # they were copied, because they change
        np.frombuffer(desk.open_now, dtype=np.int64)[:] = open_now
        np.frombuffer(desk.peaks, dtype=np.int64)[:] = peaks
    np.frombuffer(desk.tops)[:] = tops
    if n > first:
        sizes_of = columns.rows.value if columns.norms is not None else ones(1)
        desk.largest = max(desk.largest, float(np.abs(sizes_of).max(initial=0.0)))
    desk.heaviest = max(desk.heaviest, float(full.weights.max(initial=1.0)))
    if columns.times is not None:
        desk.waiting = still_waiting(desk, full, posting, carried, memos)
        if n:
            desk.now = float(full.times[-1]) if full.times is not None else desk.now
    if not at_once:
        note_delays(desk, posting, carried)
    desk.served += n - first
    desk.posted += len(posting.posts)
    out = served[first:]
    posts = posting.posts[posting.posts >= first] - first if first else posting.posts
    if order is not None:
        back = np.empty_like(out)
        back[order] = out
        out, posts = back, order[posts]
    return Ran(out, posts, len(posting.expired), len(posting.waiting))


def ticking(desk: Desk, columns: Columns, n: int, first: int) -> Ints:
    """t of each row (1 for rows served earlier: their step is known); the clocks go on."""
    clocks = np.frombuffer(desk.clocks, dtype=np.int64)
    if len(clocks) == 1 and not first:
        ticks = np.arange(clocks[0] + 1, clocks[0] + n + 1)
        clocks[0] += n
        return ticks
    ticks = np.ones(n, dtype=np.int64)
    run_loop(loops.ticked, (), (columns.clock, clocks, ticks[first:]), n - first)
    return ticks


def untick(desk: Desk, columns: Columns) -> None:
    """Set the clocks back: a run that failed has served nothing."""
    clocks = np.frombuffer(desk.clocks, dtype=np.int64)
    np.subtract.at(clocks, columns.clock, 1)


def serving_order(times: NDArray[Any] | None) -> Ints | None:
    """The stable order by time, or None when the rows already are in it."""
    if times is None or len(times) < 2 or bool(np.all(times[1:] >= times[:-1])):
        return None
    return np.argsort(times, kind="stable")


def reordered(columns: Columns, order: Ints) -> Columns:
    """All columns in another row order."""

    def moved(rows: Rows) -> Rows:
        lengths = np.diff(rows.starts)[order]
        starts = np.concatenate([[0], np.cumsum(lengths)])
        take = (
            np.repeat(rows.starts[order], lengths)
            + np.arange(starts[-1])
            - np.repeat(starts[:-1], lengths)
        )
        return Rows(starts, rows.params[take], rows.value[take])

    def picked(column: NDArray[Any] | None) -> Any:
        return None if column is None else column[order]

    return Columns(
        columns.base[order], columns.labels[order], columns.weights[order], moved(columns.rows),
        moved(columns.cells), columns.clock[order], columns.units[order], picked(columns.norms),
        picked(columns.times), picked(columns.label_times),
    )  # fmt: skip


def with_carried(columns: Columns, carried: list[tuple[Ticket, float, float]]) -> Columns:
    """The rows of tickets carried over from an earlier run, then the new rows."""
    tickets = [ticket for ticket, _, _ in carried]

    def sparse(indices: list[Any], values: list[Any]) -> Rows:
        starts = np.concatenate([[0], np.cumsum([len(i) for i in indices])]).astype(np.int64)
        flat = [j for i in indices for j in i]
        return Rows(
            starts,
            np.array(flat, dtype=np.int64),
            np.array([z for v in values for z in v], dtype=float),
        )

    rows = [ticket.row for ticket in tickets]
    before = sparse([r.params for r in rows], [r.value for r in rows])
    cells = sparse([r.cells for r in rows], [[1.0] * len(r.cells) for r in rows])
    times = columns.times if columns.times is not None else np.empty(0)
    norms = (
        None if columns.norms is None else np.concatenate([[r.norm for r in rows], columns.norms])
    )
    return Columns(
        np.concatenate([np.array([t.base for t in tickets]), columns.base]),
        np.concatenate([[y for _, y, _ in carried], columns.labels]),
        np.concatenate([[t.weight for t in tickets], columns.weights]),
        stacked(before, columns.rows),
        stacked(cells, columns.cells),
        columns.clock,
        np.concatenate([np.array([r.unit for r in rows], dtype=np.int64), columns.units]),
        norms,
        np.concatenate([np.array([t.time for t in tickets], dtype=times.dtype), times]),
        columns.label_times,
    )


def due(
    desk: Desk,
    full: Columns,
    columns: Columns,
    carried: list[tuple[Ticket, float, float]],
    known: NDArray[np.bool_],
) -> Posting:
    """The order of posting when labels have times of their own (default: the time of their row)."""
    if columns.times is None or full.times is None:
        raise BadInput("label times need the times of the rows; give times as well")
    own = columns.label_times if columns.label_times is not None else columns.times
    whole = np.concatenate([np.array([d for _, _, d in carried], dtype=own.dtype), own])
    opens = known & (whole == whole)
    known &= opens
    return posted_when_due(full.times, whole, opens, len(carried), desk.ttl)


def note_delays(desk: Desk, posting: Posting, carried: list[tuple[Ticket, float, float]]) -> None:
    """How many predictions were served between a row and its label, as the desk counts it event by event."""
    if not len(posting.posts):
        return
    first = len(carried)
    numbers = posting.posts - first + desk.served + 1
    for k in np.flatnonzero(posting.posts < first).tolist():
        numbers[k] = carried[posting.posts[k]][0].number
    turn = np.searchsorted(posting.cuts, np.arange(len(posting.posts)), side="right")
    delays = desk.served + turn - first - numbers
    desk.delay_sum += int(delays.sum())
    desk.delay_most = max(desk.delay_most, int(delays.max()))


def crowding(
    desk: Desk, full: Columns, posting: Posting, opens: NDArray[np.bool_], first: int, at_once: bool
) -> tuple[Floats, Floats, Ints, Ints, Floats]:
    """Q of the late-label cap and the largest squared norm so far for each row, and the counters after the run."""
    n = len(full.base)
    open_now = np.frombuffer(desk.open_now, dtype=np.int64)
    peaks = np.frombuffer(desk.peaks, dtype=np.int64)
    norms, tops = ones(n), np.array(desk.tops)
    if full.norms is not None:
        norms = np.ones(n)
        place = full.units if len(tops) > 1 else zeros(n)
        own = (place[first:], full.norms[first:], tops, norms[first:])
        run_loop(loops.topped, (), own, n - first)
    elif n > first:
        tops = np.maximum(tops, 1.0)
    crowd = np.zeros(n)
    quiet = at_once and not (peaks > 1).any() and not open_now.any()
    if not quiet:
        open_now, peaks = open_now.copy(), peaks.copy()
        run_loop(
            loops.crowded,
            (),
            (first, posting.leave_cuts, posting.leaves, opens, full.cells.starts, full.cells.params,
             norms, open_now, peaks, crowd),
            n,
        )  # fmt: skip
    if not desk.capped:
        crowd[:] = 0.0
    return crowd, norms, open_now, peaks, tops


def still_waiting(
    desk: Desk,
    full: Columns,
    posting: Posting,
    carried: list[tuple[Ticket, float, float]],
    memos: list[Any],
) -> list[tuple[Ticket, float, float]]:
    """Tickets whose label is known but not due by the last row: kept, value included."""
    kept: list[tuple[Ticket, float, float]] = []
    first = len(carried)
    for k in posting.waiting.tolist():
        if k < first:
            kept.append(carried[k])
            continue
        a, b = full.rows.starts[k], full.rows.starts[k + 1]
        c, d = full.cells.starts[k], full.cells.starts[k + 1]
        row = Row(
            int(full.units[k]), full.rows.params[a:b].tolist(), full.rows.value[a:b].tolist(),
            full.cells.params[c:d].tolist(), int(full.clock[k - first]),
            1.0 if full.norms is None else float(full.norms[k]),
        )  # fmt: skip
        base = full.base[k].tolist()
        own = full.label_times if full.label_times is not None else full.times
        assert own is not None and full.times is not None
        due_at = own[k - first] if full.label_times is not None else own[k]
        ticket = Ticket(
            desk.served + k - first + 1, None, row, base, memos[k], float(full.weights[k]),
            full.times[k].item(),
        )  # fmt: skip
        kept.append((ticket, float(full.labels[k]), due_at.item()))
    return kept
