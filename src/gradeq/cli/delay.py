"""Labels that come a fixed time after their rows: so many rows, or so many hours or days."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gradeq.cli.options import Common
from gradeq.cli.reading import Piece
from gradeq.errors import BadInput
from gradeq.files import Codebook
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

    def given(self, layer: Any, book: Codebook) -> dict[str, Any]:
        """The times of a layer's run; labels that wait for a row of this piece are told which."""
        starts = np.cumsum(self.sizes) - self.sizes
        moved = []
        for own in layer._book.waiting:
            code = series(own.ticket, book)
            left = FAR if code is None else int(own.due) - FAR - int(self.counts[code])
            if code is not None and left < self.sizes[code]:
                own = own._replace(due=self.first + int(self.order[starts[code] + left]))
            moved.append(own)
        layer._book.waiting = moved
        return {"times": self.times, "label_times": self.due}


class RowClock:
    """Counts the rows of a run, those of each series (``--key``) apart."""

    def __init__(self, delay: int) -> None:
        self.delay, self.book = delay, Codebook()
        self.counts = np.zeros(1, dtype=np.int64)
        self.served = 0

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
    layer._book.waiting = [change(own) for own in layer._book.waiting]


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
        return turns.given(layer, clock.book)
    return {} if piece.times is None else {"times": piece.times, "label_times": piece.due}


def labels_words(options: Common, label: str | None = "") -> str:
    """How labels came, for programs: at once, delay 3d, label time known; later, where no column has them."""
    if label is None:
        return "later"
    if options.label_time is not None:
        return f"label time {options.label_time}"
    if options.delay is None or options.delay.rows == 0:
        return "at once"
    return f"delay {options.delay.text}"
