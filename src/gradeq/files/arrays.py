"""Between arrow and numpy by their common bytes.

pyarrow's own to_numpy, array and scalar import pandas wherever it is installed, which costs a
small job more than all the rest of it; these do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pyarrow as pa

_WIDTHS = {"double": np.float64, "int64": np.int64, "int32": np.int32}


def to_numpy(column: pa.Array) -> npt.NDArray[Any]:
    """The values of a column of float64, int64, int32 or bool; where absent they mean nothing.

    A view of the column's bytes: do not write to it.
    """
    n, start = len(column), column.offset
    if not n:
        return np.empty(0, _WIDTHS.get(str(column.type), bool))
    if str(column.type) == "bool":
        return _bits(column.buffers()[1], start, n)
    kind = _WIDTHS[str(column.type)]
    return np.frombuffer(column.buffers()[1], kind, start + n)[start:]


def valid(column: pa.Array) -> npt.NDArray[np.bool_]:
    """Which rows have a value."""
    if not column.null_count:
        return np.ones(len(column), bool)
    return _bits(column.buffers()[0], column.offset, len(column))


def floats(column: pa.Array) -> npt.NDArray[np.float64]:
    """A column of float64, nan where absent; a view when none is absent."""
    values = to_numpy(column)
    return values if not column.null_count else np.where(valid(column), values, np.nan)


def integers(column: pa.Array, absent: int = 0) -> npt.NDArray[np.int64]:
    """A column of int64 or int32 as int64, with a value for the absent."""
    values = to_numpy(column).astype(np.int64, copy=False)
    return values if not column.null_count else np.where(valid(column), values, absent)


def from_numpy(values: npt.NDArray[Any], present: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    """A column of float64 or int64, absent where not ``present``; no copy of the values."""
    import pyarrow as pa

    kind = pa.float64() if values.dtype == np.float64 else pa.int64()
    data = np.ascontiguousarray(values, np.float64 if kind == pa.float64() else np.int64)
    bitmap = None if present is None or present.all() else packed(present)
    return pa.Array.from_buffers(kind, len(data), [bitmap, pa.py_buffer(data)])


def texts(cells: Sequence[str], errors: str = "strict") -> pa.Array:
    """A column of text; ``errors`` says what becomes of text that is none in UTF-8."""
    import pyarrow as pa

    encoded = [cell.encode("utf-8", errors) for cell in cells]
    ends = np.cumsum([0, *(len(cell) for cell in encoded)], dtype=np.int64)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.large_string(), len(encoded), buffers)


def joined_texts(cells: Sequence[Any]) -> pa.Array | None:
    """A column of text, each cell followed by one more byte; None when not all cells are text or None.

    Made of one long text, which takes half as long as cell by cell.
    """
    import pyarrow as pa

    try:
        try:
            text = "\0".join(cells)
        except TypeError:
            text = "\0".join(["" if cell is None else cell for cell in cells])
        data = f"{text}\0".encode()
    except (TypeError, UnicodeEncodeError):
        return None
    ends = np.flatnonzero(np.frombuffer(data, np.uint8) == 0)
    if len(ends) != len(cells):  # a cell holds the byte that separates them
        return None
    starts = np.concatenate([[0], ends + 1])
    buffers = [None, pa.py_buffer(starts), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.large_string(), len(cells), buffers)


def text_bytes(
    column: pa.Array, gap: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """Where each text of a column begins, where it ends (``gap`` bytes before the next), and all bytes."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_string_view(column.type):
        column = pc.cast(column, pa.large_string())
    _, bounds, data = column.buffers()
    kind = np.int32 if pa.types.is_string(column.type) else np.int64
    last = column.offset + len(column) + 1
    at = np.frombuffer(bounds, kind, last)[column.offset :].astype(np.int64, copy=False)
    text = np.frombuffer(data or b"", np.uint8)
    return at[:-1], at[1:] - gap, text


def sized_bytes(values: npt.NDArray[Any]) -> pa.Array:
    """An array of values of one size as a column of their bytes."""
    import pyarrow as pa

    data = pa.py_buffer(np.ascontiguousarray(values))
    kind = pa.binary(values.dtype.itemsize)
    return pa.Array.from_buffers(kind, len(values), [None, data])


def without(column: pa.Array, absent: npt.NDArray[np.bool_]) -> pa.Array:
    """The text column with these rows made absent."""
    import pyarrow as pa

    present = np.concatenate([np.zeros(column.offset, bool), ~absent])
    buffers = [packed(present), *column.buffers()[1:]]
    return pa.Array.from_buffers(column.type, len(column), buffers, offset=column.offset)


def packed(present: npt.NDArray[np.bool_]) -> pa.Buffer:
    """Arrow's bitmap of the rows that have a value."""
    import pyarrow as pa

    return pa.py_buffer(np.packbits(present, bitorder="little"))


def _bits(buffer: pa.Buffer, start: int, n: int) -> npt.NDArray[np.bool_]:
    flags = np.unpackbits(np.frombuffer(buffer, np.uint8), count=start + n, bitorder="little")
    return flags[start:].view(bool)
