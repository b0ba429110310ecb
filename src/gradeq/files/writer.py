"""Writes a table with new columns at its end: .csv, .csv.gz or .parquet, whole or not at all."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

import numpy as np

from gradeq.errors import BadInput
from gradeq.files import csv_lines
from gradeq.files.arrays import from_numpy, texts
from gradeq.files.atomic import Together, atomic
from gradeq.files.cells import guard_formula, is_utf8
from gradeq.files.failures import writing
from gradeq.files.formats import PLAIN, Format
from gradeq.files.places import check_output

if TYPE_CHECKING:
    import pyarrow as pa

# A Parquet row group is written when it has this many rows or bytes.
_GROUP_ROWS = 1 << 20
_GROUP_BYTES = 64 << 20


class Writer:
    """The output of a run: input rows as they came, new columns appended.

    Use as a context manager. The file takes its place when the block ends well; after any error
    the old file is as it was. ``new`` maps each new column's name to the Python type of its
    values (float, int or str); a float that is nan is written as an empty cell. ``among``: files
    that appear together; this one is then in its place when they are. ``form``: how CSV is written.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        schema: pa.Schema,
        new: Mapping[str, type],
        *,
        inputs: Iterable[str] = (),
        among: Together | None = None,
        form: Format = PLAIN,
    ) -> None:
        self.path, self._among, self._form = os.fspath(path), among, form
        self._new = dict(new)
        self._inputs = list(inputs)
        self._format = output_format(self.path)
        check_output(self.path, self._inputs)
        clash = [name for name in self._new if name in schema.names]
        if clash:
            raise BadInput(
                f"the input has a column {clash[0]!r} already; "
                "rename ours with --column NAME, or drop that one"
            )
        for name in self._new:
            if not name or not is_utf8(name):
                raise BadInput(
                    f"the new column {name!r} has no name in UTF-8; give it one with --column NAME"
                )
        self.schema = _extended(schema, self._new)
        self._stack = ExitStack()
        self._sink: _Sink

    def __enter__(self) -> Writer:
        with ExitStack() as stack:
            if self._among is not None:
                file = self._among.open(self.path)
            else:
                file = stack.enter_context(atomic(self.path, self._inputs))
            sink = _ParquetSink if self._format == "parquet" else _CsvSink
            self._sink = sink(file, self.schema, self._format == "csv.gz", self._form)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._stack:
            if error is not None:
                self._sink.abandon()
                raise error
            with writing(self.path):
                self._sink.finish()

    def write(self, batch: pa.RecordBatch | None, new: Mapping[str, Any]) -> None:
        """Append the rows of an input batch, if there is one, with the new columns' values."""
        import pyarrow as pa

        columns = [] if batch is None else list(batch.columns)
        rows = len(next(iter(new.values()))) if batch is None else batch.num_rows
        for name in self._new:
            values = new[name]
            if len(values) != rows:
                raise BadInput(f"new column {name!r} has {len(values)} values for {rows} rows")
            columns.append(_column(values, self.schema.field(name).type))
        with writing(self.path):
            self._sink.write(pa.RecordBatch.from_arrays(columns, schema=self.schema))


def kinds_of(columns: Mapping[str, Any]) -> dict[str, type]:
    """The Python type of each column's values: text where the column is a list, else numbers."""
    return {
        name: str if isinstance(values, list) else _number_kind(values)
        for name, values in columns.items()
    }


def write_rows(
    path: str | os.PathLike[str],
    columns: Mapping[str, Sequence[Any] | np.ndarray[Any, Any]],
    inputs: Iterable[str] = (),
) -> None:
    """Write a small table of our own making; its text is guarded against spreadsheet formulas."""
    import pyarrow as pa

    ready: dict[str, Any] = {}
    kinds: dict[str, type] = {}
    for name, values in columns.items():
        first = values[0] if len(values) else ""
        kinds[name] = str if isinstance(first, str) else _number_kind(values)
        ready[name] = [guard_formula(v) for v in values] if kinds[name] is str else values
    with Writer(path, pa.schema([]), kinds, inputs=inputs) as writer:
        writer.write(None, ready)


def output_format(path: str) -> str:
    """The format an output's name asks for: csv, csv.gz or parquet.

    >>> output_format("out.csv.gz")
    'csv.gz'
    """
    for suffix in ("csv", "csv.gz", "parquet"):
        if path.lower().endswith("." + suffix):
            return suffix
    raise BadInput(
        f"{path or 'an empty name'}: the output's name must end in .csv, .csv.gz or .parquet"
    )


class _Sink(Protocol):
    def write(self, batch: pa.RecordBatch) -> None: ...

    def finish(self) -> None: ...

    def abandon(self) -> None: ...


class _CsvSink:
    def __init__(self, file: BinaryIO, schema: pa.Schema, zipped: bool, form: Format) -> None:
        # No time stamp in the header, so that equal tables are equal files. Level 3: digits of
        # floats hardly compress, and the default level takes three times as long over them.
        self._zip = (
            gzip.GzipFile(fileobj=file, mode="wb", mtime=0, compresslevel=3) if zipped else None
        )
        self._out: Any = self._zip or file
        self._form = form
        self._out.write(csv_lines.line(schema.names, form))

    def write(self, batch: pa.RecordBatch) -> None:
        self._out.write(csv_lines.lines(batch, self._form))

    def finish(self) -> None:
        if self._zip is not None:
            self._zip.close()

    def abandon(self) -> None:
        with suppress(OSError, ValueError):
            self.finish()


class _ParquetSink:
    def __init__(self, file: BinaryIO, schema: pa.Schema, zipped: bool, form: Format) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        del zipped, form
        # Numbers gain nothing from a dictionary and cost half as much again to write with one.
        texts = [f.name for f in schema if not _is_number(f.type)]
        self._schema = schema
        self._file = pa.PythonFile(file, mode="w")
        self._out = pq.ParquetWriter(self._file, schema, use_dictionary=texts or False)
        self._held: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0

    def write(self, batch: pa.RecordBatch) -> None:
        self._held.append(batch)
        self._rows += batch.num_rows
        self._bytes += batch.nbytes
        if self._rows >= _GROUP_ROWS or self._bytes >= _GROUP_BYTES:
            self._flush()

    def finish(self) -> None:
        self._flush()
        self._out.close()

    def abandon(self) -> None:
        # Closed now rather than by the garbage collector, when the file is gone.
        with suppress(Exception):
            self._out.close()

    def _flush(self) -> None:
        import pyarrow as pa

        if self._held:
            table = pa.Table.from_batches(self._held, self._schema)
            self._out.write_table(table, row_group_size=max(self._rows, 1))
            del table
        self._held = []
        self._rows = self._bytes = 0
        pa.default_memory_pool().release_unused()  # arrow would keep room for several groups


def _extended(schema: pa.Schema, new: Mapping[str, type]) -> pa.Schema:
    import pyarrow as pa

    kinds = {float: pa.float64(), int: pa.int64(), str: pa.string()}
    for name, kind in new.items():
        schema = schema.append(pa.field(name, kinds[kind]))
    return schema


def _column(values: Any, kind: Any) -> pa.Array:
    """The values of a new column; a float that is nan is absent, and so is a whole number that is None."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_floating(kind):
        numbers = np.asarray(values, np.float64)
        return from_numpy(numbers, ~np.isnan(numbers))
    if pa.types.is_integer(kind):
        if isinstance(values, list):
            return pa.array(values, kind)
        return from_numpy(np.asarray(values, np.int64))
    return pc.cast(texts(values), kind)


def _number_kind(values: Any) -> type:
    return int if np.asarray(values).dtype.kind in "iu" else float


def _is_number(kind: Any) -> bool:
    import pyarrow as pa

    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_temporal(kind)
    )
