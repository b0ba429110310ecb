"""Rows in order of time with little memory, and results back in file order."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from gradeq.files.cells import Floats, from_numpy
from gradeq.files.table import Table
from gradeq.files.times import Clock, ClockChanges, Moments
from gradeq.inputs.durations import NAIVE

if TYPE_CHECKING:
    import pyarrow as pa

Int64s = npt.NDArray[np.int64]

MEMORY = 512 << 20
_ROWS = 1 << 17
_MOST_FILES = 200


class SortedRows(NamedTuple):
    """Rows in order of time, with their numbers in the input."""

    batch: pa.RecordBatch
    times: Moments
    rows: Int64s  # numbers in the input, from 0


def in_time_order(table: Table, clock: Clock, changes: ClockChanges | None = None) -> bool:
    """Whether the file is sorted by time; ``changes`` collects clock changes."""
    last: Moments = np.empty(0)
    ordered = True
    for chunk in table.batches([clock.name]):
        times = chunk.read_times(clock).values
        if changes is not None and clock.description == NAIVE:
            changes.look(times, chunk.start)
        ordered = ordered and bool((times[:1] >= last).all() and (times[1:] >= times[:-1]).all())
        last = times[-1:]
    return ordered


@contextmanager
def sorted_by_time(
    table: Table, clock: Clock, columns: Sequence[str], *, memory: int = MEMORY, folder: str | None = None
) -> Iterator[Iterator[SortedRows]]:
    """All rows by time, ties in file order; only the ``columns`` asked for are carried along.

    Times and row numbers are sorted in memory. Columns that take more than ``memory`` bytes are split by rank into
    files of a temporary folder, each small enough to be sorted in memory.
    """
    batches: list[pa.RecordBatch] = []
    times, size = [], 0
    for chunk in table.batches([*columns, clock.name]):
        times.append(chunk.read_times(clock).values)
        batches.append(chunk.batch.select(list(columns)))
        size += 2 * batches[-1].nbytes + 40 * chunk.batch.num_rows  # sorting copies once more
        if size > memory:
            batches.clear()
    moments = np.concatenate(times)
    order = np.argsort(moments, kind="stable")
    if size <= memory:
        yield _take(batches, order, order, moments)
        return
    with tempfile.TemporaryDirectory(prefix="gradeq-sort-", dir=folder) as place:
        yield _sorted_on_disk(table, columns, order, moments, min(size // memory + 1, _MOST_FILES), place)


def _take(batches: list[pa.RecordBatch], places: Int64s, rows: Int64s, times: Moments) -> Iterator[SortedRows]:
    """Rows at these places, a part at a time; ``rows`` are their numbers in the input."""
    import pyarrow as pa

    table = pa.Table.from_batches(batches) if batches and batches[0].num_columns else None
    batches.clear()
    for start in range(0, len(rows), _ROWS):
        part = rows[start : start + _ROWS]
        if table is None:
            batch = pa.RecordBatch.from_arrays([], schema=pa.schema([]))
        else:
            batch = table.take(from_numpy(places[start : start + _ROWS])).combine_chunks().to_batches()[0]
        yield SortedRows(batch, times[part], part)


def _sorted_on_disk(
    table: Table, columns: Sequence[str], order: Int64s, times: Moments, count: int, folder: str
) -> Iterator[SortedRows]:
    """Write every row to the file of its rank, in the order of the input, then sort file by file."""
    import pyarrow as pa

    limits = np.linspace(0, len(order), count + 1).astype(np.int64)
    paths = [os.path.join(folder, str(k)) for k in range(count)]
    file_of = np.empty(len(order), np.int32)
    file_of[order] = np.repeat(np.arange(count), np.diff(limits))
    schema = pa.schema([table.schema.field(name) for name in columns])
    with ExitStack() as stack:
        sinks = [stack.enter_context(pa.OSFile(path, "wb")) for path in paths]
        outs = [stack.enter_context(pa.ipc.new_stream(sink, schema)) for sink in sinks]
        for chunk in table.batches(columns):
            files = file_of[chunk.start : chunk.start + chunk.batch.num_rows]
            for file in np.unique(files).tolist():
                outs[file].write_batch(chunk.batch.take(from_numpy(np.flatnonzero(files == file))))
    for path, start, stop in zip(paths, limits[:-1], limits[1:], strict=True):
        rows = order[start:stop]
        with pa.OSFile(path) as source:
            batches = list(pa.ipc.open_stream(source))
        os.unlink(path)
        places = np.empty(len(rows), np.int64)  # of the rows in the file
        places[np.argsort(rows)] = np.arange(len(rows))
        yield from _take(batches, places, rows, times)


class Scatter:
    """Columns of results, filled in any order and read in file order; large ones are on disk."""

    def __init__(self, rows: int, columns: Sequence[str], *, memory: int = MEMORY, folder: str | None = None) -> None:
        shape = (len(columns), rows)
        self._index = {name: i for i, name in enumerate(columns)}
        self._values: Floats
        if 8 * rows * len(columns) <= memory:
            self._values = np.full(shape, np.nan)
        else:
            # Without a name from the start, so that even a kill leaves nothing behind.
            with tempfile.TemporaryFile(dir=folder) as file:
                file.truncate(8 * rows * len(columns))
                self._values = np.memmap(file, np.float64, "r+", shape=shape)

    def put(self, rows: Int64s, values: Mapping[str, Floats]) -> None:
        for name, column in values.items():
            self._values[self._index[name], rows] = column

    def get(self, start: int, stop: int) -> dict[str, Floats]:
        return {name: self._values[i, start:stop] for name, i in self._index.items()}
