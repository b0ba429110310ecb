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
    """Move the clock of a layer on: labels of rows that are mature by now are learned; how many there were.

    In the order in which they became due. ``serving``: rows of this very time may still be served. Those that become
    mature at this time are then left out: with dates, labels that come on the last day come after that day's rows
    were served, and those that came before must not be learned without them.
    """
    if now is None:
        raise BadInput(
            f"with maturity {format_span(layer.internals.tickets.maturity)} a row needs its time: predict(..., time=)"
        )
    until = now if serving else just_after(now)
    layer.internals.tickets.count_missing(until)
    return settle(layer, now, until)


def arrive(layer: Layer, opened: Opened, y: object, time: Moment | None) -> str | None:
    """What becomes of a label that has come: ``waiting``, ``duplicate``, or None: it is to be learned now."""
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
    if ticket[0] not in book.opened:  # it counts as missing_is by now, which is the same
        return "duplicate"
    if mature:
        return None
    book.wait(opened, y, just_after(due))
    return "waiting"


def mature_columns(
    book: TicketBook, y: Floats, times: Cells | None, label_times: Cells | None, tickets: bool
) -> tuple[Floats, Cells | None]:
    """Labels, and when each is learned: not before its row is mature.

    ``tickets``: rows without a label wait for it beyond this run, so that only those count as missing that are older
    than the maturity before its end.
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
    """Times plus a span; whole numbers stop at the last one that there is."""
    if times.dtype.kind == "i" and not float(span).is_integer():
        times = finer(times)
    if times.dtype.kind != "i":
        return times + span
    whole = round(span)
    return np.minimum(times, np.iinfo(np.int64).max - whole) + whole


def settle(layer: Layer, now: float, until: float | None = None) -> int:
    """Post the waiting labels that are due by ``until`` (or ``now``), in the order of their times; how many.

    What a run does before it serves a row of this time, so that a partition of a stream can be where the whole is
    though its own rows ended earlier. For layers without a time to live, whose tickets do not expire.
    """
    parts = layer.internals
    book = parts.tickets
    until = now if until is None else until
    due = [own for own in book.due_by(until) if own.due <= until]
    for own in sorted(due, key=lambda own: (own.due, own.ticket.number)):
        learn_waiting(parts, own)
    book.expire(now)
    return len(due)


def learn_waiting(parts: Internals, waiting: WaitingLabel) -> None:
    posting = parts.post(waiting.ticket, parts.enter(waiting.ticket.row), waiting.y)
    parts.tickets.hold((), (waiting,))
    if waiting.id is not None:
        parts.tickets.shut(waiting.id, new(Posting, posting))


LARGEST = 2**52  # floats tell whole numbers up to this, and halves between, apart
PREFIX = 4096  # rows that are looked at first: most streams are settled by then


def screen(layer: Layer, opened: Opened, y: Any) -> str | None:
    """What became of a label that is held back (``waiting``) or was learned with others; None: learn it now."""
    parts = layer.internals
    book, state, early = (parts.tickets, parts.state, parts.tickets.early)
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
    """A forecast; of several levels the one in the middle."""
    return float(f[len(f) // 2] if isinstance(f, (tuple, list)) else cast(float, f))


class Arrivals(NamedTuple):
    """Labels in the order in which they come, as columns.

    ``place``: the row, or a label that waited before; ``number``: of its row; ``moment``: when it comes; ``served``:
    how many rows were served by then.
    """

    place: Cells
    number: Ints
    label: Floats
    forecast: Floats
    moment: Cells
    served: Ints


def screen_columns(
    parts: Internals, base: Floats, y: Floats, weights: Floats | None, times: Cells, due: Cells | None
) -> tuple[Cells | None, list[WaitingLabel]]:
    """When labels of a run are learned; those that waited before and are moved, as they were."""
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
    clock, wanted, label = times[rows], due[rows], y[rows]
    learns = ~np.isnan(label) & (True if weights is None else weights[rows] > 0.0)
    turn = np.maximum(np.arange(1, n + 1), np.searchsorted(clock, wanted, side="left"))
    earlier = [own for own in book.waiting.values() if own.due != HELD]
    before = due_times(earlier, wanted.dtype)
    turns = np.searchsorted(clock, before, side="left")
    if book.ttl is not None:  # a label that comes after its ticket has expired is none
        served = np.array([own.time for own in earlier], dtype=clock.dtype)
        turn[turn > np.searchsorted(clock, clock + book.ttl, side="right")] = n
        turns[turns > np.searchsorted(clock, served + book.ttl, side="right")] = n
    came, old = np.flatnonzero(learns & (turn < n)), np.flatnonzero(turns < n)
    waited = [earlier[k] for k in old]
    number = np.concatenate([[own.ticket.number for own in waited], first + came + 1]).astype(int)
    moment = np.concatenate([before[old], wanted[came]])
    when = np.concatenate([turns[old], turn[came]])
    each = np.lexsort((number, moment, when))
    place = np.empty(len(each), dtype=object)
    place[:] = [*waited, *rows[came].tolist()]
    return Arrivals(
        place[each],
        number[each],
        np.concatenate([[own.y for own in waited], label[came]])[each],
        np.concatenate([[middle(own.ticket.base) for own in waited], f[rows[came]]])[each],
        moment[each],
        (first + when)[each],
    )


def held_columns(parts: Internals, due: Cells, labels: Arrivals) -> tuple[Cells, list[WaitingLabel]]:
    """The same where labels are held back, one after the other."""
    book, early = parts.tickets, parts.tickets.early
    assert early is not None
    posted = int(parts.state.facts[fact.POSTED])
    waiting: dict[int, WaitingLabel | int] = {k: book.waiting[k] for k in book.held_back}
    learned: list[tuple[WaitingLabel | int, int, float]] = []  # in this order: place, number, and when
    labels = copy_with(labels, moment=finer(labels.moment))
    each = zip(*(column.tolist() for column in labels), strict=True)
    for k, (place, number, label, forecast, when, served) in enumerate(each):
        if early.settled:
            break
        if served > number:
            early.count(label, forecast, served, number, (posted + k).__float__)
        if early.since is None or served == number:
            learned.append((place, number, when))
            continue
        waiting[number] = place
        ready = early.ready(number, served, waiting.__contains__, lambda: sorted(waiting))
        learned += [(waiting.pop(number), number, when) for number in ready]
    moved: list[WaitingLabel] = []

    def put(place: WaitingLabel | int, when: float) -> None:
        if isinstance(place, WaitingLabel):
            moved.append(copy_with(place, due=when))
        else:
            due[place] = when

    for place in waiting.values():
        put(place, HELD)
    following, last, at = math.nan, 0, 0.0
    for place, number, when in reversed(learned):
        # Labels of one moment are learned in the order of their numbers: an earlier moment if that is another.
        if when != following:
            at = when
        elif number >= last:  # the last number before, or the last nanosecond
            at = at - 1 if isinstance(at, int) else math.nextafter(at, -math.inf)
        following, last = when, number
        put(place, at)
    before = [book.waiting[own.ticket.number] for own in moved]
    book.hold(moved)
    return due, before


def finer(times: Cells) -> Cells:
    """A copy in which there are moments between whole numbers; nanoseconds are fine enough."""
    whole = times.dtype.kind == "i" and np.abs(times).max(initial=0) > LARGEST
    return times.copy() if whole else times.astype(float)
