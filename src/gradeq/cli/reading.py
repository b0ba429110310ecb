"""Rows in the order of serving, piece by piece, and their results back in the order of the file."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from gradeq.cli.kinds import Delay
from gradeq.cli.options import Common
from gradeq.cli.overlap import ahead, behind
from gradeq.errors import BadInput
from gradeq.files import (
    Chunk,
    Clock,
    Ordered,
    Scatter,
    Table,
    Writer,
    in_time_order,
    sorted_by_time,
)
from gradeq.files.cells import row_name
from gradeq.files.numbers import Floats
from gradeq.files.times import Turns
from gradeq.kernels.choice import expecting
from gradeq.spans import UNITS, duration

if TYPE_CHECKING:
    import pyarrow as pa

Parsed = TypeVar("Parsed")
Held = TypeVar("Held")

# Pieces are joined up to this many rows or bytes: each call of the layer then pays, and a long
# file reaches the length from which loops are compiled.
_ROWS = 1 << 17
_BYTES = 128 << 20
# Files of more bytes than this are read ahead and written behind; never a pipe, which may block.
_LONG = 32 << 20


class Piece(NamedTuple):
    """Rows that are served one after the other.

    ``rows`` are their numbers in the input (from 0), None while serving in file order. ``due`` is
    when each label became known; ``never`` marks those without such a time.
    """

    chunk: Chunk
    start: int  # rows served before this piece
    times: Any = None
    due: Any = None
    never: Any = None
    rows: Any = None
    kind: str | None = None  # of its times

    @property
    def length(self) -> int:
        """How many rows it has."""
        return self.chunk.rows

    def numbers(self, name: str, *, missing: bool = False) -> Floats:
        """A column as float64, checked."""
        return self.chunk.numbers(name, missing=missing)

    def cells(self, name: str) -> pa.Array:
        """A column that names groups, keys, players or rows."""
        return self.chunk.cells(name)

    def row(self, i: int) -> str:
        """The name of a row in the input."""
        if self.rows is not None:
            return row_name(int(self.rows[i]) + 1)
        return row_name(self.chunk.first_row + i, self.chunk.file)

    def refuse(self, wrong: Any, values: Floats, name: str, rule: str) -> None:
        """One line for the first row of this piece that breaks a rule."""
        if wrong.any():
            i = int(np.argmax(wrong))
            row = row_name(self.chunk.first_row + i, self.chunk.file)
            raise BadInput(f"{row}: column {name!r} has {float(values[i])!r}, which {rule}")


def reading_of(table: Table, columns: Sequence[str], options: Common) -> Reading:
    """The pass over a table that the shared options ask for."""
    return Reading(
        table,
        columns,
        None if options.time is None else Clock(options.time, decimal=options.decimal),
        None if options.label_time is None else Clock(options.label_time, decimal=options.decimal),
        options.delay,
    )


@dataclass
class Reading:
    """One pass over a table in the order of serving.

    In file order, or when the file is in time order, rows stream through. Otherwise they are
    sorted by time (on disk beyond what memory holds), their results kept, and written in a
    second pass. ``columns`` are those that the job needs.
    """

    table: Table
    columns: Sequence[str]
    time: Clock | None = None
    label_time: Clock | None = None
    delay: Delay | None = None

    def __post_init__(self) -> None:
        self.table.need(*self._wanted())
        self.turns = Turns(counted_from=1)
        self.streams = self.time is None or in_time_order(self.table, self.time, self.turns)
        self._served = self._count = 0
        self._later = self._span(self.delay)

    def _span(self, delay: Delay | None) -> int | None:
        """How much later than its row a label comes, in nanoseconds; None where no span is given."""
        if delay is None or delay.rows is not None or self.time is None:
            return None
        if self.time.kind not in ("time", None):
            raise BadInput(
                f"--delay {delay.text} is a duration, but column {self.time.name!r} holds numbers; "
                "give --time a column of dates, or a number of rows"
            )
        return round(delay.seconds * 1e9)

    def progress(self) -> float | None:
        """How much is done, in [0, 1]; None where that cannot be known."""
        return self.table.progress() if self.streams else self._served / max(self._count, 1)

    def ttl(self, text: str | None) -> float | None:
        """A span of time in the unit of the times that are compared (dates: nanoseconds)."""
        if text is None:
            return None
        dates = self.time is not None and self.time.kind == "time"
        number, unit = text.strip(), 1.0
        if dates and number[-1:] in UNITS:
            number, unit = number[:-1], UNITS[number[-1]]
        try:
            span = float(number)
        except ValueError:
            span = math.nan
        if not (math.isfinite(span) and span > 0.0):
            how = "a number of seconds, or 90s, 15m, 36h, 7d" if dates else "a number"
            raise BadInput(f"--ttl {text} is not a duration; give {how}, above 0")
        return span * unit * (1e9 if dates else 1.0)

    def maturity(self, text: str | None) -> float | None:
        """The age of a row when its label is learned, in the unit of the times (dates: nanoseconds)."""
        if text is None or text.strip() == "0":
            return None if text is None else 0.0
        assert self.time is not None
        if self.time.kind == "time":
            seconds = duration(text.strip())
            if seconds is None or not 0.0 < seconds < math.inf:
                raise BadInput(
                    f"--maturity {text} is not a duration; column {self.time.name!r} holds dates: give 90s, 15m, 36h "
                    "or 30d"
                )
            return seconds * 1e9
        try:
            span = float(text)
        except ValueError:
            span = math.nan
        if not (math.isfinite(span) and span > 0.0):
            raise BadInput(
                f"--maturity {text} is not a positive number; column {self.time.name!r} holds numbers: give one in "
                "their unit"
            )
        return span

    def last_time(self) -> Any:
        """The latest time of a row of the table; None without any rows."""
        assert self.time is not None
        ends = [
            chunk.times(self.time).values.max()
            for chunk in self.table.batches([self.time.name])
            if chunk.rows
        ]
        return max(ends, default=None)

    def serve(
        self,
        read: Callable[[Piece], Parsed],
        answer: Callable[[Parsed], Mapping[str, Floats]],
        writer: Writer | None,
        new: Sequence[str],
    ) -> int:
        """Read every piece (which may refuse it), answer it, write the answer; the number of rows."""
        if not self.streams:
            return self._sorted(read, answer, writer, new)
        rows = 0
        chunks = joined_chunks(self.table.batches(None if writer else self._wanted()))
        out = None if writer is None else writer.write
        files = [path for path in self.table.paths if os.path.isfile(path)]
        threaded = sum(map(os.path.getsize, files)) > _LONG
        with ahead(chunks, threaded) as coming, behind(out, threaded) as put:
            for chunk, whole in coming:
                try:
                    parsed = read(self._piece(chunk, chunk.start))
                except BadInput:
                    if not whole:
                        self._name_the_row(read)
                    raise
                rows += chunk.rows
                with expecting(self._still(rows)):
                    answered = answer(parsed)
                put(chunk.batch, answered)
        return rows

    def _sorted(
        self,
        read: Callable[[Piece], Parsed],
        answer: Callable[[Parsed], Mapping[str, Floats]],
        writer: Writer | None,
        new: Sequence[str],
    ) -> int:
        assert self.time is not None
        count = self.table.rows
        if count is None:
            count = sum(chunk.rows for chunk in self.table.batches([self.time.name]))
        self._count = count
        kept = Scatter(count, new) if writer is not None else None
        served = 0
        with sorted_by_time(self.table, self.time, self._wanted()) as ordered:
            for batch, times, rows in joined_ordered(ordered):
                chunk = Chunk(batch, served, 1, "", self.table.form)
                try:
                    parsed = read(self._piece(chunk, served, times, rows))
                except BadInput:
                    self._name_the_row(read)
                    raise
                with expecting(count - served):
                    results = answer(parsed)
                if kept is not None:
                    kept.put(rows, dict(results))
                self._served = served = served + len(rows)
        if writer is not None and kept is not None:
            for chunk in self.table.batches():
                writer.write(chunk.batch, kept.get(chunk.start, chunk.start + chunk.rows))
        return served

    def _still(self, rows: int) -> int:
        """How many rows are still to come after these, as far as the files tell."""
        if self.table.rows is not None:
            return self.table.rows - rows
        read = self.table.progress()
        return int(rows / read) - rows if read else 0

    def _name_the_row(self, read: Callable[[Piece], Any]) -> None:
        """Rows sorted or of several files have lost their numbers: find the first bad one."""
        for chunk in self.table.batches(self._wanted()):
            read(self._piece(chunk, chunk.start))

    def _piece(self, chunk: Chunk, start: int, times: Any = None, rows: Any = None) -> Piece:
        if self.time is not None and times is None:
            times = chunk.times(self.time).values
        kind = None if self.time is None else self.time.holds
        if self._later is not None:
            return Piece(chunk, start, times, after(times, self._later), rows=rows, kind=kind)
        if self.label_time is None:
            return Piece(chunk, start, times, rows=rows, kind=kind)
        due = chunk.times(self.label_time, missing=True)
        if self.time is not None:
            self.time.check_comparable(self.label_time)
        return Piece(chunk, start, times, due.values, due.missing, rows, kind)

    def _wanted(self) -> list[str]:
        clocks = [clock.name for clock in (self.time, self.label_time) if clock is not None]
        return list(dict.fromkeys([*self.columns, *clocks]))


def after(times: Any, span: int) -> Any:
    """So much later, at the latest the last moment that can be told."""
    last = np.iinfo(np.int64).max - span
    return np.minimum(times, last) + span


def joined_chunks(chunks: Iterable[Chunk]) -> Iterator[tuple[Chunk, bool]]:
    """Chunks in larger parts, and whether a part lies in one file, so that its rows have numbers."""
    for held in _gathered(chunks, lambda chunk: chunk.batch):
        first = held[0]
        if len(held) == 1:
            yield first, True
        else:
            batch = _stacked([chunk.batch for chunk in held])
            yield first._replace(batch=batch), all(chunk.file == first.file for chunk in held)


def joined_ordered(parts: Iterable[Ordered]) -> Iterator[Ordered]:
    """The same for rows in time order."""
    for held in _gathered(parts, lambda part: part.batch):
        if len(held) == 1:
            yield held[0]
        else:
            times, rows = (np.concatenate([part[k] for part in held]) for k in (1, 2))
            yield Ordered(_stacked([part.batch for part in held]), times, rows)


def _gathered(parts: Iterable[Held], batch: Callable[[Held], Any]) -> Iterator[list[Held]]:
    held: list[Held] = []
    rows = size = 0
    for part in parts:
        held.append(part)
        rows += batch(part).num_rows
        size += batch(part).nbytes
        if rows >= _ROWS or size >= _BYTES:
            yield held
            held, rows, size = [], 0, 0
    if held:
        yield held


def _stacked(batches: list[Any]) -> Any:
    import pyarrow as pa

    return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]
