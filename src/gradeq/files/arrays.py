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


def texts(cells: Sequence[str]) -> pa.Array:
    """A column of text."""
    import pyarrow as pa

    encoded = [cell.encode("utf-8") for cell in cells]
    ends = np.cumsum([0, *(len(cell) for cell in encoded)], dtype=np.int64)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.large_string(), len(encoded), buffers)


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
