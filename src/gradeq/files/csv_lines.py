"""Record batches as CSV lines: a cell is quoted only when it must be, floats round-trip exactly."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gradeq.errors import BadInput
from gradeq.files.arrays import texts
from gradeq.files.formats import PLAIN, Format
from gradeq.files.numbers import is_text

if TYPE_CHECKING:
    import pyarrow as pa


def line(cells: Sequence[str], form: Format = PLAIN) -> bytes:
    """One line of text cells, for the header.

    >>> line(["a", "b,c"])
    b'a,"b,c"\\n'
    """
    marks = {'"', "\r", "\n", form.separator}
    quoted = ['"' + c.replace('"', '""') + '"' if marks & set(c) else c for c in cells]
    return (form.separator.join(quoted) + "\n").encode("utf-8")


def lines(batch: pa.RecordBatch, form: Format = PLAIN) -> pa.Buffer:
    """All rows of the batch as CSV lines; an absent value is an empty cell."""
    import pyarrow.compute as pc

    cells = [_cells(batch.column(name), name, form) for name in batch.schema.names]
    empty, comma, end = texts(["", form.separator, "\n"])
    rows = pc.binary_join_element_wise(*cells, comma, null_handling="replace", null_replacement="")
    # The characters of an arrow text column lie one after the other: with a line end appended to
    # each row they are the file's bytes.
    rows = pc.binary_join_element_wise(rows, empty, end)
    offsets = rows.buffers()[1]
    first, last = (
        int.from_bytes(offsets[at * 8 : at * 8 + 8].to_pybytes(), "little")
        for at in (rows.offset, rows.offset + len(rows))
    )
    return rows.buffers()[2][first:last]


def _cells(column: pa.Array, name: str, form: Format) -> pa.Array:
    """The column as text cells, quoted where a separator, a quote or a line end demands it."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    text = is_text(column.type)
    fraction = pa.types.is_floating(column.type) or pa.types.is_decimal(column.type)
    try:
        column = pc.cast(column, pa.large_string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise BadInput(
            f"column {name!r} holds {column.type} values, which CSV cannot; write .parquet"
        ) from None
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
