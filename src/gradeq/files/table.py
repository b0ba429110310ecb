"""One table from one or more CSV or Parquet files, read in batches that fit into memory."""

from __future__ import annotations

import csv
import gzip
import io
import os
import re
import shutil
import stat
import sys
import tempfile
import weakref
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, cast

from gradeq.errors import BadInput
from gradeq.files.cells import (
    PLAIN,
    Floats,
    Format,
    is_text,
    is_utf8,
    no_such_column,
    numeric,
    plain,
    row_name,
    show_cell,
    without_missing,
)
from gradeq.files.codebook import Codebook
from gradeq.files.paths import open_input, refuse_address, system_errors, writing
from gradeq.files.times import Clock, Times
from gradeq.tables import some

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq


# One block is parsed at a time; a single row must fit into it.
BLOCK = 4 << 20
# The header must fit into what is looked at first.
HEAD = 2 << 20

_CELLS = re.compile(r"Row #(\d+): Expected (\d+) columns, got (\d+)")
_ENCODING = re.compile(r"column #(\d+): Row #(\d+): .*invalid UTF8")
# What is not CSV by its first bytes, and the remedy for a file and for a pipe.
_OTHER_FORMATS = (
    ((b"\xff\xfe", b"\xfe\xff"), "in UTF-16", "save it as CSV in UTF-8", "pipe it through iconv -f UTF-16 -t UTF-8"),
    ((b"PAR1",), "a Parquet file by its content", "name it .parquet", "give the file itself, named .parquet"),
    ((b"\x1f\x8b",), "gzipped by its content", "name it .csv.gz", "unpack it first: gzip -dc FILE | gradeq ... -"),
)


class ByteStream:
    """A byte stream for arrow, with a look at its first block and its last bytes."""

    def __init__(self, raw: BinaryIO, zipped: bool, where: str) -> None:
        self.raw = raw
        self.stream = cast(BinaryIO, gzip.GzipFile(fileobj=raw)) if zipped else raw
        self.closed = False
        self.tail = b""
        try:
            self.head = self._pending = self.stream.read(HEAD)
        except (OSError, EOFError, zlib.error) as error:
            raise BadInput(f"{where} cannot be read: {error}; is it gzipped and whole?") from None

    def read(self, size: int = -1) -> bytes:
        if self._pending:
            size = len(self._pending) if size < 0 else size
            out, self._pending = self._pending[:size], self._pending[size:]
        else:
            out = self.stream.read(size)
        self.tail = (self.tail + out[-8:])[-8:]
        return out

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self.closed = True


def header(head: bytes, where: str, separator: str, piped: bool) -> list[str]:
    """Column names from the first line that is not blank."""
    for starts, what, file_remedy, pipe_remedy in _OTHER_FORMATS:
        if head.startswith(starts):
            raise BadInput(f"{where} is {what}; {pipe_remedy if piped else file_remedy}")
    first = head.lstrip(b"\r\n").split(b"\n")[0]
    if len(first) >= HEAD - 2:
        raise BadInput(f"{where}: the first line is longer than {HEAD >> 20} MB; is it CSV?")
    try:
        text = first.decode("utf-8")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise BadInput(f"{where} is neither CSV in UTF-8 nor Parquet; save it as one of them")
    if not head.strip(b"\xef\xbb\xbf\r\n \t"):
        raise BadInput(f"{where} is empty, without even a header line; write the column names into the first line")
    lines = io.StringIO(head.decode("utf-8-sig", errors="replace"), newline="")
    try:
        return next(row for row in csv.reader(lines, delimiter=separator) if row)
    except csv.Error:
        raise BadInput(f"{where} has no readable header line; is it CSV?") from None


class CsvSource:
    """A CSV file, gzipped or not, or a pipe; an unspooled pipe can be read once."""

    rows: int | None = None

    def __init__(self, path: str, *, zipped: bool = False, spool: bool = False, separator: str = ",") -> None:
        import pyarrow as pa

        self.where = "standard input" if path == "-" else path
        self.position = 0
        self._path, self._zipped, self._separator = path, zipped, separator
        self._pipe: BinaryIO | None = None  # or its copy, which can be read again
        self._copied = False
        self._begun: ByteStream | None = None  # of a pipe: its first block is read with the header
        if path == "-" or not stat.S_ISREG(os.stat(path).st_mode):
            self._pipe = sys.stdin.buffer if path == "-" else open_input(path)
            if path != "-":
                weakref.finalize(self, self._pipe.close)
            if spool:
                self._copy_pipe(self._pipe)
        self.size = os.path.getsize(path) if self._pipe is None else 0
        with self._opened() as data:
            names = header(data.head, self.where, separator, self._pipe is not None)
        self.schema = pa.schema([(name, pa.string()) for name in names])

    def _copy_pipe(self, pipe: BinaryIO) -> None:
        with writing(f"a copy of {self.where} in {tempfile.gettempdir()}"):
            copy = cast(BinaryIO, tempfile.TemporaryFile())  # noqa: SIM115
            weakref.finalize(self, copy.close)
            shutil.copyfileobj(pipe, copy, 1 << 20)
            copy.flush()
        self._pipe, self._copied = copy, True

    @contextmanager
    def _opened(self) -> Iterator[ByteStream]:
        if self._pipe is None:
            with open(self._path, "rb") as raw:
                yield ByteStream(raw, self._zipped, self.where)
        elif self._copied:
            self._pipe.seek(0)
            yield ByteStream(self._pipe, self._zipped, self.where)
        else:
            self._begun = self._begun or ByteStream(self._pipe, self._zipped, self.where)
            if self._begun.closed:
                raise BadInput(f"{self.where} can be read only once; give a file")
            yield self._begun

    def batches(self, columns: Sequence[str], file: str) -> Iterator[pa.RecordBatch]:
        """Record batches of these columns; ``file`` is part of row names in errors."""
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        names, rows, last = self.schema.names, 0, None
        # The last column is always read: it shows whether the file ends inside a quoted cell.
        read = [*columns, *([] if names[-1] in columns else [names[-1]])]
        with self._opened() as data:
            try:
                reader = arrow_csv.open_csv(
                    data,
                    # One thread, so that errors carry their row number.
                    read_options=arrow_csv.ReadOptions(block_size=BLOCK, use_threads=False),
                    parse_options=arrow_csv.ParseOptions(delimiter=self._separator, newlines_in_values=True),
                    convert_options=arrow_csv.ConvertOptions(
                        column_types=self.schema, strings_can_be_null=False, include_columns=read
                    ),
                )
                for batch in reader:
                    rows += batch.num_rows
                    self.position = data.raw.tell() if self.size else 0
                    if batch.num_rows:
                        last = batch
                        yield batch.select(list(columns))
            except pa.ArrowInvalid as error:
                if "Empty CSV file" in str(error):
                    return
                raise _csv_refusal(str(error), names, self.where, rows, file) from None
            except (OSError, EOFError, zlib.error) as error:
                raise BadInput(f"{self.where} cannot be read to its end: {error}; is it damaged?") from None
            finally:
                data.close()
            cell = "" if last is None else last.column(names[-1])[-1].as_py()
            if "\n" in cell and not data.tail.rstrip(b"\r\n").endswith(b'"'):
                raise BadInput(f'{self.where} ends inside a quoted cell that begins {show_cell(cell)}; close the "')


def _csv_refusal(text: str, names: Sequence[str], where: str, rows: int, file: str) -> BadInput:
    """An error of arrow's parser in one line, with row and remedy."""
    if match := _CELLS.search(text):
        row, expected, cells = map(int, match.groups())
        label = row_name(row - 1, file or where)
        return BadInput(f"{label} has {some(cells, 'cell')}, the header {expected}; correct that line")
    if match := _ENCODING.search(text):
        column, row = map(int, match.groups())
        label = row_name(row - 1, file or where)
        return BadInput(f"{label}: column {names[column]!r} is not UTF-8 text; save the file as UTF-8")
    if "straddling" in text:
        return BadInput(f'{where}: a row after row {rows} is longer than {BLOCK >> 20} MB; is a quote " not closed?')
    return BadInput(f"{where} cannot be read as CSV: {' '.join(text.split())[:200]}")


ROWS = 1 << 17
_AT = re.compile(r"string index (\d+)")
_LARGE_GROUP = 256 << 20


class ParquetSource:
    """A Parquet file; ``position`` and ``size`` count rows."""

    def __init__(self, path: str) -> None:
        import pyarrow as pa

        self.where, self.position = path, 0
        with self._opened() as file:
            schema = file.schema_arrow
            self.rows: int | None = file.metadata.num_rows
        for at, field in enumerate(schema):
            kind = field.type
            # Each part of a file may have its own dictionary: together they need wider indices.
            if pa.types.is_dictionary(kind) and kind.index_type.bit_width < 32:
                wide = pa.dictionary(pa.int32(), kind.value_type, kind.ordered)
                schema = schema.set(at, field.with_type(wide))
        self.schema, self.size = schema, self.rows or 0

    def _opened(self) -> pq.ParquetFile:
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            name = self.where if is_utf8(self.where) else pa.OSFile(os.fsencode(self.where))
            # Without pre-buffering whole row groups stay out of memory; a buffered stream does the
            # same for files that were written as one huge group, at some cost in speed.
            file = pq.ParquetFile(name, pre_buffer=False)
            meta = file.metadata
            if any(meta.row_group(i).total_byte_size > _LARGE_GROUP for i in range(meta.num_row_groups)):
                file.close()
                file = pq.ParquetFile(name, pre_buffer=False, buffer_size=1 << 20)
        except UnicodeDecodeError:
            raise BadInput(f"{self.where} has a column whose name is not UTF-8; rename it") from None
        except (pa.ArrowException, OSError) as error:
            raise self._refusal(error) from None
        return file

    def batches(self, columns: Sequence[str], file: str) -> Iterator[pa.RecordBatch]:
        """Record batches of these columns; ``file`` is part of row names in errors."""
        import pyarrow as pa

        self.position = 0
        with self._opened() as data:
            try:
                for batch in data.iter_batches(batch_size=ROWS, columns=list(columns)):
                    for name in columns:
                        _check_text(batch.column(name), name, self.position, file)
                    self.position += batch.num_rows
                    yield batch.select(list(columns))
            except (pa.ArrowException, OSError) as error:
                raise self._refusal(error) from None

    def _refusal(self, error: Exception) -> BadInput:
        text = " ".join(str(error).split())
        if "magic bytes" in text or "smaller than" in text or "size is 0" in text:
            return BadInput(f"{self.where} is not a complete Parquet file; write it again")
        return BadInput(f"{self.where} cannot be read as Parquet: {text[:200]}")


def _check_text(column: pa.Array, name: str, before: int, file: str) -> None:
    """Raise for invalid UTF-8, which Parquet readers do not check."""
    import pyarrow as pa

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not is_text(kind):
        return
    try:
        column.validate(full=True)
    except pa.ArrowInvalid as error:
        index = _AT.search(str(error))
        row = f"{row_name(before + int(index[1]) + 1, file)}: " if index and kind == column.type else ""
        raise BadInput(f"{row}column {name!r} is not UTF-8 text; save it as UTF-8") from None


@dataclass(frozen=True)
class Chunk:
    """Consecutive rows, and how errors name them."""

    batch: pa.RecordBatch
    start: int  # rows of the table before this one
    first_row: int  # number of its first row within its file, from 1
    file: str  # the file's name when there are several, else ""
    form: Format

    def column(self, name: str) -> pa.Array:
        column = self.batch.column(name)
        return without_missing(column, self.form) if self.form.missing else column

    def numbers(self, name: str, *, missing: bool = False) -> Floats:
        column, decimal = self.column(name), self.form.decimal
        return numeric(column, name, self.first_row, file=self.file, missing=missing, decimal=decimal)

    def cells(self, name: str) -> pa.Array:
        """The column, or the names of its values if it is not text, numbers or booleans."""
        import pyarrow as pa

        column = self.column(name)
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if pa.types.is_string_view(kind):
            return plain(column)
        known = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_null)
        if is_text(kind) or any(is_kind(kind) for is_kind in known):
            return column
        if pa.types.is_nested(kind):
            raise BadInput(f"column {name!r} holds {kind} values, which name nothing; give text or whole numbers")
        what = f"column {name!r} holds {kind} values that cannot be used"
        with system_errors(what, "name groups by text or whole numbers", ValueError):
            book = Codebook()
            codes = book.codes(column)
            return pa.DictionaryArray.from_arrays(codes, pa.array(book.names, pa.large_string()))

    def read_times(self, clock: Clock, *, missing: bool = False) -> Times:
        return clock.read(self.column(clock.name), self.first_row, file=self.file, missing=missing)


Source = CsvSource | ParquetSource


@dataclass(frozen=True)
class Table:
    """Columns of one or more files; CSV columns are text, Parquet columns keep their types.

    ``batches`` can be repeated, except on a pipe.
    """

    sources: tuple[Source, ...]
    schema: pa.Schema
    paths: list[str]
    rows: int | None  # None if it is not known before reading
    empty: bool = False  # whether it may have no rows
    form: Format = PLAIN

    @property
    def names(self) -> list[str]:
        return list(self.schema.names)

    @property
    def title(self) -> str:
        others = len(self.sources) - 1
        return self.paths[0] + (f" and {others} more" if others else "")

    def need(self, *columns: str) -> None:
        known = set(self.names)
        for name in columns:
            if name not in known:
                raise no_such_column(name, self.names, self.title)

    def progress(self) -> float | None:
        size = sum(source.size for source in self.sources)
        return sum(source.position for source in self.sources) / size if size else None

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[Chunk]:
        """Chunks in file order; no rows are an error unless ``empty``."""
        import pyarrow as pa

        names = self.names if columns is None else list(dict.fromkeys(columns))
        self.need(*names)
        schema = pa.schema([self.schema.field(name) for name in names])
        for source in self.sources:
            source.position = 0
        start = 0
        for source in self.sources:
            file = source.where if len(self.sources) > 1 else ""
            first_row = 1
            for batch in source.batches(names, file):
                if not batch.schema.equals(schema):
                    batch = _cast_to(batch, schema, source.where)
                yield Chunk(batch, start, first_row, file, self.form)
                start += batch.num_rows
                first_row += batch.num_rows
        if not start and not self.empty:
            raise BadInput(f"{self.title} has no rows; a header and at least one row are needed")


def open_table(
    paths: Sequence[str | os.PathLike[str]], *, spool: bool = False, empty: bool = False, form: Format = PLAIN
) -> Table:
    """A table of .csv, .csv.gz or .parquet files with the same columns; - is CSV on standard input.

    ``spool`` copies a pipe to a temporary file, so that it can be read again; ``empty`` allows no rows.
    """
    names = [os.fspath(path) for path in paths]
    if not names:
        raise BadInput("no input file; name a .csv, .csv.gz or .parquet file, or - for stdin")
    if "-" in names and len(names) > 1:
        raise BadInput("- (standard input) cannot be joined with other files; give it alone")
    places = Counter(map(os.path.realpath, names))
    for name in names:
        if places[os.path.realpath(name)] > 1:
            raise BadInput(f"{name} is named twice; its rows would be learned from twice")
    sources = tuple(_open_source(name, spool, form.separator) for name in names)
    for source in sources:
        twice = [name for name, count in Counter(source.schema.names).items() if count > 1]
        if twice:
            raise BadInput(f"{source.where} has more than one column {twice[0]!r}; rename all but one of them")
    schema = sources[0].schema if len(sources) == 1 else _common_schema(sources)
    counts = [source.rows for source in sources if source.rows is not None]
    rows = sum(counts) if len(counts) == len(sources) else None
    table = Table(sources, schema, [source.where for source in sources], rows, empty, form)
    if rows == 0 and not empty:
        raise BadInput(f"{table.title} has no rows; at least one is needed")
    return table


def _open_source(path: str, spool: bool, separator: str) -> Source:
    if path == "-":
        return CsvSource(path, spool=spool, separator=separator)
    if not path:
        raise BadInput("the name of an input is empty; name a file")
    if not os.path.exists(path):
        refuse_address(path, "read", "download it first, or pipe CSV from another program into gradeq ... - here")
    with system_errors(f"{path} cannot be read", "check the name of the input"):
        try:
            kind = os.stat(path).st_mode
        except FileNotFoundError:
            raise BadInput(f"{path} does not exist; check the name of the input") from None
    if stat.S_ISDIR(kind):
        raise BadInput(f"{path} is a folder; name the files in it")
    if not os.access(path, os.R_OK):
        raise BadInput(f"{path} may not be read; check its permissions")
    lower = path.lower()
    if lower.endswith(".parquet"):
        if not stat.S_ISREG(kind):
            raise BadInput(f"{path} is a pipe or a device; Parquet can be read from a file only")
        if separator != PLAIN.separator:
            raise BadInput(f"{path} is Parquet, which has no separator; leave out --separator")
        return ParquetSource(path)
    if lower.endswith((".csv", ".csv.gz")) or not stat.S_ISREG(kind):
        return CsvSource(path, zipped=lower.endswith(".gz"), spool=spool, separator=separator)
    raise BadInput(f"{path} is neither CSV nor Parquet by its name; use .csv, .csv.gz or .parquet")


def _common_schema(sources: Sequence[Source]) -> pa.Schema:
    """The schema of the first file, widened for the others."""
    import pyarrow as pa

    first = sources[0]
    for other in sources[1:]:
        if type(other) is not type(first):
            raise BadInput(f"{first.where} and {other.where} differ in format; give one format")
        names, others = first.schema.names, other.schema.names
        differing = [name for name in (*names, *others) if name not in others or name not in names]
        if differing:
            what = "a" if differing[0] in others else "no"
            raise BadInput(
                f"{other.where} has {what} column {differing[0]!r}, unlike {first.where}; give the same columns"
            )
    fields = []
    for field in first.schema:
        common = pa.schema([field])
        for other in sources[1:]:
            kind, known = other.schema.field(field.name), common.field(0).type
            try:
                common = pa.unify_schemas([common, pa.schema([kind])], promote_options="permissive")
            except (pa.ArrowInvalid, pa.ArrowTypeError):
                what = f"{other.where}: column {field.name!r} holds {kind.type} values, in {first.where} {known}"
                both = pa.types.is_timestamp(known) and pa.types.is_timestamp(kind.type)
                how = "in one zone, or all without one" if both else "with one type"
                raise BadInput(f"{what}; write this column {how} in all files") from None
        fields.append(common.field(0))
    return pa.schema(fields, first.schema.metadata)


def _cast_to(batch: pa.RecordBatch, schema: pa.Schema, where: str) -> pa.RecordBatch:
    import pyarrow as pa

    columns = []
    for field, column in zip(schema, batch.columns, strict=True):
        what = f"{where}: column {field.name!r} holds {column.type} values, not {field.type} as in other files"
        with system_errors(what, "give files whose columns have the same types", ValueError):
            columns.append(column if column.type == field.type else column.cast(field.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)
