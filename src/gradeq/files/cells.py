"""Cells: their formats, arrow columns as numpy arrays, and columns as float64; errors name row, value and remedy."""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from gradeq.errors import BadInput
from gradeq.files.paths import system_errors
from gradeq.kernels.account import is_finite

if TYPE_CHECKING:
    import pyarrow as pa


Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]

# Label cells without a value: these words in any case, with or without blanks around them.
MISSING = frozenset({"", "na", "n/a", "nan", "null", "none"})
# What other programs write for a missing value; used only to suggest --missing.
MARKERS = frozenset({"#n/a", "#na", "-", "--", "\\n", "<na>", "n.a.", "n.a", "nat", ".", "?", "missing", "unknown"})
_COMMA = re.compile(r"[+-]?[\d.]*,\d+([eE][+-]?\d+)?")


@dataclass(frozen=True)
class Format:
    """The format of cells; the default is plain CSV."""

    separator: str = ","
    decimal: str = "."
    missing: tuple[str, ...] = ()


PLAIN = Format()


def format_of(separator: str | None, decimal: str, missing: tuple[str, ...]) -> Format:
    sign = "," if separator is None else {"tab": "\t", "\\t": "\t"}.get(separator, separator)
    if len(sign) != 1 or not sign.isascii() or sign.isalnum() or sign in '"\r\n\0':
        raise BadInput(f"--separator {separator!r} is not a separator; give one character such as ';' or '|', or tab")
    return Format(sign, decimal, missing)


def without_missing(column: pa.Array, form: Format) -> pa.Array:
    """The column with null for cells that mean missing (--missing)."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column, absent = plain(column), {text.strip() for text in form.missing}
    if is_text(column.type):
        words = pc.utf8_trim_whitespace(column)
        mask = pc.is_in(words, value_set=pa.array(sorted(absent), words.type))
    elif pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        numbers = [read_number(text, form.decimal) for text in absent]
        values = pa.array([number for number in numbers if number is not None], pa.float64())
        mask = pc.is_in(pc.cast(column, pa.float64(), safe=False), value_set=values)
    else:
        return column
    return pc.if_else(mask, pa.scalar(None, column.type), column)


_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\0")


def is_missing(cell: str) -> bool:
    """Whether a text cell stands for a missing value.

    >>> is_missing(" NaN "), is_missing("0")
    (True, False)
    """
    return cell.strip().lower() in MISSING


def is_utf8(name: str) -> bool:
    """Whether a name is valid UTF-8; one from the command line may not be."""
    return name.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in name)


def guard_formula(text: str) -> str:
    """The text, changed so that a spreadsheet shows it and never runs it as a formula.

    Only for names in tables that gradeq creates; cells of the input are copied unchanged.

    >>> guard_formula("=1+1"), guard_formula("Brazil")
    ("'=1+1", 'Brazil')
    """
    return "'" + text if text.startswith(_FORMULA) else text


def row_name(row: int, file: str = "") -> str:
    """How an error names a data row (from 1, header not counted), with the file if there are several.

    >>> row_name(17), row_name(17, "b.csv")
    ('row 17', 'b.csv row 17')
    """
    return f"{file} row {row}" if file else f"row {row}"


def show_cell(cell: object, width: int = 40) -> str:
    """A cell's value as an error prints it: quoted, on one line, cut when long.

    >>> show_cell("a" * 100)
    "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa..."
    """
    text = repr(cell)
    return text if len(text) <= width else text[:width] + "..."


_SEPARATORS = {";": "';'", "\t": "tab", "|": "'|'"}


def no_such_column(name: str, names: Iterable[str], where: str) -> BadInput:
    """An error that suggests the nearest name."""
    known = list(names)
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    if not near:
        near = [other for other in known if other.strip().casefold() == name.strip().casefold()][-1:]
    separator = next((words for sign, words in _SEPARATORS.items() if sign in known[0]), None) if known else None
    if len(known) == 1 and separator:
        remedy = f"its only column is {show_cell(known[0])}: give --separator {separator}"
    elif near:
        remedy = f"did you mean {near[0]!r}?"
    else:
        listed = ", ".join(repr(other) for other in known[:12]) + (", ..." if known[12:] else "")
        remedy = f"the columns are {listed}"
    return BadInput(f"{where} has no column {name!r}; {remedy}")


_WIDTHS = {"double": np.float64, "int64": np.int64, "int32": np.int32}


def to_numpy(column: pa.Array) -> npt.NDArray[np.generic]:
    """A read-only view of a float64, int64, int32 or bool column; null values are arbitrary."""
    values, start, end = column.buffers()[1] or b"", column.offset, column.offset + len(column)
    if str(column.type) == "bool":
        return _bits(values, start, len(column))
    return np.frombuffer(values, _WIDTHS[str(column.type)], end)[start:]


def valid(column: pa.Array) -> Mask:
    if not column.null_count:
        return np.ones(len(column), bool)
    return _bits(column.buffers()[0], column.offset, len(column))


def floats(column: pa.Array) -> Floats:
    """A float64 column, nan where null; a view if there are no nulls."""
    values = to_numpy(column).view(np.float64)
    return values if not column.null_count else np.where(valid(column), values, np.nan)


def integers(column: pa.Array, absent: int = 0) -> Ints:
    """An int64 or int32 column as int64, ``absent`` where null."""
    values = to_numpy(column).astype(np.int64, copy=False)
    return values if not column.null_count else np.where(valid(column), values, absent)


def from_numpy(values: npt.NDArray[np.generic], present: Mask | None = None) -> pa.Array:
    """A float64 or int64 column, null where not ``present``, without copying."""
    import pyarrow as pa

    kind = pa.float64() if values.dtype == np.float64 else pa.int64()
    data = np.ascontiguousarray(values, np.float64 if kind == pa.float64() else np.int64)
    bitmap = None if present is None or present.all() else packed(present)
    return pa.Array.from_buffers(kind, len(data), [bitmap, pa.py_buffer(data)])


def texts(cells: Sequence[str], errors: str = "strict") -> pa.Array:
    """A text column; ``errors`` is as in str.encode."""
    import pyarrow as pa

    encoded = [cell.encode("utf-8", errors) for cell in cells]
    ends = np.cumsum([0, *(len(cell) for cell in encoded)], dtype=np.int64)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.large_string(), len(encoded), buffers)


def text_bytes(column: pa.Array) -> tuple[Ints, Ints, Bytes]:
    """Start and end of each text, and all bytes."""
    import pyarrow as pa

    _, bounds, data = column.buffers()
    kind = np.int32 if pa.types.is_string(column.type) else np.int64
    last = column.offset + len(column) + 1
    at = np.frombuffer(bounds, kind, last)[column.offset :].astype(np.int64, copy=False)
    return at[:-1], at[1:], np.frombuffer(data or b"", np.uint8)


def with_nulls(column: pa.Array, absent: Mask) -> pa.Array:
    import pyarrow as pa

    present = np.concatenate([np.zeros(column.offset, bool), ~absent])
    buffers = [packed(present), *column.buffers()[1:]]
    return pa.Array.from_buffers(column.type, len(column), buffers, offset=column.offset)


def packed(present: Mask) -> pa.Buffer:
    import pyarrow as pa

    return pa.py_buffer(np.packbits(present, bitorder="little"))


def _bits(buffer: pa.Buffer, start: int, n: int) -> Mask:
    flags = np.unpackbits(np.frombuffer(buffer, np.uint8), count=start + n, bitorder="little")
    return flags[start:].view(bool)


def numeric(
    column: pa.Array, name: str, first_row: int = 1, *, file: str = "", missing: bool = False, decimal: str = "."
) -> Floats:
    """The column as float64, possibly a view; with ``missing`` null is nan, else an error.

    Takes integers, floats, booleans, decimals and text. Errors name the row, counted from ``first_row``.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    what = f"column {name!r} holds {column.type} values that cannot be used"
    with system_errors(what, "write plain numbers", ValueError):
        cells = plain(column)
        kind = cells.type
        if is_text(kind):
            values = _from_text(cells, name, first_row, file, missing, decimal)
        elif pa.types.is_null(kind):
            values = np.full(len(cells), np.nan)
        elif pa.types.is_decimal(kind):
            values = from_decimals(cells)
        elif pa.types.is_boolean(kind):
            values = floats(pc.cast(pc.cast(cells, pa.uint8()), pa.float64()))
        elif pa.types.is_integer(kind) or pa.types.is_floating(kind):
            values = floats(pc.cast(cells, pa.float64(), safe=False))
        else:
            raise BadInput(f"column {name!r} holds {kind} values; numbers are needed")
    if is_finite(values):
        return values
    wrong = np.isinf(values) if missing else ~np.isfinite(values)
    if not wrong.any():
        return values
    i, count = int(np.argmax(wrong)), int(wrong.sum())
    value = column[i].as_py()
    cell = "an empty cell" if value in (None, "") else show_cell(value)
    others = f" (at least {count:,} such rows)" if count > 1 else ""
    rule = ", but a number is needed here" if np.isnan(values[i]) else ", which is infinite"
    text = f"column {name!r} has {cell}{rule}{others}; drop the row or fill in the value"
    raise BadInput(f"{row_name(first_row + i, file)}: {text}")


def _from_text(column: pa.Array, name: str, first_row: int, file: str, missing: bool, decimal: str) -> Floats:
    """Text cells as numbers, in three ways, the quickest first: most columns contain numbers alone."""
    import pyarrow as pa
    import pyarrow.compute as pc

    pointed = column
    if decimal != ".":  # a point is then no part of a number
        pointed = pc.replace_substring(pc.replace_substring(column, ".", "_"), decimal, ".")
    with suppress(pa.ArrowInvalid):
        return floats(pc.cast(pointed, pa.float64()))
    with suppress(pa.ArrowInvalid):
        return floats(pc.cast(trimmed(pointed), pa.float64()))
    values = np.empty(len(column))
    for i, cell in enumerate(column.to_pylist()):
        number = np.nan if cell is None or is_missing(cell) else read_number(cell, decimal)
        if number is None:
            raise BadInput(
                f"{row_name(first_row + i, file)}: column {name!r} has {show_cell(cell)}, "
                f"which is not a number; {remedy(cell, missing, decimal)}"
            )
        values[i] = number
    return values


def remedy(cell: str, missing: bool, decimal: str) -> str:
    text = cell.strip()
    if decimal == "," and "." in text:
        return "with --decimal , a number has a comma and no point"
    if decimal == "." and _COMMA.fullmatch(text):
        return "for decimal commas give --decimal ,"
    if missing and text.lower() in MARKERS:
        return f"if it means missing, give --missing {shlex.quote(text)}"
    return "correct the cell or drop the row"


def plain(column: pa.Array) -> pa.Array:
    """The column in one chunk, without dictionary encoding or views."""
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_string_view(column.type):  # for which arrow lacks most functions
        column = column.cast(pa.large_string())
    return column


def from_decimals(column: pa.Array) -> Floats:
    """Decimals as the nearest floats; arrow's own cast may be off by one digit."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return floats(pc.cast(pc.cast(plain(column), pa.large_string()), pa.float64()))


def absent_cells(column: pa.Array) -> Mask:
    import pyarrow.compute as pc

    if not is_text(column.type):
        return to_numpy(pc.is_null(column, nan_is_null=True)).view(np.bool_)
    words = pc.utf8_lower(pc.utf8_trim_whitespace(column))
    known = pc.is_in(words, value_set=pc.cast(texts(sorted(MISSING)), words.type))
    return to_numpy(pc.or_(known, pc.is_null(column))).view(np.bool_)


def trimmed(column: pa.Array) -> pa.Array:
    import pyarrow.compute as pc

    return with_nulls(pc.utf8_trim_whitespace(column), absent_cells(column))


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


def is_text(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))
