"""Parquet read in batches of bounded size, whatever the size of its row groups."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from gradeq.errors import BadInput
from gradeq.files.cells import is_utf8, row_name
from gradeq.files.numbers import is_text

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

ROWS = 1 << 17
_AT = re.compile(r"string index (\d+)")
_LARGE_GROUP = 256 << 20


class ParquetSource:
    """One Parquet file; its columns keep their types. ``position`` and ``size`` count rows."""

    def __init__(self, path: str) -> None:
        self.where = path
        self.position = 0
        with _opened(path) as file:
            self.schema: pa.Schema = _with_room(file.schema_arrow)
            self.rows: int | None = file.metadata.num_rows
        self.size: int = self.rows or 0

    def batches(self, columns: Sequence[str], file: str) -> Iterator[pa.RecordBatch]:
        """Record batches of these columns; ``file`` goes into the name of a row in an error."""
        import pyarrow as pa

        self.position = 0
        with _opened(self.where) as data:
            try:
                for batch in data.iter_batches(batch_size=ROWS, columns=list(columns)):
                    for name in columns:
                        _check_text(batch.column(name), name, self.position, file)
                    self.position += batch.num_rows
                    yield batch.select(list(columns))
            except (pa.ArrowException, OSError) as error:
                raise _refusal(self.where, error) from None


def _with_room(schema: pa.Schema) -> pa.Schema:
    """Each part of a file may have a dictionary of its own: numbers that can count all of them."""
    import pyarrow as pa

    for at, field in enumerate(schema):
        kind = field.type
        if pa.types.is_dictionary(kind) and kind.index_type.bit_width < 32:
            wide = pa.dictionary(pa.int32(), kind.value_type, kind.ordered)
            schema = schema.set(at, field.with_type(wide))
    return schema


def _check_text(column: pa.Array, name: str, before: int, file: str) -> None:
    """Refuse text that is none in UTF-8: other readers of Parquet do not look."""
    import pyarrow as pa

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not is_text(kind):
        return
    try:
        column.validate(full=True)
    except pa.ArrowInvalid as error:
        found = _AT.search(str(error))
        row = (
            f"{row_name(before + int(found[1]) + 1, file)}: "
            if found and kind == column.type
            else ""
        )
        raise BadInput(f"{row}column {name!r} is not UTF-8 text; write it as such") from None


def _named(path: str) -> Any:
    """The file as arrow can open it: a name that is no text must be given in bytes."""
    import pyarrow as pa

    return path if is_utf8(path) else pa.OSFile(os.fsencode(path))


def _opened(path: str) -> pq.ParquetFile:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        # Without pre-buffering whole row groups stay out of memory; a buffered stream does the
        # same for files that were written as one huge group, at some cost in speed.
        file = pq.ParquetFile(_named(path), pre_buffer=False)
        meta = file.metadata
        if any(
            meta.row_group(i).total_byte_size > _LARGE_GROUP for i in range(meta.num_row_groups)
        ):
            file.close()
            file = pq.ParquetFile(_named(path), pre_buffer=False, buffer_size=1 << 20)
    except UnicodeDecodeError:
        raise BadInput(f"{path} has a column whose name is not UTF-8; rename it") from None
    except (pa.ArrowException, OSError) as error:
        raise _refusal(path, error) from None
    return file


def _refusal(path: str, error: Exception) -> BadInput:
    text = " ".join(str(error).split())
    if "magic bytes" in text or "smaller than" in text or "size is 0" in text:
        return BadInput(f"{path} is no whole Parquet file: not Parquet, or cut short; make it anew")
    return BadInput(f"{path} cannot be read as Parquet: {text[:200]}")
