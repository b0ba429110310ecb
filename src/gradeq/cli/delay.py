"""Labels that come a fixed time after their rows: so many rows, or so many hours or days."""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np

from gradeq.cli.options import Common
from gradeq.cli.reading import Piece
from gradeq.errors import BadInput
from gradeq.files import Codebook, Times
from gradeq.ledger.batch import Ints

FAR = 1 << 60  # beyond all row numbers: what is counted from here is rows of one series
ROWS = "rows"


class Turns(NamedTuple):
    """The rows of a piece, numbered from the start of the run, and before which one each label is posted.

    Where that row has not been read yet the label is due at FAR plus the row's number in its own series. ``first`` is
    the number of the piece's first row, ``order`` its rows series by series: ``sizes`` rows each after ``counts``
    earlier ones.
    """

    times: Ints
    due: Ints
    first: int
    order: Ints
    sizes: Ints
    counts: Ints


class RowClock:
    """Counts the rows of a run, those of each series (``--key``) apart."""

    def __init__(self, delay: int) -> None:
        self.delay, self.book = delay, Codebook()
        self.counts = np.zeros(1, dtype=np.int64)
        self.served = 0
        self.last = 0  # the number of the last ticket that was entered into ``far``
        # Of each series, when its labels that wait for a row not read yet are due: a heap of these and their tickets.
        self.far: dict[str | None, list[tuple[int, int]]] = {}

    def turns(self, n: int, keys: Any) -> Turns:
        """The turns of the next n rows."""
        codes = np.zeros(n, dtype=np.int64) if keys is None else self.book.codes(keys)
        counts = np.zeros(max(len(self.book), 1), dtype=np.int64)
        counts[: len(self.counts)] = self.counts
        order, sizes = np.argsort(codes, kind="stable"), np.bincount(codes, minlength=len(counts))
        own, slots = codes[order], np.arange(n)
        wanted = slots - (np.cumsum(sizes) - sizes)[own] + self.delay + 1
        due = FAR + counts[own] + wanted
        here = wanted < sizes[own]
        due[here] = self.served + order[slots[here] + self.delay + 1]
        back = np.empty_like(due)
        back[order] = due
        made = Turns(self.served + slots, back, self.served, order, sizes, counts)
        self.served, self.counts = self.served + n, counts + sizes
        return made

    def given(self, layer: Any, turns: Turns) -> dict[str, Any]:
        """The times of a layer's run; labels that wait for a row of this piece are told which."""
        waiting = layer._book.waiting
        for number in takewhile(lambda number: number > self.last, reversed(waiting)):
            own = waiting[number]
            heappush(self.far.setdefault(own.ticket.row.key, []), (int(own.due), number))
        self.last = next(reversed(waiting), self.last)
        starts, found = np.cumsum(turns.sizes) - turns.sizes, []
        for code in np.flatnonzero(turns.sizes).tolist() if self.far else ():
            far = self.far.get(self.book.names[code] if len(self.book) else None, [])
            before = FAR + int(turns.counts[code])
            while far and far[0][0] < before + int(turns.sizes[code]):
                due, number = heappop(far)
                if number in waiting:  # else it was forgotten since
                    row = int(turns.order[starts[code] + due - before])
                    found.append(waiting[number]._replace(due=turns.first + row))
        layer._book.hold(found)
        return as_times(turns.times, turns.due)

    def take_up(self, layer: Any) -> None:
        """Labels of an earlier run wait for rows that are counted from here."""
        for_all(layer, lambda own: own._replace(due=FAR + int(own.due)))

    def lay_down(self, layer: Any, now: float | None) -> None:
        """Labels still waiting are kept with the number of rows to go; no row number is left in the layer."""

        def rested(own: Any) -> Any:
            code = series(own.ticket, self.book)
            gone = 0 if code is None else int(self.counts[code])
            return own._replace(due=int(own.due) - FAR - gone, time=0)

        for_all(layer, rested)
        book = layer._book
        book.now = now
        if book.waiting:
            book.desk["waiting"] = ROWS
        else:
            book.desk.pop("waiting", None)


def for_all(layer: Any, change: Any) -> None:
    """Change every label that waits."""
    layer._book.hold([change(own) for own in layer._book.waiting.values()])


def series(ticket: Any, book: Codebook) -> int | None:
    """The series of a ticket: 0 without keys, None if this run has not met its key."""
    return 0 if ticket.row.key is None else book.find(ticket.row.key)


def clock_of(options: Common, layer: Any) -> RowClock | None:
    """The clock of a run whose labels come so many rows late; None where they come at once or by time."""
    book, delay = layer._book, options.delay
    in_rows = delay is not None and delay.rows is not None
    by_rows = bool(book.waiting) and book.desk.get("waiting") == ROWS
    if by_rows and not in_rows:
        raise BadInput(
            f"the state keeps {len(book.waiting)} labels that come so many rows late; go on with "
            "--delay in rows (0: all of them before the next row)"
        )
    if in_rows and book.waiting and not by_rows:
        raise BadInput(
            f"the state keeps {len(book.waiting)} labels with a time of arrival; continue with --time and "
            "--label-time or a --delay such as 3d, not with rows"
        )
    if delay is None or delay.rows is None or not (delay.rows or by_rows):
        return None
    clock = RowClock(delay.rows)
    clock.take_up(layer)
    return clock


def times_of(clock: RowClock | None, turns: Turns | None, piece: Piece, layer: Any) -> Any:
    """When rows are served and their labels due, as the layer takes it; nothing where labels come at once."""
    if clock is not None and turns is not None:
        return clock.given(layer, turns)
    return {} if piece.times is None else as_times(piece.times, piece.due, piece.kind)


def as_times(times: Any, due: Any, kind: str | None = None) -> dict[str, Times | None]:
    """Times as a layer's run takes them, once they are read; without a kind they are row numbers."""
    missing = np.zeros(len(times), dtype=bool)
    label_times = None if due is None else Times(due, missing, kind)
    return {"times": Times(times, missing, kind), "label_times": label_times}


def labels_words(options: Common, label: str | None = "") -> str:
    """How labels came, for programs: at once, delay 3d, label time known; later, where no column has them."""
    mature = options.maturity not in (None, "0") and f"maturity {options.maturity}"
    if label is None:
        return f"later, {mature}" if mature else "later"
    if options.label_time is not None:
        known = f"label time {options.label_time}"
        return f"{known}, {mature}" if mature else known
    if mature:
        return mature
    if options.delay is None or options.delay.rows == 0:
        return "at once"
    return f"delay {options.delay.text}"
