"""Labels that must wait: rows not yet mature, and labels held back because their delay depends on them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from gradeq.engine.columns import due_times, serving_order
from gradeq.engine.label_stats import HELD
from gradeq.engine.tickets import Opened, TicketBook, WaitingLabel, just_after
from gradeq.errors import BadInput, LabelConflict
from gradeq.inputs.durations import format_span
from gradeq.kernels.choice import run_loop
from gradeq.kernels.early import SETTLED, watched
from gradeq.layers.columns import Cells, Moment, moment
from gradeq.ledger import facts as fact
from gradeq.ledger.batch import Floats, Ints
from gradeq.ledger.values import Posting, new
from gradeq.records import copy_with

if TYPE_CHECKING:
    from gradeq.layers.internals import Internals
    from gradeq.layers.layer import Layer


def advance(layer: Layer, now: float | None, serving: bool = False) -> int:
    """Learn the labels of rows that are mature by now, in the order in which they became due; returns how many.

    ``serving``: rows of this same time may still be served, so labels that become due at this time are left out.
    With dates, labels of the last day come after that day's rows were served, and earlier ones must wait for them.
    """
    if now is None:
        raise BadInput(
            f"with maturity {format_span(layer.internals.tickets.maturity)} a row needs its time: predict(..., time=)"
        )
    until = now if serving else just_after(now)
    layer.internals.tickets.count_missing(until)
    return settle(layer, now, until)


def arrive(layer: Layer, opened: Opened, y: object, time: Moment | None) -> str | None:
    """The outcome of a new label: ``waiting``, ``duplicate``, or None if it is to be learned now."""
    ticket, _, id, served_at = opened
    book = layer.internals.tickets
    if served_at is None:
        whose = "its row" if id is None else f"id {id!r}"
        raise BadInput(
            f"{whose} was served without a time, so it is not known when it is mature; with maturity give every "
            "prediction its time: predict(..., time=)"
        )
    now = None if time is None else moment(time, book)
    if book.now is not None:
        now = book.now if now is None else max(now, book.now)
    assert book.maturity is not None
    due = served_at + book.maturity
    mature = now is not None and now > due  # as for labels that came before: the whole day together
    if mature and book.missing_is is not None and y != book.missing_is:
        raise LabelConflict(
            f"{'the row' if id is None else f'id {id!r}'} became mature without a label and counts as "
            f"{book.missing_is!r}, not {y!r}; use correct(id, label) to change it"
        )
    if now is not None:
        advance(layer, now, serving=True)
    if ticket[0] not in book.opened:  # it already counts as missing_is, which is the same label
        return "duplicate"
    if mature:
        return None
    book.wait(opened, y, just_after(due))
    return "waiting"


def mature_columns(
    book: TicketBook, y: Floats, times: Cells | None, label_times: Cells | None, tickets: bool
) -> tuple[Floats, Cells | None]:
    """Labels, and when each is learned: not before its row is mature.

    ``tickets``: rows without a label wait for it beyond this run, so they only count as missing if they are mature by
    its end.
    """
    assert book.maturity
    if times is None:
        raise BadInput("a layer with maturity needs times: when each row was served")
    mature = later(times, book.maturity)
    due = mature if label_times is None else np.maximum(mature, label_times)
    due = np.where(np.isnan(y), mature, due)
    if book.missing_is is None:
        return y, due
    missing = np.isnan(y) | (due > mature)
    if tickets and len(y):  # a label may still come as long as the clock stands at the very age
        absent = np.isnan(y)
        following = later(mature, 1) if mature.dtype.kind == "i" else np.nextafter(mature, np.inf)
        mature = np.where(absent, following, mature)
        missing &= ~absent | (mature <= times.max())
    return np.where(missing, book.missing_is, y), np.where(missing, mature, due)


def later(times: Cells, span: float) -> Cells:
    """times + span; integers saturate at int64."""
    if times.dtype.kind == "i" and not float(span).is_integer():
        times = finer(times)
    if times.dtype.kind != "i":
        return times + span
    whole = round(span)
    return np.minimum(times, np.iinfo(np.int64).max - whole) + whole


def settle(layer: Layer, now: float, until: float | None = None) -> int:
    """Post the waiting labels that are due by ``until`` (or ``now``), in the order of their times; returns how many.

    A run does this before it serves a row of this time. It brings a partition of a stream to the time of the whole,
    even if its last row is older.
    """
    book, until = layer.internals.tickets, now if until is None else until
    due = [label for label in book.due_by(until) if label.due <= until]
    for label in sorted(due, key=lambda label: (label.due, label.ticket.number)):
        learn_waiting(layer.internals, label)
    book.expire(now)
    return len(due)


def learn_waiting(parts: Internals, waiting: WaitingLabel) -> None:
    posting = parts.post(waiting.ticket, parts.enter(waiting.ticket.row), waiting.y)
    parts.tickets.hold((), (waiting,))
    if waiting.id is not None:
        parts.tickets.shut(waiting.id, new(Posting, posting))


LARGEST = 2**52  # up to this, floats have room for halves between integers
PREFIX = 4096  # rows of the first check, which settles most streams


def screen(layer: Layer, opened: Opened, y: Any) -> str | None:
    """The outcome of a label that may be held back: ``waiting``, ``applied``, or None if it is to be learned now."""
    parts = layer.internals
    book, state, early = parts.tickets, parts.state, parts.tickets.early
    assert early is not None
    if early.settled:
        return None
    number, _, f, _, weight, *_ = opened[0]
    now = int(state.number)
    if weight == 0.0 or parts.frozen or number == now:
        return None
    early.count(y, middle(f), now, number, lambda: float(state.facts[fact.POSTED]))
    if early.since is None:
        return None
    book.wait(opened, y, HELD)
    for k in early.ready(number, now, book.is_held_back, lambda: book.held_back):
        learn_waiting(parts, book.waiting[k])
    parts.warnings.say(early.warning)
    return "applied" if number not in book.waiting else "waiting"


def middle(f: object) -> float:
    """A forecast, or the middle one of several levels."""
    return float(f[len(f) // 2] if isinstance(f, (tuple, list)) else cast(float, f))


class Arrivals(NamedTuple):
    """Labels in the order of their arrival, as columns.

    ``source``: the row in this run, or the waiting label of an earlier one; ``number``: of its row; ``moment``: when
    it comes; ``served``: how many rows were served by then.
    """

    source: Cells
    number: Ints
    label: Floats
    forecast: Floats
    moment: Cells
    served: Ints


def screen_columns(
    parts: Internals, base: Floats, y: Floats, weights: Floats | None, times: Cells, due: Cells | None
) -> tuple[Cells | None, list[WaitingLabel]]:
    """When the labels of a run are learned, and those of earlier runs whose time changes, as they were before."""
    book, early = parts.tickets, parts.tickets.early
    late = due is not None or bool(book.waiting)
    if early is None or early.settled or parts.frozen or not late:
        return due, []
    known, order = times if due is None else due, serving_order(times)
    f = base if base.ndim == 1 else base[:, base.shape[1] // 2]
    size, n = PREFIX if early.since is None else len(times), len(times)
    while True:
        rows = np.arange(min(size, n)) if order is None else order[:size]
        labels = arrivals(parts, rows, (f, y, weights), times, known)
        if early.since is not None:
            return held_columns(parts, finer(known), labels)
        sums, posted = np.array(early.sums), float(parts.state.facts[fact.POSTED])
        late_by = (labels.served - labels.number + 1).astype(float)
        columns = (labels.label, labels.forecast, late_by, labels.number.astype(float))
        count = len(labels.number)
        start = run_loop(watched, (), (sums, *columns, posted), count)
        if start == count and (size >= n or sums[SETTLED]):
            early.counted(sums.tolist(), labels.number[late_by > 1.0])
            return due, []
        if size >= n:
            return held_columns(parts, finer(known), labels)
        size = n if start < count else 4 * size


def arrivals(
    parts: Internals, rows: Ints, columns: tuple[Floats, Floats, Floats | None], times: Cells, due: Cells
) -> Arrivals:
    """All labels that come before the last of these rows is served; ``columns``: forecasts, labels, weights."""
    f, y, weights = columns
    book, first, n = parts.tickets, int(parts.state.number), len(rows)
    clock, due, label = times[rows], due[rows], y[rows]
    learns = ~np.isnan(label) & (True if weights is None else weights[rows] > 0.0)
    turn = np.maximum(np.arange(1, n + 1), np.searchsorted(clock, due, side="left"))
    earlier = [waiting for waiting in book.waiting.values() if waiting.due != HELD]
    earlier_due = due_times(earlier, due.dtype)
    earlier_turn = np.searchsorted(clock, earlier_due, side="left")
    if book.ttl is not None:  # no label after its ticket has expired
        served = np.array([waiting.time for waiting in earlier], dtype=clock.dtype)
        turn[turn > np.searchsorted(clock, clock + book.ttl, side="right")] = n
        earlier_turn[earlier_turn > np.searchsorted(clock, served + book.ttl, side="right")] = n
    new_rows, old_rows = np.flatnonzero(learns & (turn < n)), np.flatnonzero(earlier_turn < n)
    old = [earlier[k] for k in old_rows]
    source = np.empty(len(old) + len(new_rows), dtype=object)
    source[:] = [*old, *rows[new_rows].tolist()]
    number = np.concatenate([[waiting.ticket.number for waiting in old], first + new_rows + 1]).astype(int)
    y = np.concatenate([[waiting.y for waiting in old], label[new_rows]])
    forecast = np.concatenate([[middle(waiting.ticket.base) for waiting in old], f[rows[new_rows]]])
    moment = np.concatenate([earlier_due[old_rows], due[new_rows]])
    when = np.concatenate([earlier_turn[old_rows], turn[new_rows]])
    order = np.lexsort((number, moment, when))
    return new(Arrivals, [column[order] for column in (source, number, y, forecast, moment, first + when)])


def held_columns(parts: Internals, due: Cells, labels: Arrivals) -> tuple[Cells, list[WaitingLabel]]:
    """``screen_columns`` where labels are held back, one after the other."""
    book, early = parts.tickets, parts.tickets.early
    assert early is not None
    posted = int(parts.state.facts[fact.POSTED])
    waiting: dict[int, WaitingLabel | int] = {k: book.waiting[k] for k in book.held_back}
    learned: list[tuple[WaitingLabel | int, int, float]] = []  # in this order: source, number, and when
    labels = copy_with(labels, moment=finer(labels.moment))
    each = zip(*(column.tolist() for column in labels), strict=True)
    for k, (source, number, label, forecast, when, served) in enumerate(each):
        if early.settled:
            break
        if served > number:
            early.count(label, forecast, served, number, (posted + k).__float__)
        if early.since is None or served == number:
            learned.append((source, number, when))
            continue
        waiting[number] = source
        ready = early.ready(number, served, waiting.__contains__, lambda: sorted(waiting))
        learned += [(waiting.pop(number), number, when) for number in ready]
    moved: list[WaitingLabel] = []

    def put(source: WaitingLabel | int, when: float) -> None:
        if isinstance(source, WaitingLabel):
            moved.append(copy_with(source, due=when))
        else:
            due[source] = when

    for source in waiting.values():
        put(source, HELD)
    following, last, at = math.nan, 0, 0.0
    for source, number, when in reversed(learned):
        # Labels of one moment are learned in the order of their numbers: an earlier moment if that is another.
        if when != following:
            at = when
        elif number >= last:  # the last number before, or the last nanosecond
            at = at - 1 if isinstance(at, int) else math.nextafter(at, -math.inf)
        following, last = when, number
        put(source, at)
    before = [book.waiting[label.ticket.number] for label in moved]
    book.hold(moved)
    return due, before


def finer(times: Cells) -> Cells:
    """A copy with room for moments between integers; nanoseconds are fine enough."""
    whole = times.dtype.kind == "i" and np.abs(times).max(initial=0) > LARGEST
    return times.copy() if whole else times.astype(float)
