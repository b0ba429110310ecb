"""Rows of a table in order of serving, and labels that arrive later than their rows."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from heapq import heappop, heappush
from itertools import chain, takewhile
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypedDict, TypeVar, cast

import numpy as np

from gradeq.cli.options import CommonOptions
from gradeq.errors import BadInput
from gradeq.files import Chunk, Clock, Codebook, Scatter, Table, Times, Writer, in_time_order, sorted_by_time
from gradeq.files.cells import Floats, Ints, Mask, row_name
from gradeq.files.times import ClockChanges, Moments
from gradeq.inputs.durations import NUMBERS, shown_time
from gradeq.kernels.choice import expecting
from gradeq.numerics import FAINT, SMALLEST
from gradeq.records import copy_with
from gradeq.report.story import Axis
from gradeq.tables import some

if TYPE_CHECKING:
    import pyarrow as pa

    from gradeq.cli.job import JobPass
    from gradeq.layers.layer import Layer


Item = TypeVar("Item")
Parsed = TypeVar("Parsed")
Progress = Callable[[int, float | None], None]  # takes the rows served and the share of the input
Arguments = ParamSpec("Arguments")

_WAITING = 3  # calls that may queue while the writer is busy with many rows
# Pieces are joined up to this many rows or bytes: each call of the layer then pays, and a long
# file reaches the length from which loops are compiled.
_ROWS = 1 << 17
_BYTES = 128 << 20
# Files of more bytes than this are read ahead and written behind; never a pipe, which may block.
_LONG = 32 << 20


@contextmanager
def read_ahead(items: Iterator[Item]) -> Iterator[Iterator[Item]]:
    with ThreadPoolExecutor(1) as reader:

        def read() -> Iterator[Item]:
            end = object()
            coming: Future[object] = reader.submit(next, items, end)
            while (item := coming.result()) is not end:
                coming = reader.submit(next, items, end)
                yield cast(Item, item)

        yield read()


@contextmanager
def write_behind(write: Callable[Arguments, None]) -> Iterator[Callable[Arguments, None]]:
    """Yields a function that calls ``write`` in another thread, in order.

    After an error nothing more is written; a later call, or the end of the block, raises it.
    """
    with ThreadPoolExecutor(1) as writer:
        waiting: deque[Future[None]] = deque()
        failed = False

        def put(*arguments: Arguments.args, **named: Arguments.kwargs) -> None:
            nonlocal failed
            if not failed:
                failed = True
                write(*arguments, **named)
                failed = False

        def hand_over(*arguments: Arguments.args, **named: Arguments.kwargs) -> None:
            if len(waiting) == _WAITING:
                waiting.popleft().result()
            waiting.append(writer.submit(put, *arguments, **named))

        yield hand_over
        for last in waiting:
            last.result()


@dataclass(frozen=True)
class Piece(Chunk):
    """Consecutive rows to serve; ``start`` counts the rows served before.

    ``due``: when each label became known; ``never``: labels without such a time.
    """

    times: Moments | None = None
    due: Moments | None = None
    never: Mask | None = None
    numbers_in_file: Ints | None = None  # of its rows, from 0; None in file order
    kind: str | None = None  # of its times
    x: Floats = field(kw_only=True)  # on a chart: seconds, times, or row numbers from 1

    def weights(self, name: str) -> Floats:
        weights = self.numbers(name)
        self.refuse_values(weights < 0.0, weights, name, "is negative; weights are 0 (not learned from) or more")
        self.refuse_values((weights > 0.0) & (weights < SMALLEST), weights, name, FAINT)
        return weights

    def row(self, i: int) -> str:
        if self.numbers_in_file is not None:
            return row_name(int(self.numbers_in_file[i]) + 1)
        return row_name(self.first_row + i, self.file)

    def refuse(self, wrong: Mask, text: str) -> None:
        """Raise an error about the first wrong row."""
        if wrong.any():
            raise BadInput(f"{row_name(self.first_row + int(np.argmax(wrong)), self.file)}: {text}")

    def refuse_values(self, wrong: Mask, values: Floats, name: str, rule: str) -> None:
        if wrong.any():
            self.refuse(wrong, f"column {name!r} has {float(values[np.argmax(wrong)])!r}, which {rule}")


class RowReader:
    """One pass over a table in order of serving.

    Rows in file order or in time order are streamed. Others are sorted by time, which takes about 30 bytes of memory
    a row (their columns are on disk if large), and their results are written in a second pass.
    """

    def __init__(self, table: Table, columns: Sequence[str], options: CommonOptions) -> None:
        self.table = table
        self.time, self.label_time = (
            None if name is None else Clock(name, decimal=options.decimal)
            for name in (options.time, options.label_time)
        )
        clocks = [clock.name for clock in (self.time, self.label_time) if clock is not None]
        self._columns = list(dict.fromkeys([*columns, *clocks]))
        table.need(*self._columns)
        self.clock_change: str | None = None
        self.streams, self.dated = True, False
        if self.time is not None:
            changes = ClockChanges(counted_from=1)
            self.streams = in_time_order(table, self.time, changes)
            self.clock_change = changes.description
            self.dated = self.time.kind == "time"  # counted in nanoseconds
        self.axis: Axis = "date" if self.dated else "row" if self.time is None else "number"
        self.axis_title = "row" if self.time is None else self.time.name
        delay, self._delay = options.delay, None
        if self.time is not None and delay is not None and delay.rows is None:
            if self.time.kind not in ("time", None):
                raise BadInput(
                    f"--delay {delay.text} is a duration, but column {self.time.name!r} holds numbers; "
                    "give --time a column of dates, or a number of rows"
                )
            self._delay = round(delay.seconds * 1e9)

    def last_time(self) -> float | int | None:
        assert self.time is not None
        ends = [
            chunk.read_times(self.time).values.max()
            for chunk in self.table.batches([self.time.name])
            if chunk.batch.num_rows
        ]
        return max(ends, default=None)

    def serve(self, job: JobPass[Parsed, Any], writer: Writer | None, new: Sequence[str], step: Progress) -> None:
        """Parse, answer and write every piece; ``step`` reports progress."""
        if not self.streams:
            self._serve_sorted(job, writer, new, step)
            return
        rows, table = 0, self.table
        chunks = joined_chunks(table.batches(None if writer else self._columns))
        sizes = [os.path.getsize(path) for path in table.paths if os.path.isfile(path)]
        with ExitStack() as stack:
            put = None if writer is None else writer.write
            if sum(sizes) > _LONG:
                chunks = stack.enter_context(read_ahead(chunks))
                put = None if put is None else stack.enter_context(write_behind(put))
            for chunk, in_one_file in chunks:
                parsed = self._parsed(job, partial(self._piece, chunk), numbered=in_one_file)
                rows += chunk.batch.num_rows
                share = table.progress()
                total = table.rows if table.rows is not None else int(rows / share) if share else rows
                with expecting(total - rows):
                    columns = job.answer(parsed)
                step(rows, share)
                if put is not None:
                    put(chunk.batch, columns)

    def _serve_sorted(
        self, job: JobPass[Parsed, Any], writer: Writer | None, new: Sequence[str], step: Progress
    ) -> None:
        assert self.time is not None
        total, served = self.table.rows, 0
        if total is None:
            total = sum(chunk.batch.num_rows for chunk in self.table.batches([self.time.name]))
        results = Scatter(total, new) if writer is not None else None
        with sorted_by_time(self.table, self.time, self._columns) as ordered:
            for batch, times, rows in ordered:
                chunk = Chunk(batch, served, 1, "", self.table.form)
                parsed = self._parsed(job, partial(self._piece, chunk, times, rows), numbered=False)
                served += len(rows)
                with expecting(total - served):
                    columns = job.answer(parsed)
                if results is not None:
                    results.put(rows, columns)
                step(served, served / total)
        if writer is not None and results is not None:
            for chunk in self.table.batches():
                writer.write(chunk.batch, results.get(chunk.start, chunk.start + chunk.batch.num_rows))

    def _parsed(self, job: JobPass[Parsed, Any], read: Callable[[], Piece], numbered: bool) -> Parsed:
        try:
            return job.parse(read())
        except BadInput:
            if not numbered:  # parse again in file order: the first bad row then has its number
                for unsorted in self.table.batches(self._columns):
                    job.parse(self._piece(unsorted))
            raise

    def _piece(self, chunk: Chunk, times: Moments | None = None, rows: Ints | None = None) -> Piece:
        due = never = kind = None
        if self.time is not None:
            times = chunk.read_times(self.time).values if times is None else times
            kind = self.time.description
            if self._delay is not None:  # times + delay, saturating at int64
                due = np.minimum(times, np.iinfo(np.int64).max - self._delay) + self._delay
            elif self.label_time is not None:
                due, never, _ = chunk.read_times(self.label_time, missing=True)
                self.time.check_comparable(self.label_time)
        if times is None:
            x: Floats = np.arange(chunk.start + 1, chunk.start + chunk.batch.num_rows + 1, dtype=float)
        else:
            x = times.astype(float)
            x = x / 1e9 if self.dated else x
        place = (chunk.batch, chunk.start, chunk.first_row, chunk.file, chunk.form)
        return Piece(*place, times, due, never, rows, kind, x=x)


def joined_chunks(chunks: Iterable[Chunk]) -> Iterator[tuple[Chunk, bool]]:
    """Larger chunks, and whether each lies in one file, so that its rows have numbers."""
    import pyarrow as pa

    parts: list[Chunk] = []
    rows = size = 0
    for chunk in chain(chunks, [None]):
        if chunk is not None:
            parts.append(chunk)
            rows += chunk.batch.num_rows
            size += chunk.batch.nbytes
            if rows < _ROWS and size < _BYTES:
                continue
        if len(parts) == 1:
            yield parts[0], True
        elif parts:
            batch = pa.Table.from_batches([part.batch for part in parts]).combine_chunks().to_batches()[0]
            yield replace(parts[0], batch=batch), all(part.file == parts[0].file for part in parts)
        parts, rows, size = [], 0, 0


@dataclass
class LabelsBeforeRows:
    labels: int = 0
    early: int = 0
    first: str = ""

    def add(self, piece: Piece, known: Mask) -> None:
        if piece.due is None or piece.never is None or piece.times is None:
            return  # no column says when labels came
        dated = known & ~piece.never
        self.labels += int(np.count_nonzero(dated))
        early = dated & (piece.due < piece.times)
        if early.any() and not self.early:
            i = int(np.argmax(early))
            self.first = early_label_example(piece.row(i), piece.due[i], piece.times[i], piece.kind)
        self.early += int(np.count_nonzero(early))


def early_label_example(row: str, due: float, time: float, kind: str | None) -> str:
    dates = kind != NUMBERS
    return f"{row}, {shown_time(due, dates)} before {shown_time(time, dates)}"


class LayerTimes(TypedDict, total=False):
    times: Times
    label_times: Times | None


NOT_READ = 1 << 60  # above all row numbers: from here on, rows of one series are counted
ROWS = "rows"


class DelayedRows(NamedTuple):
    """Rows of a piece, numbered from the start of the run, and the row before which each label is posted.

    If that row has not been read yet, ``due`` is NOT_READ plus its number within its series. ``order`` sorts rows
    by series; each series has ``sizes`` rows here after ``counts`` earlier ones.
    """

    times: Ints
    due: Ints
    first: int
    order: Ints
    sizes: Ints
    counts: Ints


class RowClock:
    """Counts the rows of a run, separately for each series of ``--key``."""

    def __init__(self, delay: int) -> None:
        self.delay, self.book = delay, Codebook()
        self.counts = np.zeros(1, dtype=np.int64)
        self.served = 0
        self.last = 0  # the number of the last ticket that was entered into ``far``
        # Of each series, when its labels that wait for a row not read yet are due: a heap of these and their tickets.
        self.far: dict[str | None, list[tuple[int, int]]] = {}

    def next_rows(self, n: int, keys: pa.Array | None) -> DelayedRows:
        codes = np.zeros(n, dtype=np.int64) if keys is None else self.book.codes(keys)
        counts = np.zeros(max(len(self.book), 1), dtype=np.int64)
        counts[: len(self.counts)] = self.counts
        order, sizes = np.argsort(codes, kind="stable"), np.bincount(codes, minlength=len(counts))
        series, slots = codes[order], np.arange(n)
        wanted = slots - (np.cumsum(sizes) - sizes)[series] + self.delay + 1
        due = NOT_READ + counts[series] + wanted
        here = wanted < sizes[series]
        due[here] = self.served + order[slots[here] + self.delay + 1]
        in_order = np.empty_like(due)
        in_order[order] = due
        rows = DelayedRows(self.served + slots, in_order, self.served, order, sizes, counts)
        self.served, self.counts = self.served + n, counts + sizes
        return rows

    def layer_times(self, layer: Layer, turns: DelayedRows) -> LayerTimes:
        """Times for a layer's run; waiting labels that become due in this piece are updated."""
        waiting = layer.internals.tickets.waiting
        for number in takewhile(lambda number: number > self.last, reversed(waiting)):
            label = waiting[number]
            heappush(self.far.setdefault(label.ticket.row.key, []), (int(label.due), number))
        self.last = next(reversed(waiting), self.last)
        starts, due_now = np.cumsum(turns.sizes) - turns.sizes, []
        for code in np.flatnonzero(turns.sizes).tolist() if self.far else ():
            far = self.far.get(self.book.names[code] if len(self.book) else None, [])
            before = NOT_READ + int(turns.counts[code])
            while far and far[0][0] < before + int(turns.sizes[code]):
                due, number = heappop(far)
                if number in waiting:  # else it was forgotten since
                    row = int(turns.order[starts[code] + due - before])
                    due_now.append(copy_with(waiting[number], due=turns.first + row))
        layer.internals.tickets.hold(due_now)
        return as_layer_times(turns.times, turns.due)

    def suspend(self, layer: Layer, now: float | None) -> None:
        """Store waiting labels with the number of rows left to wait."""
        book, resting = layer.internals.tickets, []
        for label in book.waiting.values():
            key = label.ticket.row.key  # None without series
            code = 0 if key is None else self.book.find(key)
            passed = 0 if code is None else int(self.counts[code])
            resting.append(copy_with(label, due=int(label.due) - NOT_READ - passed, time=0))
        book.hold(resting)
        book.now = now
        if book.waiting:
            book.desk["waiting"] = ROWS
        else:
            book.desk.pop("waiting", None)


def row_clock(options: CommonOptions, layer: Layer) -> RowClock | None:
    """The clock for --delay in rows; None if labels arrive at once or by time."""
    book, delay = layer.internals.tickets, options.delay
    in_rows = delay is not None and delay.rows is not None
    by_rows = bool(book.waiting) and book.desk.get("waiting") == ROWS
    if by_rows and not in_rows:
        raise BadInput(
            f"the state keeps {some(len(book.waiting), 'label')} with a number of rows to wait; go on with "
            "--delay in rows (0: all of them before the next row)"
        )
    if in_rows and book.waiting and not by_rows:
        raise BadInput(
            f"the state keeps {some(len(book.waiting), 'label')} with a time of arrival; continue with --time and "
            "--label-time or a --delay such as 3d, not with rows"
        )
    if delay is None or delay.rows is None or not (delay.rows or by_rows):
        return None
    book.hold([copy_with(label, due=NOT_READ + int(label.due)) for label in book.waiting.values()])
    return RowClock(delay.rows)


def run_times(clock: RowClock | None, turns: DelayedRows | None, piece: Piece, layer: Layer) -> LayerTimes:
    if clock is not None and turns is not None:
        return clock.layer_times(layer, turns)
    return {} if piece.times is None else as_layer_times(piece.times, piece.due, piece.kind)


def as_layer_times(times: Moments, due: Moments | None, kind: str | None = None) -> LayerTimes:
    missing = np.zeros(len(times), dtype=bool)
    label_times = None if due is None else Times(due, missing, kind)
    return {"times": Times(times, missing, kind), "label_times": label_times}


def label_timing(options: CommonOptions, label: str | None = "") -> str:
    """When labels arrived: at once, delay 3d, label time known, or later."""
    ages = [f"maturity {options.maturity}"] if options.maturity not in (None, "0") else []
    if label is None or options.label_time is not None:
        return ", ".join(["later" if label is None else f"label time {options.label_time}", *ages])
    if ages:
        return ages[0]
    return "at once" if options.delay is None or options.delay.rows == 0 else f"delay {options.delay.text}"
