"""Writes a table with new columns as .csv, .csv.gz or .parquet, complete or not at all."""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from gradeq.errors import BadInput
from gradeq.files.cells import PLAIN, Format, from_numpy, is_text, is_utf8, text_bytes, texts
from gradeq.files.paths import OutputFiles, atomic, check_output, writing

if TYPE_CHECKING:
    import pyarrow as pa

Values = Sequence[str] | Sequence[int] | NDArray[np.generic]  # of a new column

# A Parquet row group is written when it has this many rows or bytes.
_GROUP_ROWS = 1 << 20
_GROUP_BYTES = 64 << 20


class Writer:
    """Writes input rows unchanged, with new columns appended.

    Use as a context manager: the file appears at the end, or with ``among``; an error leaves the old file unchanged.
    ``new`` maps new columns to float, int or str; nan is written as an empty cell.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        schema: pa.Schema,
        new: Mapping[str, type],
        *,
        inputs: Iterable[str] = (),
        among: OutputFiles | None = None,
        form: Format = PLAIN,
    ) -> None:
        import pyarrow as pa

        self.path, self._among, self._form = os.fspath(path), among, form
        self._new = dict(new)
        self._inputs = list(inputs if among is None else among.inputs)
        self._format = output_format(self.path)
        check_output(self.path, self._inputs)
        kinds = {float: pa.float64(), int: pa.int64(), str: pa.string()}
        self.schema = schema
        for name, kind in self._new.items():
            if name in schema.names:
                raise BadInput(f"the input has a column {name!r} already; rename the new one with --column NAME")
            if not name or not is_utf8(name):
                raise BadInput(f"the new column {name!r} has no name in UTF-8; give it one with --column NAME")
            self.schema = self.schema.append(pa.field(name, kinds[kind]))
        self._stack = ExitStack()
        self._sink: _CsvSink | _ParquetSink

    def __enter__(self) -> Writer:
        with ExitStack() as stack:
            if self._among is not None:
                file = self._among.open(self.path)
            else:
                file = stack.enter_context(atomic(self.path, self._inputs))
            if self._format == "parquet":
                self._sink = _ParquetSink(file, self.schema)
            else:
                self._sink = _CsvSink(file, self.schema, self._format == "csv.gz", self._form)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        with self._stack:
            if error is not None:
                self._sink.abandon()
                raise error
            with writing(self.path):
                self._sink.finish()

    def write(self, batch: pa.RecordBatch | None, new: Mapping[str, Values]) -> None:
        """Append rows of an input batch, if any, with values of the new columns; nan and None become null."""
        import pyarrow as pa
        import pyarrow.compute as pc

        columns = [] if batch is None else list(batch.columns)
        rows = len(next(iter(new.values()))) if batch is None else batch.num_rows
        for name, kind in self._new.items():
            values = new[name]
            if len(values) != rows:
                raise BadInput(f"new column {name!r} has {len(values)} values for {rows} rows")
            if kind is float:
                numbers = np.asarray(values, np.float64)
                columns.append(from_numpy(numbers, ~np.isnan(numbers)))
            elif kind is str:
                columns.append(pc.cast(texts(cast(Sequence[str], values)), pa.string()))
            else:
                whole = isinstance(values, list)
                columns.append(pa.array(values, pa.int64()) if whole else from_numpy(np.asarray(values, np.int64)))
        with writing(self.path):
            self._sink.write(pa.RecordBatch.from_arrays(columns, schema=self.schema))


def kinds_of(columns: Mapping[str, Values]) -> dict[str, type]:
    """The Python type of each column's values: str for a list, else a number."""
    return {
        name: str if isinstance(values, list) else int if np.asarray(values).dtype.kind in "iu" else float
        for name, values in columns.items()
    }


def output_format(path: str) -> str:
    """The format an output's name asks for: csv, csv.gz or parquet.

    >>> output_format("out.csv.gz")
    'csv.gz'
    """
    for suffix in ("csv", "csv.gz", "parquet"):
        if path.lower().endswith("." + suffix):
            return suffix
    raise BadInput(f"{path or 'an empty name'}: the output's name must end in .csv, .csv.gz or .parquet")


class _CsvSink:
    def __init__(self, file: BinaryIO, schema: pa.Schema, zipped: bool, form: Format) -> None:
        import pyarrow as pa

        # No time stamp in the header, so that equal tables are equal files. Level 3: digits of
        # floats hardly compress, and the default level takes three times as long.
        self._zip = gzip.GzipFile(fileobj=file, mode="wb", mtime=0, compresslevel=3) if zipped else None
        self._out = self._zip or file
        self._form = form
        self.write(pa.record_batch([texts([name]) for name in schema.names], schema.names))

    def write(self, batch: pa.RecordBatch) -> None:
        self._out.write(csv_lines(batch, self._form))

    def finish(self) -> None:
        if self._zip is not None:
            self._zip.close()

    def abandon(self) -> None:
        with suppress(OSError, ValueError):
            self.finish()


class _ParquetSink:
    def __init__(self, file: BinaryIO, schema: pa.Schema) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        # Numbers gain nothing from a dictionary and cost half as much again to write with one.
        number = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_temporal)
        others = [f.name for f in schema if not any(is_kind(f.type) for is_kind in number)]
        self._schema = schema
        self._file = pa.PythonFile(file, mode="w")
        self._out = pq.ParquetWriter(self._file, schema, use_dictionary=others or False)
        self._batches: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0

    def write(self, batch: pa.RecordBatch) -> None:
        self._batches.append(batch)
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

        if self._batches:
            table = pa.Table.from_batches(self._batches, self._schema)
            self._out.write_table(table, row_group_size=max(self._rows, 1))
            del table
        self._batches = []
        self._rows = self._bytes = 0
        pa.default_memory_pool().release_unused()  # arrow would keep room for several groups


def csv_lines(batch: pa.RecordBatch, form: Format = PLAIN) -> memoryview:
    """All rows of a batch as CSV lines; null is an empty cell."""
    import pyarrow.compute as pc

    cells = [_cells(column, name, form) for name, column in zip(batch.schema.names, batch.columns, strict=True)]
    empty, separator, end = texts(["", form.separator, "\n"])
    rows = pc.binary_join_element_wise(*cells, separator, null_handling="replace", null_replacement="")
    # The characters of an arrow text column lie one after the other: with a line end appended to
    # each row they are the file's bytes.
    starts, ends, data = text_bytes(pc.binary_join_element_wise(rows, empty, end))
    return (data[starts[0] : ends[-1]] if len(rows) else data[:0]).data


def _cells(column: pa.Array, name: str, form: Format) -> pa.Array:
    """A column as text cells, quoted where necessary."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    text = is_text(column.type)
    fraction = pa.types.is_floating(column.type) or pa.types.is_decimal(column.type)
    try:
        column = pc.cast(column, pa.large_string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise BadInput(f"column {name!r} holds {column.type} values, which CSV cannot; write .parquet") from None
    if not text and form.decimal == ".":
        return column
    if fraction:
        column = pc.replace_substring(column, ".", form.decimal)
    special = pc.match_substring_regex(column, f'["\r\n{re.escape(form.separator)}]')
    if not pc.any(special, min_count=0).as_py():
        return column
    quote, empty = texts(['"', ""])
    inner = pc.replace_substring(column, '"', '""')
    quoted = pc.binary_join_element_wise(quote, inner, quote, empty)
    return pc.if_else(special, quoted, column)
