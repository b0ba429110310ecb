"""Rows in the order of time though the file is not, in bounded memory, and back to file order."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gradeq.files.arrays import from_numpy, to_numpy
from gradeq.files.table import Table
from gradeq.files.times import Clock, Turns
from gradeq.spans import NAIVE

if TYPE_CHECKING:
    import pyarrow as pa

Int64s = npt.NDArray[np.int64]

MEMORY = 512 << 20
_ROWS = 1 << 17


class Ordered(NamedTuple):
    """Rows in time order: the columns asked for, their times, and their place in the input."""

    batch: pa.RecordBatch
    times: npt.NDArray[Any]
    rows: Int64s  # numbers in the input, from 0


def in_time_order(table: Table, clock: Clock, turns: Turns | None = None) -> bool:
    """Whether the file's own order is that of time: then it needs no sorting at all; ``turns`` sees where not."""
    last: Any = None
    ordered = True
    for chunk in table.batches([clock.name]):
        times = chunk.times(clock).values
        if turns is not None and clock.holds == NAIVE:
            turns.look(times, chunk.start)
        if last is not None and times[0] < last:
            ordered = False
        ordered = ordered and bool((times[1:] >= times[:-1]).all())
        last = times[-1]
    return ordered


@contextmanager
def sorted_by_time(
    table: Table,
    clock: Clock,
    columns: Sequence[str],
    *,
    memory: int = MEMORY,
    folder: str | None = None,
) -> Iterator[Iterator[Ordered]]:
    """All rows by time, ties in file order; only the ``columns`` asked for are carried along.

    What does not fit into ``memory`` bytes is sorted in parts that are kept in a temporary
    folder and merged as they are read. Results can be put back in file order with `Scatter`.
    """
    with ExitStack() as stack:
        runs: list[_Run] = []
        held: list[_Part] = []
        size = 0
        for chunk in table.batches([*columns, clock.name]):
            times = chunk.times(clock).values
            rows = np.arange(chunk.start, chunk.start + chunk.rows)
            part = _Part(chunk.batch.select(list(columns)), times, rows)
            held.append(part)
            # Sorting copies once more, and each row has its time and number.
            size += 2 * part.batch.nbytes + 40 * chunk.rows
            if size > memory:
                if not runs:
                    folder = stack.enter_context(
                        tempfile.TemporaryDirectory(prefix="gradeq-sort-", dir=folder)
                    )
                runs.append(_spill(held, os.path.join(str(folder), str(len(runs)))))
                held, size = [], 0
        sources = [run.parts() for run in runs]
        if held:
            sources.append(_sorted_parts(held, _ROWS))
            del held
        yield _merged(sources)


class Scatter:
    """Columns of results, filled in any order of rows and read back in file order.

    Small ones are in memory, larger ones in a temporary file that is gone when closed.
    """

    def __init__(
        self, rows: int, columns: Sequence[str], *, memory: int = MEMORY, folder: str | None = None
    ) -> None:
        shape = (len(columns), rows)
        self._index = {name: i for i, name in enumerate(columns)}
        self._values: npt.NDArray[np.float64]
        if 8 * rows * len(columns) <= memory:
            self._values = np.full(shape, np.nan)
        else:
            # Without a name from the start, so that even a kill leaves nothing behind.
            with tempfile.TemporaryFile(dir=folder) as file:
                file.truncate(8 * rows * len(columns))
                self._values = np.memmap(file, np.float64, "r+", shape=shape)

    def put(self, rows: Int64s, values: dict[str, npt.NDArray[np.float64]]) -> None:
        """Set the values of these rows."""
        for name, column in values.items():
            self._values[self._index[name], rows] = column

    def get(self, start: int, stop: int) -> dict[str, npt.NDArray[np.float64]]:
        """The values of the rows from start to before stop."""
        return {name: self._values[i, start:stop] for name, i in self._index.items()}


class _Part(NamedTuple):
    batch: pa.RecordBatch
    times: npt.NDArray[Any]
    rows: Int64s


@dataclass(frozen=True)
class _Run:
    """Rows in order that lie in a temporary file."""

    path: str
    kind: npt.DTypeLike

    def parts(self) -> Iterator[_Part]:
        import pyarrow as pa

        with pa.OSFile(self.path) as file:
            reader = pa.ipc.open_file(file)
            for i in range(reader.num_record_batches):
                batch = reader.get_batch(i)
                count = batch.num_columns - 2
                keys = [to_numpy(batch.column(count + k)) for k in (0, 1)]
                yield _Part(batch.select(range(count)), keys[0].view(self.kind), keys[1])


def _spill(held: list[_Part], path: str) -> _Run:
    import pyarrow as pa

    kind = held[0].times.dtype
    schema = held[0].batch.schema
    schema = schema.append(pa.field("\0time", pa.int64())).append(pa.field("\0row", pa.int64()))
    with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, schema) as out:
        for part in _sorted_parts(held, _ROWS // 4):
            # Float times travel as their bits.
            keys = [from_numpy(part.times.view(np.int64)), from_numpy(part.rows)]
            arrays = [*part.batch.columns, *keys]
            out.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))
    return _Run(path, kind)


def _sorted_parts(held: list[_Part], size: int) -> Iterator[_Part]:
    """The held rows in order of time, then row, in parts."""
    import pyarrow as pa

    table = (
        pa.Table.from_batches([part.batch for part in held]) if held[0].batch.num_columns else None
    )
    times = np.concatenate([part.times for part in held])
    rows = np.concatenate([part.rows for part in held])
    held.clear()
    order = np.argsort(times, kind="stable")
    for at in range(0, len(order), size):
        take = order[at : at + size]
        yield _Part(_taken(table, take), times[take], rows[take])


def _taken(table: pa.Table | None, take: Int64s) -> pa.RecordBatch:
    import pyarrow as pa

    if table is None:
        return pa.RecordBatch.from_arrays([], schema=pa.schema([]))
    part = table.take(from_numpy(take)).combine_chunks()
    return part.to_batches()[0]


def _merged(sources: list[Iterator[_Part]]) -> Iterator[Ordered]:
    """Several ordered sequences as one.

    Of the parts at hand, every row up to the smallest last key among them is safe to hand out:
    what has not been read yet comes later. At least one part is used up each time.
    """
    if len(sources) == 1:
        yield from (Ordered(*part) for part in sources[0])
        return
    fronts = [(source, next(source)) for source in sources]
    while fronts:
        time, row = min((part.times[-1], part.rows[-1]) for _, part in fronts)
        ready, kept = [], []
        for source, part in fronts:
            cut = _up_to(part, time, row)
            if cut:
                ready.append(_slice(part, 0, cut))
            rest = _slice(part, cut, len(part.rows)) if cut < len(part.rows) else next(source, None)
            if rest is not None:
                kept.append((source, rest))
        fronts = kept
        yield _joined(ready)


def _up_to(part: _Part, time: Any, row: int) -> int:
    """How many rows of an ordered part have a key (time, row) not above the given one."""
    low, high = (int(np.searchsorted(part.times, time, side=side)) for side in ("left", "right"))
    return low + int(np.searchsorted(part.rows[low:high], row, side="right"))


def _slice(part: _Part, start: int, stop: int) -> _Part:
    batch = part.batch.slice(start, stop - start)
    return _Part(batch, part.times[start:stop], part.rows[start:stop])


def _joined(parts: list[_Part]) -> Ordered:
    import pyarrow as pa

    times = np.concatenate([part.times for part in parts])
    rows = np.concatenate([part.rows for part in parts])
    order = np.lexsort((rows, times))
    width = parts[0].batch.num_columns
    table = pa.Table.from_batches([part.batch for part in parts]) if width else None
    return Ordered(_taken(table, order), times[order], rows[order])
