"""CSV read as text, block by block: every cell arrives as it was written, 007 stays 007."""

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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO

from gradeq.errors import BadInput
from gradeq.files.cells import row_name, shown
from gradeq.files.failures import writing
from gradeq.files.pipes import opened

if TYPE_CHECKING:
    import pyarrow as pa

# One block is parsed at a time; a single row must fit into it.
BLOCK = 4 << 20
# The header must fit into what is looked at first.
HEAD = 2 << 20

_CELLS = re.compile(r"Row #(\d+): Expected (\d+) columns, got (\d+)")
_ENCODING = re.compile(r"column #(\d+): Row #(\d+): .*invalid UTF8")
# What is not CSV by its first bytes, what to do about such a file, and about such a pipe.
_OTHERS = {
    ((b"\xff\xfe", b"\xfe\xff"), "in UTF-16", "save it as CSV in UTF-8"): (
        "pipe it through iconv -f UTF-16 -t UTF-8"
    ),
    ((b"PAR1",), "a Parquet file by its content", "name it .parquet"): (
        "Parquet cannot be read from a pipe: give the file itself, named .parquet"
    ),
    ((b"\x1f\x8b",), "gzipped by its content", "name it .csv.gz"): (
        "unpack it on the way: gzip -dc FILE | gradeq ... -"
    ),
}


class Bytes:
    """A byte stream whose first block was looked at, and whose last bytes are remembered."""

    def __init__(self, raw: BinaryIO, *, zipped: bool) -> None:
        self.raw = raw
        self.stream: BinaryIO = gzip.GzipFile(fileobj=raw) if zipped else raw  # type: ignore[assignment]
        self.closed = False
        self.head = self.stream.read(HEAD)
        self.tail = b""
        self._pending = self.head

    def read(self, size: int = -1) -> bytes:
        """The next bytes, at most ``size``; what was looked at comes first."""
        if self._pending:
            size = len(self._pending) if size < 0 else size
            out, self._pending = self._pending[:size], self._pending[size:]
        else:
            out = self.stream.read(size)
        self.tail = (self.tail + out[-8:])[-8:]
        return out

    def readable(self) -> bool:
        """Always: the reader of arrow asks."""
        return True

    def close(self) -> None:
        """Mark as closed; the owner of the raw file closes that."""
        self.closed = True


def header(data: Bytes, where: str, separator: str = ",", piped: bool = False) -> list[str]:
    """The column names in the first line that is not blank; ``piped``: no other name would help."""
    head = data.head
    for (starts, what, name), pipe in _OTHERS.items():
        if head.startswith(starts):
            raise BadInput(f"{where} is {what}; {pipe if piped else name}")
    first = head.lstrip(b"\r\n").split(b"\n")[0]
    if len(first) >= HEAD - 2:
        raise BadInput(f"{where}: the first line is longer than {HEAD >> 20} MB; is it CSV?")
    if b"\0" in first or not _is_utf8(first):
        raise BadInput(f"{where} is neither CSV in UTF-8 nor Parquet; save it as one of them")
    if not head.strip(b"\xef\xbb\xbf\r\n \t"):
        raise BadInput(f"{where} is empty; a header line and at least one row are needed")
    text = io.StringIO(head.decode("utf-8-sig", errors="replace"), newline="")
    try:
        return next(row for row in csv.reader(text, delimiter=separator) if row)
    except csv.Error:
        raise BadInput(f"{where} has no readable header line; is it CSV?") from None


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


class CsvSource:
    """One CSV file, gzipped or not, or a pipe; a pipe can be read once unless it was spooled."""

    def __init__(
        self, path: str, *, zipped: bool = False, spool: bool = False, separator: str = ","
    ) -> None:
        self.where = "standard input" if path == "-" else path
        self.rows: int | None = None
        self.position = 0
        self._path = path
        self._zipped = zipped
        self._separator = separator
        self._pipe: BinaryIO | None = None
        if path == "-" or not stat.S_ISREG(os.stat(path).st_mode):
            self._pipe = sys.stdin.buffer if path == "-" else opened(path)
            if path != "-":
                weakref.finalize(self, self._pipe.close)
            if spool:
                self._pipe = _spooled(self._pipe, self.where)
                weakref.finalize(self, self._pipe.close)
        self._spooled = spool
        self.size = os.path.getsize(path) if self._pipe is None else 0
        # A pipe's first block is taken from it by looking at the header: keep it for the pass.
        self._begun: Bytes | None = None
        with self._opened() as data:
            self.names = header(data, self.where, separator, self._pipe is not None)
            if self._pipe is not None and not spool:
                self._begun = data

    @property
    def schema(self) -> pa.Schema:
        """Every column is text."""
        import pyarrow as pa

        return pa.schema([(name, pa.string()) for name in self.names])

    def batches(self, columns: Sequence[str], file: str) -> Iterator[pa.RecordBatch]:
        """Record batches of these columns; ``file`` goes into the name of a row in an error."""
        with self._opened() as data:
            for batch in _parsed(data, self.names, columns, self.where, file, self._separator):
                self.position = data.raw.tell() if self.size else 0
                yield batch

    @contextmanager
    def _opened(self) -> Iterator[Bytes]:
        if self._pipe is None:
            with open(self._path, "rb") as raw:
                yield _looked_at(raw, self._zipped, self.where)
        elif self._spooled:
            self._pipe.seek(0)
            yield _looked_at(self._pipe, self._zipped, self.where)
        elif self._begun is None:
            yield _looked_at(self._pipe, self._zipped, self.where)
        elif self._begun.closed:
            raise BadInput(f"{self.where} can be read only once; give a file")
        else:
            yield self._begun
            if self._path != "-":
                self._pipe.close()


def _spooled(pipe: BinaryIO, where: str) -> BinaryIO:
    """A copy of the pipe in a temporary file that has no name, so that none is left behind."""
    with writing(f"a copy of {where} in {tempfile.gettempdir()}"):
        copy = tempfile.TemporaryFile()  # noqa: SIM115
        shutil.copyfileobj(pipe, copy, 1 << 20)
        copy.flush()
    return copy


def _looked_at(raw: BinaryIO, zipped: bool, where: str) -> Bytes:
    try:
        return Bytes(raw, zipped=zipped)
    except (OSError, EOFError, zlib.error) as error:
        raise BadInput(f"{where} cannot be read: {error}; is it gzipped and whole?") from None


def _parsed(
    data: Bytes, names: Sequence[str], columns: Sequence[str], where: str, file: str, separator: str
) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    rows = 0
    last = None
    # The last column is always read: it shows whether the file ends inside a quoted cell.
    read = [*columns, *([] if names[-1] in columns else [names[-1]])]
    try:
        reader = arrow_csv.open_csv(
            data,
            # One thread, so that errors carry their row number.
            read_options=arrow_csv.ReadOptions(block_size=BLOCK, use_threads=False),
            parse_options=arrow_csv.ParseOptions(delimiter=separator, newlines_in_values=True),
            convert_options=arrow_csv.ConvertOptions(
                column_types={name: pa.string() for name in names},
                strings_can_be_null=False,
                include_columns=read,
            ),
        )
        for batch in reader:
            rows += batch.num_rows
            if batch.num_rows:
                last = batch
                yield batch.select(list(columns))
    except pa.ArrowInvalid as error:
        if "Empty CSV file" in str(error):
            return
        raise _refusal(str(error), names, where, rows, file) from None
    except (OSError, EOFError, zlib.error) as error:
        raise BadInput(f"{where} cannot be read to its end: {error}; is it damaged?") from None
    finally:
        data.close()
    if last is not None:
        _check_last_quote(last.column(names[-1])[-1].as_py(), data, where)


def _check_last_quote(cell: str, data: Bytes, where: str) -> None:
    """A quote that is never closed swallows the rest of the file; say so instead."""
    if "\n" in cell and not data.tail.rstrip(b"\r\n").endswith(b'"'):
        raise BadInput(f'{where} ends inside a quoted cell that begins {shown(cell)}; close the "')


def _refusal(text: str, names: Sequence[str], where: str, rows: int, file: str) -> BadInput:
    """What the parser found, in one line with a data row number and what to do."""
    if found := _CELLS.search(text):
        row, expected, got = (int(group) for group in found.groups())
        label = row_name(row - 1, file or where)
        return BadInput(f"{label} has {got} cells, the header {expected}; correct that line")
    if found := _ENCODING.search(text):
        column, row = (int(group) for group in found.groups())
        label = row_name(row - 1, file or where)
        return BadInput(
            f"{label}: column {names[column]!r} is not UTF-8 text; save the file as UTF-8"
        )
    if "straddling" in text:
        return BadInput(
            f"{where}: a row after row {rows} is longer than {BLOCK >> 20} MB; "
            'is a quote " not closed?'
        )
    return BadInput(f"{where} cannot be read as CSV: {' '.join(text.split())[:200]}")
