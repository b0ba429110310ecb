"""Columns of any dataframe in, float64 or codes out, and results back in the caller's own type.

numpy arrays, lists and tuples are handled here; pandas, polars and pyarrow through narwhals, which
is imported only when such a column comes.
"""

from __future__ import annotations

import numbers as abstract
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gradeq.errors import BadInput
from gradeq.files.codebook import Codebook
from gradeq.files.numbers import from_decimals
from gradeq.files.times import Times
from gradeq.kernels.finite import is_finite
from gradeq.naming import MISSING_NAME, is_absent, name_of
from gradeq.spans import NAIVE, NUMBERS, ZONED

Floats = npt.NDArray[np.float64]
Int64s = npt.NDArray[np.int64]

__all__ = [
    "MISSING_NAME",
    "Codes",
    "Times",
    "cells",
    "coded",
    "codes",
    "floats",
    "is_column",
    "like",
    "moments",
    "name_of",
    "same_index",
    "same_length",
    "with_columns",
]


class Codes(NamedTuple):
    """A column of group values as dense codes, and the name of each code."""

    codes: Int64s
    names: list[str]


def floats(column: Any, name: str, *, missing: bool = False) -> Floats:
    """The column as float64; with ``missing`` (labels) an absent value is nan, else it is refused.

    Integers and booleans are promoted before any arithmetic, Decimals converted once. Text, dates
    and infinite values are refused, with the row (from 0, as in the caller's own indexing).

    >>> floats([True, 2, None], "label", missing=True)
    array([ 1.,  2., nan])
    """
    values = _floats(_array(column, name), name)
    if is_finite(values):
        return values
    wrong = np.isinf(values) if missing else ~np.isfinite(values)
    if wrong.any():
        i, count = int(np.argmax(wrong)), int(wrong.sum())
        what = "is infinite" if np.isinf(values[i]) else "is missing"
        more = f" ({count} such rows)" if count > 1 else ""
        raise BadInput(f"{name}[{i}] {what}{more}; drop or impute it first")
    return values


def moments(column: Any, name: str, *, missing: bool = False) -> Times:
    """The column as times that sort: numbers as they are, dates in nanoseconds since 1970."""
    if isinstance(column, Times):
        return column
    zoned = _has_zone(column)
    values = _array(column, name)
    if values.dtype.kind == "O" and _first_is_date(values):
        values, zoned = _datetimes(values, name)
    if values.dtype.kind == "M":
        times = Times(_nanoseconds(values, name), np.isnat(values), ZONED if zoned else NAIVE)
    elif values.dtype.kind in "iu":
        times = Times(values.astype(np.int64), np.zeros(len(values), bool), NUMBERS)
    else:
        exact = floats(column, name, missing=True)
        absent = np.isnan(exact)
        times = Times(exact, absent, None if absent.all() else NUMBERS)
    if not missing and times.missing.any():
        raise BadInput(f"{name}[{int(np.argmax(times.missing))}] has no time; drop the row")
    return times


def codes(column: Any, name: str, book: Codebook | None = None) -> Codes:
    """The column's values as codes in order of first appearance, absent ones as "(missing)".

    ``book`` continues codes given before. Categoricals and arrow dictionaries are taken as they
    are, without spelling out their rows.

    >>> codes(["b", "a", None, "b"], "race")
    Codes(codes=array([0, 1, 2, 0]), names=['b', 'a', '(missing)'])
    """
    book = Codebook() if book is None else book
    return Codes(coded(column, name, book), book.names)


def coded(column: Any, name: str, book: Codebook) -> Int64s:
    """The codes alone: the names of a million keys need not be spelled out for every batch."""
    if isinstance(column, list | tuple):
        found = book.of_texts(column)
        if found is None:
            _array(column, name)  # rows of several values are refused
            found = book.of_cells(
                column
            )  # and not as numpy has them, to which True beside 1 is one
        return found
    if _is_plain(column):
        values = _array(column, name)
        masked = isinstance(column, np.ma.MaskedArray)
        return book.of_cells(column.tolist()) if masked else book.of_array(values)
    arrow = _arrow(column)
    if arrow is None:
        return book.of_cells(_array(column, name).tolist())
    return book.codes(arrow)


def cells(column: Any, name: str) -> list[Any]:
    """The cells of a column as Python has them: text, whole numbers, floats, None."""
    if _is_plain(column) and not isinstance(column, np.ma.MaskedArray):
        return list(_array(column, name).tolist())
    series = _series(column)
    found: list[Any] = _array(column, name).tolist() if series is None else series.to_list()
    return found


def with_columns(frame: Any, new: dict[str, Any]) -> Any:
    """A frame, as narwhals sees it, with new columns at its end, in the caller's own type."""
    import narwhals as nw

    one = frame[frame.columns[0]].to_native()
    made = (like(one, np.asarray(values)) for values in new.values())
    series = [nw.from_native(column, series_only=True) for column in made]
    return frame.with_columns(
        column.alias(name) for name, column in zip(new, series, strict=True)
    ).to_native()


def like(original: Any, values: npt.NDArray[Any]) -> Any:
    """The values in the type of the column they answer: a pandas Series keeps index and name.

    >>> like([1, 2], np.array([0.5, 1.5]))
    [0.5, 1.5]
    """
    if isinstance(original, list | tuple):
        return type(original)(values.tolist()) if type(original) in (list, tuple) else values
    if _is_plain(original) or values.ndim != 1:
        return values
    from narwhals import dependencies as known

    if known.is_pandas_like_series(original):
        return type(original)(values, index=original.index, name=original.name)
    if known.is_polars_series(original):
        return type(original)(original.name, values)
    if type(original).__module__.partition(".")[0] == "pyarrow":
        import pyarrow as pa

        array = pa.array(values)
        return pa.chunked_array([array]) if isinstance(original, pa.ChunkedArray) else array
    return values


def same_length(**columns: Any) -> int:
    """The common length of the columns that are given (None is left out); else an error.

    >>> same_length(predictions=[1, 2], labels=None)
    2
    """
    lengths = {name: len(column) for name, column in columns.items() if column is not None}
    first, *others = lengths.items()
    for name, length in others:
        if length != first[1]:
            raise BadInput(
                f"{first[0]} has {first[1]} rows and {name} has {length}; "
                "give columns of the same length"
            )
    return first[1]


def same_index(**columns: Any) -> None:
    """Refuse pandas columns with different indexes: rows are joined by position, and pandas would join by index.

    Columns of groups or features may come in a mapping.
    """
    first: Any = None
    several = {name: own for name, own in columns.items() if isinstance(own, Mapping)}
    each = {name: own for name, own in columns.items() if name not in several}
    each |= {f"{name}[{of!r}]": own for name, cells in several.items() for of, own in cells.items()}
    for name, column in each.items():
        if type(column).__module__.partition(".")[0] != "pandas" or not hasattr(column, "index"):
            continue
        first = first or (name, column.index)
        if len(column) == len(first[1]) and not column.index.equals(first[1]):
            raise BadInput(
                f"{first[0]} and {name} are of pandas with different indexes; give {name} the index of "
                f"{first[0]} (reindex), or its .to_numpy() to join rows by position"
            )


def is_column(value: Any) -> bool:
    """Whether a value is a column of rows rather than a single number or name."""
    return not isinstance(value, str | bytes) and hasattr(value, "__len__")


def _is_plain(column: Any) -> bool:
    """Whether no dataframe library is needed to read it."""
    return type(column).__module__.partition(".")[0] in ("builtins", "numpy", "array", "gradeq")


def _array(column: Any, name: str) -> npt.NDArray[Any]:
    """The column as a one-dimensional numpy array, absent values as nan, NaT or None."""
    if isinstance(column, str | bytes) or not hasattr(column, "__len__"):
        raise BadInput(f"{name} is {_kind(column)}; a column of values is needed")
    values = _plain_array(column, name) if _is_plain(column) else _native_array(column, name)
    if values.ndim != 1:
        raise BadInput(f"{name} has shape {values.shape}; one column of values is needed")
    return values


def _plain_array(column: Any, name: str) -> npt.NDArray[Any]:
    if isinstance(column, np.ma.MaskedArray):
        if column.dtype.kind in "biuf":
            return np.asarray(np.ma.filled(column.astype(np.float64), np.nan))
        return np.asarray(column.tolist(), object)
    if isinstance(column, dict | set | frozenset):
        raise BadInput(f"{name} is {_kind(column)}; a column of values in order is needed")
    try:
        values = np.asarray(column)
    except (ValueError, OverflowError):
        raise BadInput(f"{name} holds rows of different lengths; one value per row") from None
    if values.dtype.kind in "US" and isinstance(column, list | tuple):
        # numpy made text of everything because of one text among the numbers.
        values = np.empty(len(column), object)
        values[:] = column
    return values


def _native_array(column: Any, name: str) -> npt.NDArray[Any]:
    """A pandas, polars or pyarrow column as numpy."""
    import narwhals as nw

    series = _series(column)
    if series is None:
        return _plain_array(column, name)
    if series.dtype == nw.Decimal:
        return from_decimals(nw.maybe_reset_index(series).to_arrow())
    if series.dtype.is_numeric() or series.dtype == nw.Boolean:
        exact = series.dtype.is_integer() and not series.null_count()
        return np.asarray((series if exact else series.cast(nw.Float64)).to_numpy())
    if series.dtype == nw.Date or series.dtype == nw.Datetime:
        if getattr(series.dtype, "time_zone", None):
            series = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        found = np.asarray(series.to_numpy())
        return found if found.dtype.kind == "M" else np.asarray(found, object)
    return np.asarray(series.to_list() or [], dtype=object)


def _series(column: Any) -> Any:
    """The column as narwhals sees it; a pyarrow array becomes a chunked one first."""
    import narwhals as nw

    if type(column).__module__.partition(".")[0] == "pyarrow":
        import pyarrow as pa

        if isinstance(column, pa.Array):
            column = pa.chunked_array([column])
        if isinstance(column, pa.ChunkedArray) and pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
    series = nw.from_native(column, series_only=True, pass_through=True)
    return series if isinstance(series, nw.Series) else None


def _arrow(column: Any) -> Any:
    """A dataframe's column in arrow's form, dictionaries kept; None when it has no such form."""
    import pyarrow as pa

    if isinstance(column, pa.Array | pa.ChunkedArray):
        return column
    import narwhals as nw

    series = _series(column)
    if series is None:
        return None
    try:
        arrow = nw.maybe_reset_index(series).to_arrow()  # pyarrow looks for a row labelled 0
    except (pa.ArrowInvalid, pa.ArrowTypeError):  # objects of several kinds in one column
        return None
    # Objects that arrow brought to one kind would change their names: 1 beside 0.5 is "1.0".
    return None if series.dtype == nw.Object and not pa.types.is_string(arrow.type) else arrow


def _floats(values: npt.NDArray[Any], name: str) -> Floats:
    if values.dtype.kind in "biuf":
        return values.astype(np.float64, copy=False)
    if values.dtype.kind != "O":
        what = "text" if values.dtype.kind in "US" else str(values.dtype)
        raise BadInput(f"{name} holds {what}; convert it to numbers first")
    return np.array([_float(cell, i, name) for i, cell in enumerate(values.tolist())], np.float64)


def _float(cell: Any, i: int, name: str) -> float:
    if isinstance(cell, abstract.Real | Decimal | np.bool_):
        try:
            return float(cell)
        except (OverflowError, ValueError):
            raise BadInput(f"{name}[{i}] is beyond the range of float64; rescale it") from None
    if is_absent(cell):
        return np.nan
    raise BadInput(f"{name}[{i}] is {_kind(cell)}, not a number; convert it first")


def _first_is_date(values: npt.NDArray[Any]) -> bool:
    """Whether the first value that is there is a date."""
    first = next((cell for cell in values if not is_absent(cell)), None)
    return hasattr(first, "isoformat") or isinstance(first, np.datetime64)


def _datetimes(values: npt.NDArray[Any], name: str) -> tuple[npt.NDArray[Any], bool]:
    """Python dates and datetimes, and whether they have a zone: all of them or none; zones are taken to UTC."""
    import datetime as dt

    zones: set[bool] = set()

    def moment(cell: Any, i: int) -> np.datetime64:
        if is_absent(cell):  # NaT is a date to Python
            return np.datetime64("NaT", "us")
        if not isinstance(cell, dt.date | np.datetime64):
            raise BadInput(f"{name}[{i}] is {_kind(cell)} among dates; use one kind of time")
        zoned = isinstance(cell, dt.datetime) and cell.utcoffset() is not None
        zones.add(zoned)
        if len(zones) > 1:
            other = "with" if zoned else "without"
            raise BadInput(f"{name}[{i}] is a time {other} a zone among others; use one kind")
        if hasattr(cell, "to_datetime64"):  # pandas: nanoseconds, in UTC
            return np.datetime64(cell.to_datetime64())
        if isinstance(cell, dt.datetime) and zoned:
            cell = cell.astimezone(dt.UTC).replace(tzinfo=None)
        return np.datetime64(cell)

    found = [_nanoseconds(np.array([moment(cell, i)]), name)[0] for i, cell in enumerate(values)]
    return np.array(found, np.int64).view("datetime64[ns]"), True in zones


def _nanoseconds(values: npt.NDArray[Any], name: str) -> Int64s:
    """Dates in nanoseconds since 1970; numpy itself would wrap what lies beyond."""
    found = values.astype("datetime64[ns]")
    wrong = (found.astype(values.dtype) != values) & ~np.isnat(values)
    if wrong.any():
        i = int(np.argmax(wrong))
        raise BadInput(
            f"{name}[{i}] is {values[i]}, outside 1677-09-22 to 2262-04-11, the range of 64-bit nanoseconds; "
            "use numbers for such times"
        )
    return found.view(np.int64)


def _has_zone(column: Any) -> bool:
    """Whether a dataframe's column holds times of a zone."""
    series = None if _is_plain(column) else _series(column)
    return getattr(getattr(series, "dtype", None), "time_zone", None) is not None


def _kind(value: Any) -> str:
    text = repr(value)
    shown = text if len(text) <= 30 else text[:30] + "..."
    kind = type(value).__name__
    return f"text ({shown})" if isinstance(value, str) else f"{kind} ({' '.join(shown.split())})"
