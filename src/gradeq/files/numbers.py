"""A column of a table as float64, checked at the door: the error names row, value and remedy."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from gradeq.errors import BadInput
from gradeq.files.arrays import floats, texts, to_numpy, without
from gradeq.files.cells import MISSING, is_missing, row_name, shown
from gradeq.files.failures import using
from gradeq.files.formats import remedy
from gradeq.kernels.finite import is_finite

if TYPE_CHECKING:
    import pyarrow as pa

Floats = npt.NDArray[np.float64]


def numeric(
    column: pa.Array,
    name: str,
    first_row: int = 1,
    *,
    file: str = "",
    missing: bool = False,
    decimal: str = ".",
) -> Floats:
    """The column as float64; with ``missing`` (labels) an absent value is nan, else it is refused.

    Integers, floats, booleans, decimals and text cells are taken. A value that is infinite, or is
    no number, is refused with its row number, counted from ``first_row``. The array may be a view
    of the column: do not write to it.
    """
    with using(f"column {name!r} holds {column.type} values", "write plain numbers"):
        values = _converted(plain(column), name, first_row, file, missing, decimal)
    if is_finite(values):
        return values
    if missing:
        wrong = np.isinf(values)
        if wrong.any():
            i = int(np.argmax(wrong))
            raise _refusal(column, i, name, first_row, file, "is infinite", int(wrong.sum()))
    else:
        wrong = ~np.isfinite(values)
        i = int(np.argmax(wrong))
        rule = "is missing" if np.isnan(values[i]) else "is infinite"
        raise _refusal(column, i, name, first_row, file, rule, int(wrong.sum()))
    return values


def plain(column: pa.Array) -> pa.Array:
    """The column in one piece, without dictionary encoding or views."""
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_string_view(column.type):  # for which arrow lacks most functions
        column = column.cast(pa.large_string())
    return column


def _converted(
    column: pa.Array, name: str, first_row: int, file: str, missing: bool, decimal: str
) -> Floats:
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if is_text(kind):
        pointed = column
        if decimal != ".":  # a point is then no part of a number
            pointed = pc.replace_substring(pc.replace_substring(column, ".", "_"), decimal, ".")
        # Three ways, from the quickest on: most columns hold numbers alone.
        with suppress(pa.ArrowInvalid):
            return floats(pc.cast(pointed, pa.float64()))
        with suppress(pa.ArrowInvalid):
            return floats(pc.cast(blanked(pointed), pa.float64()))
        return _cell_by_cell(column, name, first_row, file, missing, decimal)
    if pa.types.is_null(kind):
        return np.full(len(column), np.nan)
    if pa.types.is_boolean(kind):
        column = pc.cast(column, pa.uint8())
    elif pa.types.is_decimal(kind):
        return from_decimals(column)
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        raise BadInput(f"column {name!r} holds {kind} values; numbers are needed")
    return floats(pc.cast(column, pa.float64(), safe=False))


def _cell_by_cell(
    column: pa.Array, name: str, first_row: int, file: str, missing: bool, decimal: str
) -> Floats:
    """The same for cells that arrow cannot read: spelled otherwise, or an error to name."""
    values = np.empty(len(column))
    for i, cell in enumerate(column.to_pylist()):
        number = np.nan if cell is None or is_missing(cell) else read_number(cell, decimal)
        if number is None:
            raise BadInput(
                f"{row_name(first_row + i, file)}: column {name!r} has {shown(cell)}, "
                f"which is not a number; {remedy(cell, missing, decimal)}"
            )
        values[i] = number
    return values


def from_decimals(column: pa.Array) -> Floats:
    """Decimals as the nearest floats, which is how text is read; arrow's own cast may miss by a digit."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return floats(pc.cast(pc.cast(plain(column), pa.large_string()), pa.float64()))


def absent_cells(column: pa.Array) -> npt.NDArray[np.bool_]:
    """Which cells are absent: null, nan, or text that means missing."""
    import pyarrow.compute as pc

    if not is_text(column.type):
        return to_numpy(pc.is_null(column, nan_is_null=True))
    words = pc.utf8_lower(pc.utf8_trim_whitespace(column))
    known = pc.is_in(words, value_set=pc.cast(texts(sorted(MISSING)), words.type))
    return to_numpy(pc.or_(known, pc.is_null(column)))


def blanked(column: pa.Array) -> pa.Array:
    """Text cells without blanks around them, null where they mean missing."""
    import pyarrow.compute as pc

    return without(pc.utf8_trim_whitespace(column), absent_cells(column))


def read_number(cell: str, decimal: str = ".") -> float | None:
    """The number a text cell spells, or None. Only plain ASCII spellings count as numbers.

    >>> read_number(" 1e3 "), read_number("1_000"), read_number("abc"), read_number("1,5", ",")
    (1000.0, None, None, 1.5)
    """
    text = cell.strip()
    if decimal != ".":
        text = text.replace(".", "_").replace(decimal, ".")
    if "_" in text or not text.isascii():
        return None
    try:
        return float(text)
    except ValueError:
        return None


def is_text(kind: Any) -> bool:
    """Whether an arrow type holds text cells."""
    import pyarrow as pa

    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def _refusal(
    column: pa.Array, i: int, name: str, first_row: int, file: str, rule: str, count: int
) -> BadInput:
    value = column[i].as_py()
    cell = "an empty cell" if value in (None, "") else shown(value)
    others = f" (at least {count:,} such rows)" if count > 1 else ""
    if rule == "is missing":
        text = f"column {name!r} has {cell}, but a number is needed here{others}"
    else:
        text = f"column {name!r} has {cell}, which {rule}{others}"
    remedy = "drop the row or fill in the value"
    return BadInput(f"{row_name(first_row + i, file)}: {text}; {remedy}")
