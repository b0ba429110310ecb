"""One table out of one or more files, read in batches that fit into memory."""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from gradeq.errors import BadInput
from gradeq.files.cells import no_such_column
from gradeq.files.csv_source import CsvSource
from gradeq.files.failures import reading, using
from gradeq.files.formats import PLAIN, Format
from gradeq.files.nameable import nameable
from gradeq.files.numbers import Floats, is_text, numeric
from gradeq.files.parquet_source import ParquetSource
from gradeq.files.places import refuse_address
from gradeq.files.times import Clock, Times

if TYPE_CHECKING:
    import pyarrow as pa

Source = CsvSource | ParquetSource

DOWNLOAD = "download it first, or pipe CSV into gradeq ... - from the program that reads it"


class Chunk(NamedTuple):
    """Rows that follow each other: the batch, where it starts, how errors name its rows."""

    batch: pa.RecordBatch
    start: int  # rows of the table before this one
    first_row: int  # number of its first row within its file, from 1
    file: str  # the file's name when there are several, else ""
    form: Format = PLAIN

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return int(self.batch.num_rows)

    def numbers(self, name: str, *, missing: bool = False) -> Floats:
        """A column as float64; with ``missing`` an absent value is nan, else it is refused."""
        own, decimal = self.column(name), self.form.decimal
        return numeric(own, name, self.first_row, file=self.file, missing=missing, decimal=decimal)

    def column(self, name: str) -> pa.Array:
        """A column without the cells that mean missing."""
        return self.form.known(self.batch.column(name))

    def cells(self, name: str) -> pa.Array:
        """A column that names groups, keys, players or rows."""
        return nameable(self.column(name), name)

    def times(self, clock: Clock, *, missing: bool = False) -> Times:
        """The clock's column as times."""
        return clock.read(self.column(clock.name), self.first_row, file=self.file, missing=missing)


@dataclass(frozen=True)
class Table:
    """The columns of one or more files; ``batches`` may be run again, but for a pipe.

    CSV columns are text, as they were written; Parquet columns keep their types.
    """

    sources: tuple[Source, ...]
    schema: pa.Schema
    empty: bool = False  # whether it may have no rows
    form: Format = PLAIN

    @property
    def names(self) -> list[str]:
        """The column names, in order."""
        return list(self.schema.names)

    @property
    def kinds(self) -> dict[str, str]:
        """What each column holds: text, number, boolean, time, or the name of another type."""
        return {column.name: _kind(column.type) for column in self.schema}

    @property
    def paths(self) -> list[str]:
        """The files, as they were named."""
        return [source.where for source in self.sources]

    @property
    def title(self) -> str:
        """The table in a message: its file, or how many files."""
        others = len(self.sources) - 1
        return self.paths[0] + (f" and {others} more" if others else "")

    @property
    def rows(self) -> int | None:
        """How many rows there are, where the files say so (Parquet)."""
        counts = [source.rows for source in self.sources]
        return None if None in counts else sum(count or 0 for count in counts)

    def need(self, *columns: str) -> None:
        """Refuse a column that is not there, with the nearest name that is."""
        known = set(self.schema.names)
        for name in columns:
            if name not in known:
                raise no_such_column(name, self.names, self.title)

    def progress(self) -> float | None:
        """How much of the input the present pass has read, in [0, 1]; None for a pipe."""
        size = sum(source.size for source in self.sources)
        return sum(source.position for source in self.sources) / size if size else None

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[Chunk]:
        """All rows in file order, as chunks of bounded size; no rows at all is an error, unless it may be empty."""
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
                    batch = _as_in_all(batch, schema, source.where)
                yield Chunk(batch, start, first_row, file, self.form)
                start += batch.num_rows
                first_row += batch.num_rows
        if not start and not self.empty:
            raise BadInput(f"{self.title} has no rows; a header and at least one row are needed")


def open_table(
    paths: Sequence[str | os.PathLike[str]],
    *,
    spool: bool = False,
    empty: bool = False,
    form: Format = PLAIN,
) -> Table:
    """The table of these files (.csv, .csv.gz, .parquet; - is CSV on standard input).

    Several files must have the same columns. ``spool`` keeps a pipe in a temporary file, so that
    it can be read more than once; ``empty``: a header without rows will do; ``form``: how cells are written.
    """
    names = [os.fspath(path) for path in paths]
    if not names:
        raise BadInput("no input file; name a .csv, .csv.gz or .parquet file, or - for stdin")
    if "-" in names and len(names) > 1:
        raise BadInput("- (standard input) cannot be joined with other files; give it alone")
    places: set[str] = set()
    for name in names:
        place = os.path.realpath(name)
        if place in places:
            raise BadInput(f"{name} is named twice; its rows would be learned from twice")
        places.add(place)
    sources = tuple(_source(name, spool, form.separator) for name in names)
    for source in sources:
        _check_names(source)
    table = Table(sources, _common(sources), empty, form)
    if table.rows == 0 and not empty:
        raise BadInput(f"{table.title} has no rows; at least one is needed")
    return table


def _source(path: str, spool: bool, separator: str) -> Source:
    if path == "-":
        return CsvSource(path, spool=spool, separator=separator)
    if not path:
        raise BadInput("the name of an input is empty; name a file")
    if not os.path.exists(path):
        refuse_address(path, "read", DOWNLOAD)
    with reading(path, "check the name of the input"):
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
            raise BadInput(f"{path} is a pipe or a device; Parquet can be read from a file alone")
        if separator != PLAIN.separator:
            raise BadInput(f"{path} is Parquet, which has no separator; leave out --separator")
        return ParquetSource(path)
    if lower.endswith((".csv", ".csv.gz")) or not stat.S_ISREG(kind):
        return CsvSource(path, zipped=lower.endswith(".gz"), spool=spool, separator=separator)
    raise BadInput(f"{path} is neither CSV nor Parquet by its name; use .csv, .csv.gz or .parquet")


def _check_names(source: Source) -> None:
    twice = [name for name, count in Counter(source.schema.names).items() if count > 1]
    if twice:
        raise BadInput(
            f"{source.where} has more than one column {twice[0]!r}; rename all but one of them"
        )


def _common(sources: Sequence[Source]) -> pa.Schema:
    """The schema of the first file, widened where another file's types are wider."""
    import pyarrow as pa

    first = sources[0]
    for other in sources[1:]:
        if type(other) is not type(first):
            raise BadInput(f"{first.where} and {other.where} differ in format; give one format")
        own, others = set(first.schema.names), set(other.schema.names)
        lacking = [name for name in first.schema.names if name not in others]
        extra = [name for name in other.schema.names if name not in own]
        if lacking or extra:
            what = f"has no column {lacking[0]!r}" if lacking else f"has a column {extra[0]!r}"
            raise BadInput(f"{other.where} {what}, unlike {first.where}; give the same columns")
    common = first.schema
    for other in sources[1:]:
        try:
            common = pa.unify_schemas([common, other.schema], promote_options="permissive")
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            raise _unlike(first, other, common) from None
    return common


def _unlike(first: Source, other: Source, common: pa.Schema) -> BadInput:
    """Which column it is whose types in two files have nothing in common."""
    import pyarrow as pa

    for field in common:
        own = other.schema.field(field.name)
        try:
            pa.unify_schemas([pa.schema([field]), pa.schema([own])], promote_options="permissive")
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            what = f"{other.where}: column {field.name!r} holds {own.type} values, in {first.where} {field.type}"
            both = pa.types.is_timestamp(field.type) and pa.types.is_timestamp(own.type)
            how = "in one zone, or all without one" if both else "with one type"
            return BadInput(f"{what}; write this column {how} in all files")
    return BadInput(f"{first.where} and {other.where} have columns of different types; give one")


def _as_in_all(batch: pa.RecordBatch, schema: pa.Schema, where: str) -> pa.RecordBatch:
    """A batch with the types that all files have in common; a value that does not fit is refused by its column."""
    import pyarrow as pa

    columns = []
    for field, column in zip(schema, batch.columns, strict=True):
        what = f"{where}: column {field.name!r} holds {column.type} values, in other files {field.type},"
        with using(what, "give files whose columns have the same types"):
            columns.append(column if column.type == field.type else column.cast(field.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _kind(arrow_type: Any) -> str:
    import pyarrow as pa

    kind = arrow_type.value_type if pa.types.is_dictionary(arrow_type) else arrow_type
    if is_text(kind):
        return "text"
    if pa.types.is_boolean(kind):
        return "boolean"
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "number"
    return "time" if pa.types.is_timestamp(kind) or pa.types.is_date(kind) else str(kind)
